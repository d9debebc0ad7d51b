"""Nothing of the folder in which fablint is started, and no PYTHONPATH, is executed on a host: root may stand anywhere.

The collector and the pinger run for real, here and over fakes of ssh, srun and pbsdsh that run here, in the current
folder and with the environment, what they should run elsewhere.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fablint.cluster import everywhere
from fablint.cluster.pbsdsh import over_pbsdsh
from fablint.model import Allocation, Answer
from fablint.snapshot import command_to_collect
from fablint.snapshot.collecting import unpack
from fablint.snapshot.pinging import pinger

MODULES = ("base64", "json", "selectors", "site", "sitecustomize", "fablint")
PROGRAMS = ("sh", "timeout", "uname", "tail", "ip", "ping", "python3")
FAKES = {  # of launchers: they run the command here, once, in the current folder
    "ssh": 'while [ "${1#-}" != "$1" ]; do shift; done; shift; exec /bin/sh -c "$*"',
    "srun": 'while [ "${1#-}" != "$1" ]; do case $1 in --jobid|--nodelist|--nodes|--ntasks) shift;; esac; shift; done\n'
    '"$@" 2>&1 | sed "s/^/0: /"',
    "pbsdsh": 'shift; exec "$@"',
}
HERE = os.uname().nodename


@pytest.fixture
def planted(staged, tmp_path, monkeypatch) -> Path:
    """Modules and programs that leave a file behind, in the current folder and on PYTHONPATH; the file is returned."""
    trace = tmp_path / "executed"
    for folder in (tmp_path / "current", tmp_path / "pythonpath"):
        folder.mkdir()
        for name in MODULES:
            (folder / f"{name}.py").write_text(f"open({str(trace)!r}, 'a').write('{folder.name}/{name}.py ')\n")
    for name in PROGRAMS:
        program = tmp_path / "current" / name
        program.write_text(f'#!/bin/sh\nprintf "%s " "{name}" >>{trace}\nexec {shutil.which(name)} "$@"\n')
        program.chmod(0o755)
    (tmp_path / "launchers").mkdir()
    for name, text in FAKES.items():
        program = tmp_path / "launchers" / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    monkeypatch.chdir(tmp_path / "current")
    environ = {"PYTHONPATH": str(tmp_path / "pythonpath"), "PYTHONSTARTUP": "json.py", "PYTHONINSPECT": ""}
    environ |= {"PATH": f".::{tmp_path / 'launchers'}:{os.environ['PATH']}"}
    staged.variables |= environ
    for name, value in environ.items():  # ClusterShell, which starts ssh, has that of the process
        monkeypatch.setenv(name, value)
    return trace


def commands() -> dict[str, tuple[list[str], str, str]]:
    """Every program that hosts run: its command, its stdin, the mark of its answer."""
    table = [
        {"host": "me", "own": socket.gethostname(), "rails": {"r0": ["127.0.0.1", 1500]}},
        {"host": "b", "own": "b", "rails": {"r0": ["127.0.0.2", 1500]}},
    ]
    return {
        "collector": (*command_to_collect("quick"), "fablint_snapshot"),
        "pinger": (*pinger(table, [1], 3, "quick"), "fablint_reach"),
    }


def test_the_planted_files_are_executed_by_an_interpreter_that_is_not_isolated(planted, staged):
    """Else the other tests would show nothing."""
    words, text, _ = commands()["collector"]
    argv = [word for word in words if word != "-I"]
    subprocess.run(argv, input=text, text=True, capture_output=True, check=False, env=staged.variables)
    assert "base64.py" in planted.read_text()


@pytest.mark.parametrize("name", commands())
def test_the_interpreter_alone_is_isolated(planted, staged, name):
    """Without the frame, which changes the folder: launchers that a site wraps may do as they like."""
    argv, text, mark = commands()[name]
    safe = {**staged.variables, "PATH": os.environ["PATH"].removeprefix(".::")}
    done = subprocess.run(argv, input=text, text=True, capture_output=True, check=False, env=safe)
    assert unpack(done.stdout, mark), done.stderr
    assert not planted.exists()


@pytest.mark.parametrize("name", commands())
@pytest.mark.parametrize("launcher", ["none", "ssh", "srun", "pbsdsh"])
def test_no_planted_file_is_executed(planted, staged, launcher, name):
    argv, text, mark = commands()[name]
    answers: list[Answer] = []
    if launcher == "pbsdsh":
        answers += over_pbsdsh(staged, [HERE], argv, text, 30.0).answers.values()
    else:
        job = {"scheduler": "slurm", "job": "1"} if launcher == "srun" else {}
        hosts = (HERE, "another") if launcher == "ssh" else (HERE,)
        answers += everywhere(staged, Allocation(hosts, "test", **job), argv, text, 30.0)
    assert answers and all(unpack(answer.output, mark) for answer in answers), answers
    assert not planted.exists(), planted.read_text()


def test_a_job_imports_nothing_of_the_folder_in_which_it_runs(planted, monkeypatch):
    """Job scripts begin in the user's folder; test_check_cluster_options.py shows that they have this command.

    PYTHONPATH may be what provides fablint itself: it is that of whoever submits.
    """
    monkeypatch.delenv("PYTHONPATH")
    argv = [sys.executable, "-P", "-m", "fablint.cli", "--version"]
    assert subprocess.run(argv, capture_output=True, check=False).returncode == 0
    assert not planted.exists()
