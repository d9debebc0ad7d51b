"""fablint act: drain commands, hosts without suspects, tickets; of preflight, of a verdict, of a run."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from act_cases import EVERY, HOSTS, SWITCH, facts, finding, preflight, verdict

from fablint.act import HostFindings, parse_source, ticket_text
from fablint.errors import UsageError
from fablint.model import State
from fablint_command import COMMAND
from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)

# ------------------------------------------------------------------------------------------------ too many


def failing(count: int, of: int) -> str:
    return preflight({"net.link.mtu": {f"n{number}": "FAIL" for number in range(1, count + 1)}}, of)


@pytest.mark.parametrize(
    ("failed", "of", "options", "refused"),
    [
        (1, 1, (), False),
        (1, 4, (), False),
        (2, 4, (), True),
        (2, 20, (), False),
        (3, 20, (), True),
        (3, 20, ("--most", "3"), False),
        (3, 20, ("--most", "15%"), False),
        (3, 20, ("--most", "0"), True),
        (
            20,
            20,
            (
                "--most",
                "100%",
            ),
            False,
        ),
    ],
)
def test_more_hosts_than_allowed_are_not_drained(fablint, tmp_path, failed, of, options, refused):
    (tmp_path / "found.json").write_text(failing(failed, of))
    done = fablint("act", "found.json", "--drain", *options)
    if refused:
        assert (done.returncode, done.stdout) == (6, "")
        assert PINNED["failed of of hosts would"].filled(failed=failed, of=of).begins(done.stderr)
        assert done.stderr.count("\n") == 1
    else:
        assert (done.returncode, done.stderr) == (0, "")
        assert "scontrol update" in done.stdout


def test_the_other_sections_are_printed_all_the_same(fablint, tmp_path):
    (tmp_path / "found.json").write_text(failing(9, 20))
    done = fablint("act", "found.json")
    assert done.returncode == 6
    assert "# drain\n# refused: too many hosts\n" in done.stdout and "\nn20\n" in done.stdout
    assert "scontrol" not in done.stdout
    printed = json.loads(fablint("act", "found.json", "--json").stdout)
    assert printed["drain"] is None and printed["refused"].startswith("9 of 20 hosts")


def test_a_run_without_its_hosts_drains_one_at_most(fablint, tmp_path):
    (tmp_path / "verdict.json").write_text(verdict())
    done = fablint("act", "verdict.json", "--drain")
    assert done.returncode == 6
    assert "of an unknown number of hosts" in done.stderr


@pytest.mark.parametrize("words", ["x", "-1", "101%", "10.5", ""])
def test_a_limit_that_is_none_is_refused(fablint, tmp_path, words):
    (tmp_path / "found.json").write_text(failing(1, 4))
    done = fablint("act", "found.json", f"--most={words}")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_silent_hosts_are_drained_only_where_most_answered(fablint, tmp_path):
    few, many = ["n1", "n2"], [f"n{number}" for number in range(1, 11)]
    (tmp_path / "few.json").write_text(preflight({}, silent=few))
    assert "NodeName='n[1-2]'" in fablint("act", "few.json", "--drain").stdout
    (tmp_path / "many.json").write_text(preflight({}, silent=many))
    done = fablint("act", "many.json", "--drain", "--most", "999")
    assert "scontrol" not in done.stdout
    assert done.stderr == PINNED["10 of 20 hosts are silent"]


# ------------------------------------------------------------------------------------------------ ticket


def test_the_ticket_tells_part_by_part():
    assert ticket_text(HostFindings(EVERY, HOSTS)) == PINNED["fablint found 4 faults, 1"]


def test_findings_of_one_part_stand_together():
    found = [finding("nic", "n1/a", "net.x: one"), SWITCH, finding("nic", "n1/a", "net.y: two")]
    assert ticket_text(HostFindings(found)).count("nic n1/a") == 1


def test_many_values_of_a_check_are_one_entry():
    found = [finding("nic", f"n{number}/a", f"net.errors: {number}", State.SUSPECT) for number in range(1, 100)]
    text = ticket_text(HostFindings(found))
    assert PINNED["nic n 1-99 /a SUSPECT net.errors"] in text
    assert text.startswith("fablint found 1 suspect\n")


def test_lines_of_a_ticket_fit_a_mail():
    long = finding("host", "n1", "word " * 60, next_step="step " * 60)
    assert max(map(len, ticket_text(HostFindings([long])).splitlines())) <= 76


def test_nothing_found_is_said():
    assert ticket_text(HostFindings([finding("host", "n1", state=State.OK)])) == PINNED["fablint found no part"]


# ------------------------------------------------------------------------------------------------ sources


def test_a_verdict_and_preflight_are_read_equally():
    assert parse_source(facts(), "x") == HostFindings(EVERY, HOSTS)
    assert parse_source(verdict(), "x") == HostFindings(EVERY, None, verdict="fault")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "x: is not JSON"),
        ("[" * 100_000, "x: is not JSON"),
        ("[]", "x: has no findings"),
        ('{"findings": 3}', "x: has no findings"),
        ('{"findings": [{"state": "BAD", "component": "host", "name": "a"}]}', "x: findings.0.state: "),
        ('{"findings": [], "hosts": "a"}', "x: hosts: is not a list of names"),
        ('{"findings": [], "hosts": [1]}', "x: hosts: is not a list of names"),
    ],
)
def test_what_is_neither_is_refused(text, why):
    with pytest.raises(UsageError, match="give a run") as caught:
        parse_source(text, "x")
    assert str(caught.value).startswith(why)


# ------------------------------------------------------------------------------------------------ the verb


def test_all_three_with_headings(fablint, tmp_path):
    (tmp_path / "found.json").write_text(facts())
    done = fablint("act", "found.json", "--most", "999")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in done.stdout.splitlines() if line.startswith("#")] == ["# drain", "# hostfile", "# ticket"]
    assert done.stdout.count("scontrol update ") == 2
    assert "\nnid001008\n" in done.stdout
    assert list(tmp_path.iterdir()) == [tmp_path / "found.json"]  # nothing else was written


def test_one_alone_has_no_heading(fablint, tmp_path):
    (tmp_path / "found.json").write_text(facts())
    assert fablint("act", "found.json", "--healthy-hosts").stdout == "nid001001\nnid001002\nnid001006\nnid001008\n"
    assert fablint("act", "found.json", "--ticket").stdout.startswith("fablint found 4 faults")
    assert fablint("act", "found.json", "--drain", "--most", "3", "--scheduler", "pbs").stdout.startswith(
        "pbsnodes -o -C "
    )


def test_from_stdin_as_json(tmp_path):
    words = [*COMMAND, "act", "--json", "--most", "40%"]
    done = subprocess.run(words, input=facts(), cwd=tmp_path, capture_output=True, text=True, check=True)
    reported = json.loads(done.stdout)
    assert list(reported) == ["format", "drain", "hostfile", "ticket"]
    assert reported["drain"][0]["hosts"] == ["nid001003", "nid001007"]
    assert list(reported["drain"][0]) == ["reason", "hosts", "command"]
    assert reported["hostfile"] == ["nid001001", "nid001002", "nid001006", "nid001008"]


def test_the_scheduler_that_is_installed(fablint, tmp_path):
    (tmp_path / "found.json").write_text(facts())
    (tmp_path / "bin").mkdir()
    ran = tmp_path / "ran"
    for name in ("pbsnodes", "scontrol"):
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\ntouch {ran}\n")
        program.chmod(0o755)
        done = fablint("act", "found.json", "--drain", "--most", "999", PATH=str(tmp_path / "bin"))
        assert done.stdout.startswith("pbsnodes -o" if name == "pbsnodes" else "scontrol update")
    assert not ran.exists()  # printed, never executed


def test_a_bare_verdict_does_not_say_its_hosts(fablint, tmp_path):
    (tmp_path / "verdict.json").write_text(verdict())
    done = fablint("act", "verdict.json", "--healthy-hosts")
    assert (done.returncode, done.stdout) == (2, "")
    line = "fablint: verdict.json: does not name the measured hosts: give the run directory\n"
    assert done.stderr == line
    every = fablint("act", "verdict.json", "--most", "999")
    assert every.returncode == 0
    assert PINNED["hostfile the hosts"] in every.stdout


def test_a_run_knows_its_hosts(fablint, tmp_path):
    fablint("simulate", "--fabric", "mesh", "--shape", "8x2", "--full", "--fault", "host:h03:-40%", "-o", "x.run")
    none = fablint("act", "x.run")
    assert (none.returncode, none.stderr) == (2, PINNED["x.run has no verdict: fablint"])
    assert fablint("report", "x.run").returncode == 1
    assert fablint("act", "x.run", "--healthy-hosts").stdout.split() == [f"h{one:02d}" for one in range(16) if one != 3]
    drained = fablint("act", "x.run", "--drain", "--scheduler", "slurm").stdout
    assert shlex.split(drained)[2] == "NodeName=h03"
    assert "Reason='fabric." in drained


def test_a_hostfile_without_hosts_is_said(fablint, tmp_path):
    (tmp_path / "found.json").write_text(facts([finding("host", "a", "x.y: z")], ["a"]))
    done = fablint("act", "found.json", "--healthy-hosts")
    assert (done.returncode, done.stdout.strip()) == (3, "")
    assert done.stderr == PINNED["none of 1 hosts is left"]


@pytest.mark.parametrize("name", ["nope.json", "empty.json", "x.run"])
def test_bad_input_is_one_line(fablint, tmp_path, name):
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "x.run").mkdir()
    done = fablint("act", name)
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert done.returncode in (2, 3)
    assert name in done.stderr
    assert Path(tmp_path / "x.run").exists()


def test_a_host_that_is_not_counted_as_fit_is_not_in_the_hostfile(fablint, tmp_path):
    marks = {
        "tool.cxi.loopback": {"n2": "ERROR", "n3": "SKIP"},
        "log.gpu": {"n4": "ERROR"},
        "host.load": {"n5": "PASS"},
    }
    (tmp_path / "found.json").write_text(preflight(marks, 6, silent=["n6"]))
    assert fablint("act", "found.json", "--healthy-hosts").stdout.split() == ["n1", "n3", "n5"]
    assert fablint("act", "found.json", "--healthy-hosts", "--with-warnings").stdout.split() == ["n1", "n3", "n5"]
