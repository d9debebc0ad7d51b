"""Ranks that are killed and users that interrupt, with the real engine: nothing stalls, no data is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from fablint.store import read_run
from fablint_command import COMMAND, Fablint
from fact_cases import attributes_of
from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)

ROWS = ("latency --pattern all-pairs --sizes 8 --repeats 20 --budget 0.05", "bandwidth --sizes 8 --samples 1")
RANKS = 4


@pytest.fixture
def fablint(fablint_in_process: Fablint) -> Fablint:
    return fablint_in_process


class Running:
    """A measurement in progress."""

    def __init__(self, folder: Path, mpicxx: Path | None) -> None:
        self.path = folder / "x.run"
        self.chosen = ["--mpicxx", str(mpicxx)] if mpicxx else []
        words = ["measure", "-n", str(RANKS), "-r", ROWS[0], "-r", ROWS[1], "-o", "x.run", *self.chosen]
        self.process = subprocess.Popen(
            [*COMMAND, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._wait_for_cells()

    def _wait_for_cells(self) -> None:
        count = self.path / "latency" / "count"
        deadline = time.monotonic() + 120
        while not any(path.read_bytes().strip(b"\0") for path in count.glob("c.*")):
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    @property
    def attributes(self) -> dict:
        return attributes_of(read_run(self.path))

    def end(self) -> tuple[int, str]:
        _, chatter = self.process.communicate(timeout=120)
        return self.process.returncode, chatter.splitlines()[-1]

    def survivors(self) -> list[int]:
        found = []
        for pid in self.attributes["rank_pid"]:
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if b"fablint-engine" in command:
                found.append(pid)
        return found


@pytest.fixture
def running(tmp_path, mpicxx):
    started = Running(tmp_path, mpicxx)
    yield started
    started.process.kill()
    started.process.wait()


def resumed(fablint, running: Running) -> None:
    done = fablint("-q", "resume", "x.run", *running.chosen)
    assert (done.returncode, done.stdout.partition(" ")[0], done.stderr) == (0, "LOCAL", "")
    assert "; run complete\n" in done.stdout
    assert (running.path / "report" / "index.html").exists()
    again = fablint("resume", "x.run", *running.chosen)
    assert (again.returncode, again.stdout) == (0, "x.run: nothing is missing\n")


def test_a_killed_rank_ends_the_run_and_its_host_is_named(fablint, running):
    os.kill(running.attributes["rank_pid"][2], signal.SIGKILL)
    status, line = running.end()
    host = running.attributes["hosts"][0]
    assert status == 3
    assert PINNED["on host was ended by signal"].filled(host=host) in line
    assert running.attributes["state"] == "interrupted"
    (lost,) = running.attributes["lost"]
    assert lost["host"] == host
    assert lost["rank"] in (2, None)  # Hydra does not know which
    assert running.survivors() == []
    analysed = fablint("analyse", "x.run", "--json")
    assert analysed.returncode == 3
    assert any(finding["text"]["name"] == host for finding in json.loads(analysed.stdout)["findings"])
    resumed(fablint, running)


def test_ctrl_c_finishes_the_round_and_keeps_it(fablint, running):
    running.process.send_signal(signal.SIGINT)
    status, line = running.end()
    assert (status, line) == (130, PINNED["interrupted; measured rounds"])
    assert running.attributes["state"] == "interrupted"
    assert "lost" not in running.attributes
    assert running.survivors() == []
    resumed(fablint, running)


def test_a_scheduler_s_sigterm_is_an_incomplete_run(running):
    running.process.send_signal(signal.SIGTERM)
    status, line = running.end()
    assert status == 3
    assert line == PINNED["interrupted by SIGTERM: measured"]
    assert running.survivors() == []


def test_all_ranks_killed_at_once(fablint, running):
    for pid in running.attributes["rank_pid"]:
        with suppress(ProcessLookupError):  # the launcher ends the others as soon as it sees one of them dead
            os.kill(pid, signal.SIGKILL)
    status, _ = running.end()
    assert status == 3
    assert running.attributes["state"] == "interrupted"
    resumed(fablint, running)


def test_a_killed_fablint_ends_its_ranks(fablint, running):
    running.process.kill()
    running.process.wait()
    deadline = time.monotonic() + 60
    while running.survivors():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    resumed(fablint, running)
