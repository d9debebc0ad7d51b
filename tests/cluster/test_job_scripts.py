"""Job scripts: what the user asked for stands in them, runs as it was given, and cannot break out."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fablint.cluster import SCHEDULERS, JobRequest
from fablint.cluster.schedulers.pbs import Pbs
from fablint.cluster.schedulers.slurm import Slurm
from fablint.errors import UsageError

WORDS = ("it's", 'a "b"', "$HOME", "`id`", "a\nb", "*", "\\n", "", ";exit 9", "é")


def request(tmp_path, command=("true",), **more):
    return JobRequest(tuple(command), tmp_path, **more)


def directives(text):
    return [line.split(" ", 1)[1] for line in text.splitlines() if line.startswith(("#SBATCH ", "#PBS "))]


def test_slurm_directives(tmp_path):
    asked = request(
        tmp_path,
        hosts=("nid001", "nid003", "nid002"),
        ranks=2,
        time_s=90.2,
        begin="now+1hour",
        account="proj1",
        partition="debug",
        mail_user="me@site.org",
        constraint="gpu&ib",
    )
    assert directives(Slurm().script(asked, Path("/home/50% done/job"))) == [
        "--job-name=fablint",
        "--nodes=3",
        "--nodelist=nid[001-003]",
        "--ntasks-per-node=2",
        "--time=00:01:31",
        "--begin=now+1hour",
        "--account=proj1",
        "--partition=debug",
        '--constraint="gpu&ib"',
        "--mail-user=me@site.org",
        "--mail-type=END,FAIL",
        '--output="/home/50%% done/job/log"',
        "--exclusive",
        "--no-requeue",
        "--no-kill",
    ]


def test_pbs_directives(tmp_path):
    asked = request(
        tmp_path,
        hosts=("n1", "n2"),
        ranks=2,
        time_s=5400,
        begin="2030-01-31T22:00",
        account="proj1",
        partition="workq",
        mail_user="me@site.org",
        constraint="switch=s1",
    )
    assert directives(Pbs().script(asked, Path("/home/job"))) == [
        "-N fablint",
        "-q workq",
        "-A proj1",
        "-a 203001312200",
        "-M me@site.org",
        "-m ae",
        "-o /home/job/log",
        "-l select=1:host=n1:ncpus=2:mpiprocs=2:switch=s1+1:host=n2:ncpus=2:mpiprocs=2:switch=s1",
        "-l place=scatter:excl",
        "-l walltime=01:30:00",
        "-j oe",
        "-r n",
    ]
    assert "-l select=4:ncpus=1:mpiprocs=1" in directives(Pbs().script(request(tmp_path, nodes=4)))


@pytest.mark.parametrize(
    ("text", "option"), [("22:00", "-a 2200"), ("22:00:30", "-a 2200.30"), ("01312200", "-a 01312200")]
)
def test_begin_of_pbs(tmp_path, text, option):
    assert option in directives(Pbs().script(request(tmp_path, begin=text)))


@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=lambda one: one.name)
@pytest.mark.parametrize("field", ["begin", "account", "partition", "mail_user", "constraint"])
@pytest.mark.parametrize("text", ["a\nrm -rf /", 'a" b', "a'b", "a`b`", "a\\", "\x1b[2J"])
def test_texts_that_would_break_out_are_refused(scheduler, field, text, tmp_path):
    with pytest.raises(UsageError) as caught:
        scheduler.script(request(tmp_path, **{field: text}))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("field", "text"), [("begin", "now+1hour"), ("constraint", "gpu&ib")])
def test_texts_that_pbs_has_no_place_for(field, text, tmp_path):
    with pytest.raises(UsageError, match="PBS"):
        Pbs().script(request(tmp_path, **{field: text}))


@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=lambda one: one.name)
def test_the_command_runs_as_it_was_given(scheduler, tmp_path):
    """In its folder, with its words, and its exit status is left behind and handed on."""
    code = "import sys, os; print(ascii(sys.argv[1:]), os.getcwd()); sys.exit(3)"
    folder, place = tmp_path / "it's; here", tmp_path / "job place"
    folder.mkdir()
    place.mkdir()
    asked = JobRequest((sys.executable, "-c", code, *WORDS), folder)
    done = subprocess.run(
        ["/bin/sh"], input=scheduler.script(asked, place), text=True, capture_output=True, check=False
    )
    assert done.stdout == f"{list(WORDS)!a} {folder}\n"
    assert done.returncode == 3
    assert (place / "exit").read_text() == "3\n"


@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=lambda one: one.name)
def test_the_command_reads_its_input_as_it_was_given(scheduler, tmp_path):
    """Nothing in it is for the shell, and it ends where the input ends."""
    text = "\n".join(word for word in WORDS if word) + "\nEND_OF_INPUT \nlast"
    asked = request(tmp_path, (sys.executable, "-c", "import sys; print(ascii(sys.stdin.read()))"), input=text)
    done = subprocess.run(["/bin/sh", "-c", scheduler.script(asked)], text=True, capture_output=True, check=False)
    given = f"{text}\n"
    assert (done.stdout, done.stderr) == (f"{given!a}\n", "")
    with pytest.raises(UsageError, match="the input of a command cannot have a line END_OF_INPUT"):
        scheduler.script(request(tmp_path, input="a\nEND_OF_INPUT\nrm x"))


def test_the_end_of_the_time_is_passed_on(tmp_path):
    """SIGTERM reaches the command, which ends in order; its status counts, not the shell's."""
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.2), sys.exit(3)))\n"
        "print('up', flush=True)\ntime.sleep(60)"
    )
    script = tmp_path / "script"
    script.write_text(Slurm().script(request(tmp_path, (sys.executable, "-c", code)), tmp_path))
    with subprocess.Popen(["/bin/sh", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 3
    assert (tmp_path / "exit").read_text() == "3\n"
