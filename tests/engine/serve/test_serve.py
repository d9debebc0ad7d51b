"""`fablint-engine --serve`: ranks that stay, and measure one request after the other."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from real_mpi import LIMIT_S, Mpi, one_line, ranks_of, wait_until, with_signal

from fablint.store import missing_rounds, read_run
from pinned import pinned_by

PINNED = pinned_by("engine.toml", __file__)

ROW = "latency --name {} --pattern all-pairs --sizes 8 --samples 3"
LONG = "latency --name long --pattern all-pairs --repeats 300 --sizes 8 --budget 0.02"


def request(run: Path, *lines: str) -> str:
    """The text of a request; options of the run are lines, too."""
    return "\n".join([f"--output {run}", *lines]) + "\n\n"


def events(output: str, kind: str) -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in output.splitlines() if line.startswith("{"))
    return [line for line in lines if line["fablint-engine"] == kind]


class Serving:
    """An engine that serves, steered by its standard input."""

    def __init__(self, argv: list[str], environ: dict[str, str]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environ, start_new_session=True
        )

    def send(self, text: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def next(self, kind: str) -> dict[str, Any]:
        """Wait for an event of this kind."""
        assert self.process.stdout
        for line in self.process.stdout:
            if found := events(line, kind):
                return found[0]
        raise AssertionError(f"the engine ended without {kind}: {self.process.communicate()[1]}")

    def end_input(self) -> tuple[int, str]:
        """Close standard input; return the exit status and what was printed on stderr."""
        _, errors = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, errors


@pytest.fixture
def serving(mpi: Mpi) -> Iterator[Serving]:
    """Four ranks that serve."""
    engine = Serving(mpi.argv(4, "--serve"), mpi.environ())
    yield engine
    for pid in [*ranks_of(engine.process), engine.process.pid]:
        with_signal(pid, signal.SIGKILL)
    engine.process.communicate()


def test_requests_are_measured_by_the_same_ranks_into_several_runs(mpi: Mpi, tmp_path: Path) -> None:
    first, second = tmp_path / "a b.run", tmp_path / "c.run"
    text = request(first, ROW.format("near")) + request(second, ROW.format("far"), "# a comment", ROW.format("next"))
    text += request(first, "--resume", ROW.format("near") + " --only-rounds none", ROW.format("later")) + "end\n"
    ended = mpi.run(4, "--serve", text=text)
    assert ended.status == 0, ended.errors
    assert ended.errors.count("started: 4 ranks") == ended.errors.count("ended: status 0") == 1
    assert [(line["request"], line["status"]) for line in events(ended.output, "end")] == [(1, 0), (2, 0), (3, 0)]
    rows = [(line["request"], line["row"], line["state"]) for line in events(ended.output, "row")]
    assert rows == [(1, "near", "complete"), (2, "far", "complete"), (2, "next", "complete"), (3, "later", "complete")]
    assert [line["wake_s"] >= 0 for line in events(ended.output, "begin")] == [True] * 3
    runs = [read_run(path) for path in (first, second)]
    assert [run.facts.rows for run in runs] == [["near", "later"], ["far", "next"]]
    assert all(run.state == "complete" and not any(map(missing_rounds, run.rows)) for run in runs)
    assert runs[0].facts.rank_pid == runs[1].facts.rank_pid


def test_a_request_may_be_for_some_of_the_ranks(mpi: Mpi, tmp_path: Path) -> None:
    """They are numbered anew, for point-to-point messages, collectives and windows; other ranks wait for their turn."""
    runs = [tmp_path / f"{number}.run" for number in range(4)]
    rows = [ROW.format("latency"), "allreduce --sizes 8 --samples 3", "put_latency --sizes 8 --samples 3"]
    some = [request(runs[at], f"--only-ranks {few}", *rows[:-1]) for at, few in ((1, "0,2-3"), (2, "0,2-3"))]
    last = request(runs[3], "--only-ranks 0,3", *rows)
    ended = mpi.run(4, "--serve", text="".join([request(runs[0], *rows[:2]), *some, last, "end\n"]))
    assert ended.status == 0, ended.errors
    facts = [read_run(run).facts for run in runs]
    pids = facts[0].rank_pid
    assert [one.rank_pid for one in facts] == [pids, [pids[0], *pids[2:]], [pids[0], *pids[2:]], [pids[0], pids[3]]]
    assert all(not any(map(missing_rounds, read_run(run).rows)) for run in runs)


@pytest.mark.parametrize("ranks", ["1-2", "0,4", "0,2,1", "none", "0,0"])
def test_ranks_that_cannot_measure_a_request_are_refused(mpi: Mpi, tmp_path: Path, ranks: str) -> None:
    text = request(tmp_path / "a.run", f"--only-ranks {ranks}", ROW.format("latency"))
    ended = mpi.run(4, "--serve", text=text + "end\n")
    assert ended.status == 2
    assert f"--only-ranks {ranks}: give ranks from 0 to 3" in one_line(ended.error_lines)


def test_a_request_after_a_while_finds_the_ranks(serving: Serving, tmp_path: Path) -> None:
    for name in ("a", "b"):
        serving.send(request(tmp_path / f"{name}.run", ROW.format(name)))
        assert serving.next("end")["status"] == 0
    serving.send("end\n")
    assert serving.end_input()[0] == 0
    assert read_run(tmp_path / "b.run").state == "complete"


def test_the_end_of_the_input_ends_a_request_after_its_round(serving: Serving, tmp_path: Path) -> None:
    serving.send(request(tmp_path / "a.run", LONG))
    assert serving.next("rounds")["done"] > 0
    status, errors = serving.end_input()
    assert status == 3, errors
    run = read_run(tmp_path / "a.run")
    assert run.state == "interrupted"
    assert 0 < len(missing_rounds(run.rows[0])) < 900


def test_the_end_of_the_input_ends_ranks_that_wait(serving: Serving, tmp_path: Path) -> None:
    serving.send(request(tmp_path / "a.run", ROW.format("latency")))
    serving.next("end")
    assert serving.end_input()[0] == 0


def test_a_signal_ends_ranks_that_wait(serving: Serving, tmp_path: Path) -> None:
    serving.send(request(tmp_path / "a.run", ROW.format("latency")))
    serving.next("end")
    for pid in ranks_of(serving.process):
        with_signal(pid, signal.SIGINT)
    assert serving.process.wait(LIMIT_S) == 0


def epoll_descriptors(pid: int) -> int:
    links = [descriptor.readlink().name for descriptor in Path(f"/proc/{pid}/fd").iterdir()]
    return links.count("anon_inode:[eventpoll]")


def test_open_mpi_waits_by_epoll_unless_the_user_chooses(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """poll(2) takes the longer the more connections a rank has, and rank 0 has most: its latencies would be higher."""
    if mpi.name != "openmpi":
        pytest.skip("a variable of Open MPI")
    counts = []
    for chosen in ("poll", None):
        if chosen:
            monkeypatch.setenv("OMPI_MCA_opal_event_include", chosen)
        else:
            monkeypatch.delenv("OMPI_MCA_opal_event_include")
        engine = Serving(mpi.argv(2, "--serve"), mpi.environ())
        engine.send(request(tmp_path / f"{chosen}.run", ROW.format("near")))
        engine.next("end")
        counts.append([epoll_descriptors(pid) for pid in ranks_of(engine.process)])
        engine.end_input()
    by_poll, by_default = counts
    assert min(by_default) > max(by_poll)


def test_a_rank_that_dies_between_two_requests_ends_the_launch(serving: Serving, tmp_path: Path) -> None:
    serving.send(request(tmp_path / "a.run", ROW.format("latency")))
    serving.next("end")
    with_signal(ranks_of(serving.process)[2], signal.SIGKILL)
    assert serving.process.wait(LIMIT_S) != 0
    wait_until(lambda: not ranks_of(serving.process), "the end of the other ranks")
    assert read_run(tmp_path / "a.run").state == "complete"


def test_ranks_without_a_request_end_at_their_limit(mpi: Mpi) -> None:
    engine = Serving(mpi.argv(2, "--serve", "--idle-limit", "0.3"), mpi.environ())
    assert engine.process.wait(LIMIT_S) == 0
    assert PINNED["fablint-engine: no request"] in engine.process.communicate()[1]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["latncy"], "request:1: unknown kernel 'latncy': see fablint-engine --list"),
        (["--quiet", "latency"], "a request of --serve has no option --quiet"),
        (["--resume", "latency"], "is not a run directory: there is nothing to resume"),
        ([], "request: no row in the plan: write one per line, such as latency --pattern pair"),
    ],
)
def test_a_request_that_is_refused_is_the_last_one(mpi: Mpi, tmp_path: Path, lines: list[str], message: str) -> None:
    text = request(tmp_path / "a.run", *lines) + request(tmp_path / "b.run", ROW.format("latency")) + "end\n"
    ended = mpi.run(2, "--serve", text=text)
    assert ended.status == 2
    assert message in one_line(ended.error_lines)
    assert not (tmp_path / "b.run").exists()


def test_rows_and_runs_are_not_on_the_command_line(mpi: Mpi) -> None:
    for words in (["latency"], ["--plan", "-"], ["-o", "a.run"], ["--resume", "-o", "a.run"]):
        ended = mpi.run(2, "--serve", *words)
        assert ended.status == 2
        assert PINNED["--serve takes rows, -o"] in one_line(ended.error_lines)
    ended = mpi.run(2, "--only-ranks", "0", "latency")
    assert one_line(ended.error_lines) == PINNED["--only-ranks is an option"]
