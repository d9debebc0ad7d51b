"""Real Slurm on a virtual cluster: hosts and states, every host asked, a host that dies, jobs to their end."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from pbs_stand_in import install

from fablint.snapshot import command_to_collect
from fablint.snapshot.collecting import unpack
from tested_mpis import wrapper_name
from vcluster import Cluster, StartCluster

ASK = """
import json, sys
from dataclasses import asdict
from fablint import cluster
from fablint.system import System
system = System()
hosts = json.loads(sys.argv[1])
allocation = cluster.find_hosts(system, hosts)
answers = cluster.everywhere(system, allocation, json.loads(sys.argv[2]), "hi\\n", float(sys.argv[3]))
states = cluster.host_states(system, allocation.hosts)
facts = {"allocation": asdict(allocation), "answers": [asdict(one) for one in answers]}
facts |= {"states": [asdict(one) for one in states], "lost": cluster.unresolvable(system, allocation.hosts)}
print(json.dumps(facts))
"""

SUBMIT = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from fablint import cluster
from fablint.errors import FablintError
from fablint.system import System
system, wishes, says = System(), json.loads(sys.argv[1]), []
command, wishes["hosts"] = tuple(wishes.pop("command")), tuple(wishes.get("hosts", ()))
request = cluster.JobRequest(command, Path.cwd(), **wishes)
try:
    job = cluster.find_scheduler(system).submit(system, request)
except FablintError as error:
    print(json.dumps({"refused": str(error)}))
else:
    state = cluster.wait(system, says.append, job, 0.3)
    print(json.dumps(asdict(state) | {"id": job.id, "says": says, "tail": cluster.tail(job, 3)}))
"""


@pytest.fixture(scope="module")
def slurm(virtual_cluster: StartCluster):
    with virtual_cluster("jobs", groups=2, switches=1, hosts=2, lldp=False) as made:
        yield made


def asked(made: Cluster, argv, hosts=None, timeout_s=20.0, inside=True):
    """What `everywhere` answers on the head node, by default inside an allocation of all four hosts."""
    salloc = ["salloc", "-Q", "-N4", "--no-kill"] if inside else []
    words = [sys.executable, "-c", ASK, json.dumps(hosts), json.dumps(argv), str(timeout_s)]
    done = made.run([*salloc, *words], timeout=150)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def submitted(made: Cluster, tmp_path: Path, *command, **wishes):
    words = [sys.executable, "-c", SUBMIT, json.dumps({"command": command, **wishes})]
    done = made.run(words, timeout=150, cwd=tmp_path, FABLINT_HOME=str(tmp_path / "home"))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


HOSTS = ["nid001000", "nid001001", "nid001002", "nid001003"]


def test_srun_keeps_the_folder_and_the_environment_and_hosts_import_nothing_of_them(slurm, tmp_path):
    """See test_planted_files.py: the same with the real srun."""
    trace, current, path = (tmp_path / name for name in ("executed", "current", "path"))
    for folder in (current, path):
        folder.mkdir()
        (folder / "base64.py").write_text(f"open({str(trace)!r}, 'a').write('{folder.name} ')\n")
    argv, text = command_to_collect("quick")
    ask = ASK.replace('"hi\\n"', repr(text))
    for isolated in (False, True):
        words = argv if isolated else [word for word in argv if word != "-I"]
        command = ["salloc", "-Q", "-N4", "--no-kill", sys.executable, "-I", "-c", ask, "null", json.dumps(words), "20"]
        done = slurm.run(command, timeout=150, cwd=current, PYTHONPATH=str(path))
        assert done.returncode == 0, done.stderr
        answers = json.loads(done.stdout)["answers"]
        assert len(answers) == 4
        assert trace.exists() is not isolated
        trace.unlink(missing_ok=True)
        if isolated:
            assert all(unpack(answer["output"]) for answer in answers), answers


def test_inside_a_job_srun_asks_every_host(slurm):
    facts = asked(slurm, ["sh", "-c", 'uname -n; cat; echo "no $1" >&2; [ "$(uname -n)" != nid001002 ]', "sh", "NIC"])
    allocation = facts["allocation"]
    assert allocation["hosts"] == HOSTS and allocation["scheduler"] == "slurm"
    assert allocation["room"] == dict.fromkeys(HOSTS, 1)
    assert [answer["output"] for answer in facts["answers"]] == [f"{host}\nhi\n" for host in HOSTS]
    assert [answer["error"] for answer in facts["answers"]] == ["", "", "no NIC", ""]
    assert {state["state"] for state in facts["states"]} == {"busy"}


def test_some_hosts_of_the_job_in_the_order_given(slurm):
    facts = asked(slurm, ["uname", "-n"], ["nid001003", "nid001000"])
    assert [answer["output"] for answer in facts["answers"]] == ["nid001003\n", "nid001000\n"]


def test_a_host_that_stalls_is_named(slurm):
    facts = asked(slurm, ["sh", "-c", "[ $(uname -n) != nid001001 ] || sleep 300; echo done"], timeout_s=8)
    answers = {answer["host"]: answer for answer in facts["answers"]}
    assert answers["nid001001"]["error"] == "no end after 8 s"
    assert [answers[host]["output"] for host in HOSTS if host != "nid001001"] == ["done\n"] * 3


def test_outside_of_a_job_ssh_asks(slurm):
    facts = asked(slurm, ["sh", "-c", "uname -n; cat"], ["nid001002", "nid001077", "nid001000"], inside=False)
    assert [answer["output"] for answer in facts["answers"]] == ["nid001002\nhi\n", "", "nid001000\nhi\n"]
    assert "Could not resolve hostname nid001077" in facts["answers"][1]["error"]
    assert facts["lost"] == ["nid001077"]
    assert [state["state"] for state in facts["states"]] == ["idle", "unknown", "idle"]


