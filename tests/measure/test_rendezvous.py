"""Ranks without MPI: `fablint-engine --rendezvous`, with one process for each rank or for several ranks."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fablint.errors import UsageError
from fablint.measure import NoProgress, find_launchers, run_engine
from fablint.measure.launchers.direct import Direct
from fablint.measure.launchers.launcher import Death
from fablint.model import Plan, PlanRow, Slots
from fablint.plan.rows.row_text import parse_row
from fablint.system import System
from tested_mpis import built_engine, tested_mpis as selected_mpis

TOKEN = "0123456789abcdef"
LIMIT_S = 60

Join = Callable[..., subprocess.Popen[str]]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def join() -> Iterator[Join]:
    """Starts processes of one run; each is given its ranks and options."""
    engine = built_engine(selected_mpis()[0]).path
    place = f"127.0.0.1:{free_port()}"
    processes: list[subprocess.Popen[str]] = []

    def start(ranks: str, *options: str | Path, count: int = 2, token: str = TOKEN) -> subprocess.Popen[str]:
        argv = [str(engine), "--rendezvous", place, "--rank", ranks, "--ranks", str(count), *map(str, options)]
        environ = {**System().environ, "FABLINT_TOKEN": token}
        pipe = subprocess.PIPE
        processes.append(
            subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, env=environ)
        )
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


def test_two_processes_measure_over_tcp_without_mpi(join: Join, tmp_path: Path) -> None:
    row = ("latency", "--transport", "tcp", "--sizes", "8", "--samples", "20")
    first = join("0", *row, "-o", tmp_path / "a.run")
    stranger = join("1", token="another token"[:7] + "0123456789")
    assert stranger.wait(LIMIT_S) == 2
    assert stranger.stderr is not None
    refusal = stranger.stderr.read()
    assert refusal.endswith("refuses rank 1: it has another token\n")
    assert TOKEN not in refusal
    second = join("1")
    output, errors = first.communicate(timeout=LIMIT_S)
    assert (first.returncode, second.wait(LIMIT_S)) == (0, 0), errors
    assert output.startswith("# OSU MPI Latency Test")
    attributes = json.loads((tmp_path / "a.run/zarr.json").read_text())["attributes"]
    assert (attributes["mpi"], attributes["state"], attributes["ranks"]) == (None, "complete", 2)
    assert TOKEN not in json.dumps(attributes)


def test_a_rank_that_is_killed_ends_the_run_with_its_name(join: Join, tmp_path: Path) -> None:
    run = tmp_path / "a.run"
    row = ("latency", "--transport", "tcp", "--pattern", "all-pairs", "--repeats", "1000", "--sizes", "8")
    first = join("0-1", *row, "--budget", "0.02", "-o", run, count=3)
    victim = join("2", count=3)
    deadline = time.monotonic() + LIMIT_S
    while not any(run.glob("latency/count/c.*")):  # cells are on the disk
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(victim.pid, signal.SIGKILL)
    _, errors = first.communicate(timeout=LIMIT_S)
    assert first.returncode == 3, errors
    failed = [line for line in errors.splitlines() if line.startswith("fablint-engine: failed: ")]
    assert failed
    assert all(line.startswith("fablint-engine: failed: rank 2 (") for line in failed)


def test_mpi_transport_is_refused_without_mpi(join: Join) -> None:
    engine = join("0-1", "latency", "--sizes", "8")
    _, errors = engine.communicate(timeout=LIMIT_S)
    assert engine.returncode == 2
    assert errors.splitlines()[-1].startswith("fablint-engine: error: MPI is not started: choose --transport tcp, ")


def test_front_end_measures_without_an_mpi_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = built_engine(selected_mpis()[0])
    monkeypatch.setenv("FABLINT_LAUNCHER", "direct")
    (launcher,) = find_launchers(System(), engine.mpicxx, engine.libraries).launchers
    row = PlanRow(parse_row(["latency", "--transport", "tcp", "--sizes", "8", "--samples", "20"]), 1, 1.0)
    outcome = run_engine(System(), NoProgress(), launcher, engine, Plan(2, (row,)), tmp_path / "a.run")
    assert (outcome.status, outcome.error) == (0, "")


def test_direct_launcher_refuses_other_hosts() -> None:
    with pytest.raises(UsageError, match=r"starts ranks on this machine only, not on n7"):
        Direct().placed([Slots("n7", 1)], [], root=False)


def test_direct_launcher_names_a_killed_rank() -> None:
    lines = ["fablint-engine: rank 3 was ended by signal 9 (Killed)"]
    assert Direct().deaths(lines) == [Death(3, reason="was ended by signal 9 (Killed)")]