def test_a_job_to_its_end(slurm, tmp_path):
    script = "cat; echo $SLURM_JOB_NODELIST; exit 1"
    reported = submitted(slurm, tmp_path, "sh", "-c", script, hosts=["nid001000", "nid001003"], time_s=60)
    assert (reported["word"], reported["exit_code"], reported["tail"]) == ("ended", 1, ["nid[001000,001003]"])
    assert any("pending" in text or "running" in text for text in reported["says"])


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"partition": "nope"}, "invalid partition specified: nope: partitions are vc"),
        ({"hosts": ["nid001099"]}, "Invalid node name specified"),
        ({"constraint": "gpu&ib"}, "Invalid feature specification"),
        ({"begin": "whenever"}, "Invalid --begin specification"),
    ],
)
def test_refusals_in_the_words_of_slurm(slurm, tmp_path, wishes, words):
    reported = submitted(slurm, tmp_path, "true", **wishes)
    assert words in reported["refused"] and reported["refused"].startswith("Slurm refuses the job: ")
    assert list((tmp_path / "home" / "jobs").iterdir()) == []


def test_more_hosts_than_there_are(slurm, tmp_path):
    reported = submitted(slurm, tmp_path, "true", nodes=9)
    slurm.run(["scancel", reported["id"]])
    assert reported["stuck"] and reported["reason"] == "PartitionNodeLimit"


def test_a_job_that_is_cancelled(slurm, tmp_path):
    cancel = "sleep 1; scancel $SLURM_JOB_ID; sleep 60"
    assert submitted(slurm, tmp_path, "sh", "-c", cancel, nodes=1)["word"] == "cancelled"


def test_a_job_that_ends_while_ranks_measure_reports_no_host(slurm, tmp_path):
    """Ranks and daemons of mpirun are killed, one after the other: those that are left report the others."""
    output = tmp_path / "x.run"
    begun = output / "latency" / "zarr.json"
    row = "latency --pattern all-pairs --samples 100000"
    wrapper = wrapper_name("openmpi")
    measure = f"{sys.executable} -m fablint.cli -q measure -n 4 -r '{row}' --mpicxx {wrapper} -o {output}"
    cancel = f"(until [ -e {begun} ]; do sleep 0.1; done; scancel $SLURM_JOB_ID) & exec {measure}"
    done = slurm.run(["salloc", "-Q", "-N4", "--no-kill", "sh", "-c", cancel], timeout=150)
    said = done.stderr.splitlines()[-1]
    assert done.returncode == 3, done.stderr
    assert re.fullmatch(rf"fablint: Slurm job \d+ has ended.*: measured .*: fablint resume {output} in a new job", said)
    attributes = json.loads((output / "zarr.json").read_text())["attributes"]
    assert attributes["state"] == "interrupted" and not attributes.get("lost")


@pytest.fixture
def dying(virtual_cluster: StartCluster):
    """A cluster with a host whose slurmd is killed, which Slurm does not know yet."""
    with virtual_cluster("dying", groups=2, switches=1, hosts=2, lldp=False) as made:
        slurmd = made.run(["scontrol", "show", "slurmd"], node="nid001002").stdout
        said = dict(line.split("=", 1) for line in slurmd.splitlines() if "=" in line)
        pid = next(value for name, value in said.items() if name.strip() == "Slurmd PID")
        os.kill(int(pid), signal.SIGKILL)
        yield made


def test_a_host_that_dies_is_reported_and_the_others_answer(dying):
    """srun gives it up after 10 s and ends the step, so that those that had not answered by then are asked again."""
    facts = asked(dying, ["sh", "-c", "[ $(uname -n) != nid001000 ] || sleep 13; uname -n"], timeout_s=25)
    answers = {answer["host"]: answer for answer in facts["answers"]}
    assert [answers[host]["output"] for host in HOSTS] == ["nid001000\n", "nid001001\n", "", "nid001003\n"]
    assert answers["nid001002"]["error"]


def test_where_ssh_is_not_allowed_pbsdsh_asks(slurm, tmp_path):
    """With a stand-in for pbsdsh that enters the hosts: stdin and answers go through files, a task a chunk."""
    ask = """
import sys
from pathlib import Path
from fablint.cluster.pbsdsh import over_pbsdsh
from fablint.system import System
asked = over_pbsdsh(System(), ["nid001000", "nid001001", "nid001099"], ["sh", "-c", "uname -n; cat"], "hi", 5)
print(sorted((answer.host, answer.output, answer.error) for answer in asked.answers.values()), sorted(asked.silent))
"""
    programs = install(tmp_path / "pbs", tuple(HOSTS))
    nodes = tmp_path / "nodes"
    nodes.write_text("nid001000\nnid001000\nnid001001\nnid001099\n")
    enter = slurm.run(["sh", "-c", "command -v ssh"]).stdout.strip()
    environ = {"PBS_NODEFILE": str(nodes), "STAND_IN_ENTER": enter, "FABLINT_HOME": str(tmp_path / "home")}
    done = slurm.run(["sh", "-c", f'PATH={programs}:$PATH exec "$@"', "sh", sys.executable, "-c", ask], **environ)
    answers = [("nid001000", "nid001000\nhi\n", ""), ("nid001001", "nid001001\nhi\n", "")]
    assert done.stdout == f"{answers} ['nid001099']\n", done.stderr
