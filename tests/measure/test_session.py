"""The session, with a fake engine that says and does what a test wants; the real one is driven in tests/cli."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import pytest

from fablint.measure import (
    Engine,
    EngineOptions,
    EngineOutcome,
    Mpiexec,
    name_deaths,
    name_host,
    run_engine,
    session,
)
from fablint.measure.launchers.hydra import Hydra
from fablint.measure.launchers.launcher import Death
from fablint.model import Plan, PlanRow, RowSpec
from fact_cases import run_facts
from pinned import pinned_by

PINNED = pinned_by("measure.toml", __file__)

FAKE = Path(__file__).with_name("fake_engine.py")
ON_A_BUSY_MACHINE_S = 3.0  # an interpreter starts within
PLAN = Plan(2, (PlanRow(RowSpec("latency"), 3, 1.0), PlanRow(RowSpec("bandwidth"), 1, 1.0)))


class FakeLauncher(Hydra):
    """Starts one process with this interpreter, whatever the number of ranks."""

    def arguments(self, ranks: int, *, root: bool) -> list[str]:
        return []


@dataclass
class Recorded:
    """Progress as a list."""

    steps: list[tuple[str, int, int, float | None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def step(self, task: str, done: int, total: int, left_s: float | None = None) -> None:
        self.steps.append((task, done, total, left_s))

    def note(self, text: str, event: str = "note", **values: object) -> None:
        self.notes.append(text)


@pytest.fixture
def recorded() -> Recorded:
    """The progress that `play` shows, for tests that look at it before the end."""
    return Recorded()


@pytest.fixture
def play(staged, tmp_path, recorded):
    """Run the fake engine through a script; returns the outcome and what progress was shown."""

    def run(*script: str, plan: Plan = PLAN, **options: EngineOptions) -> tuple[EngineOutcome, Recorded]:
        staged.variables["FAKE_ENGINE_SCRIPT"] = "\n".join(script)
        engine = Engine("key", FAKE, Path("mpicxx"), "", (), "", "")
        mpiexec = Mpiexec(Path(sys.executable), FakeLauncher(), "fake")
        return run_engine(staged, recorded, mpiexec, engine, plan, tmp_path / "x.run", **options), recorded

    return run


def test_the_plan_reaches_the_engine(play):
    outcome, _ = play("say-plan", "exit 2")
    assert outcome == EngineOutcome(2, "latency bandwidth".replace(" ", "\n").splitlines()[0])


def test_rounds_become_progress_that_names_the_row(play):
    outcome, shown = play(
        "say latency: round 1 of 3, 3.1 s left",
        "say latency: round 3 of 3, 1.0 s left",
        "say bandwidth: round 1 of 1",
        "exit 0",
    )
    assert outcome == EngineOutcome(0)
    assert shown.steps == [
        ("row 1 of 2, latency", 1, 3, 3.1),
        ("row 1 of 2, latency", 3, 3, 1.0),
        ("row 2 of 2, bandwidth", 1, 1, None),
    ]


def test_sizes_are_progress_from_the_start_of_the_ranks_on(play):
    plan = Plan(2, (PlanRow(RowSpec("latency", sizes=(8, 64, 512)), 1, 1.0),))
    # A row that is written by size has one round: its end is that of the row, also where the user stopped it.
    script = ("nap 0.5", "say latency: size 1 of 3", "nap 0.5", "say latency: round 1 of 1, 0.0 s left", "exit 0")
    _, shown = play(*script, plan=plan, options=EngineOptions(on_size=lambda: None))
    assert {(task, of, left_s) for task, _, of, left_s in shown.steps} == {("latency, sizes", 3, None)}
    sizes = [done for _, done, _, _ in shown.steps]
    assert sizes == sorted(sizes)
    assert sizes.count(0) >= 1
    assert sizes.count(1) >= 2


def test_the_first_error_line_is_the_reason(play):
    outcome, _ = play("say error: unknown kernel 'latncy'", "say error: another", "exit 2")
    assert outcome == EngineOutcome(2, "unknown kernel 'latncy'")


def test_rows_that_do_not_start_leave_a_written_run(play):
    refused = "say error: transport ucx of row latency: no device"
    outcome, _ = play("make-run", "say ended: status 3", refused, "exit 3")
    assert (outcome.status, outcome.error, outcome.is_written) == (3, refused.removeprefix("say error: "), True)


@pytest.mark.parametrize("end", [[], ["say ended: status 3, not all is written"]])
def test_an_engine_whose_disk_is_full_did_not_write_its_run(play, end):
    outcome, _ = play("make-run", "say error: n1: cannot write x.run/a: No space left on device", *end, "exit 3")
    assert (outcome.status, outcome.is_written) == (3, False)


def test_damaged_payloads_are_status_one(play):
    outcome, _ = play("make-run", "say started: 2 ranks", "exit 1")
    assert outcome == EngineOutcome(1)


def test_a_launcher_that_fails_is_not_taken_for_damaged_payloads(play):
    outcome, _ = play("launcher-says ------", "launcher-says There are not enough slots available", "exit 1")
    assert outcome.status == 3
    assert PINNED["failed: There are not enough"].ends(outcome.error)


def test_a_launcher_that_is_killed_is_not_explained_by_announcements_of_the_ranks(play):
    begin = '{"fablint-engine":"begin","request":3,"wake_s":0.006}'
    outcome, _ = play("say started: 4 ranks", f"launcher-says {begin}", "die 9")
    assert outcome.status == 3
    assert outcome.error.endswith(" by signal 9 (Killed)")


def test_the_engine_names_a_rank_that_stalls(play):
    line = "say failed: rank 5 (nid000007), round 12, partner 3: no message for 60 s"
    outcome, _ = play(line, "launcher-says =   PID 77 RUNNING AT vm", "launcher-says =   EXIT CODE: 3", "exit 3")
    assert outcome.status == 3
    assert [asdict(failed) for failed in outcome.failed] == [
        {"rank": 5, "host": "nid000007", "round": 12, "partner": 3, "reason": "failed (no message for 60 s)"}
    ]
    assert outcome.deaths == ()


@pytest.mark.parametrize(
    "script",
    [
        ("make-run", "say failed: rank 5 (n7), round 12, partner 3: no message for 60 s", "exit 3"),
        ("make-run", "say started: 2 ranks", "launcher-says =   PID 77 RUNNING AT vm", "exit 9"),
        ("launcher-says ssh: connect to host n7 port 22: No route to host", "exit 1"),
    ],
)
def test_the_end_of_the_job_explains_what_ranks_and_launcher_report(play, script):
    outcome, _ = play(*script, options=EngineOptions(why_over=lambda: "Slurm job 8 has ended"))
    assert outcome == EngineOutcome(3, "Slurm job 8 has ended", is_over=True)


def test_a_complete_run_stays_complete_where_the_job_ends_after_it(play):
    outcome, _ = play(
        "make-run", "say started: 2 ranks", "exit 0", options=EngineOptions(why_over=lambda: "Slurm job 8 has ended")
    )
    assert outcome == EngineOutcome(0)


def test_a_rank_that_was_lost_reports_no_component(play):
    outcome, _ = play(
        "say failed: rank 1 (a), round 30, partner 2: no message for 60 s",
        "say failed: rank 2 (b), round 30, partner 1: no message for 60 s",
        "say failed: rank 2 (b), round 30, partner none: did not come to the next round for 62 s",
        "exit 3",
    )
    assert {failed.rank for failed in outcome.failed} == {2}


def test_the_rank_that_most_wait_for_is_named_first(play):
    outcome, _ = play(
        "say failed: rank 0 (a), round 30, partner none: did not come to the next round for 9 s",
        "say failed: rank 1 (b), round 30, partner none: did not come to the next round for 9 s",
        "say failed: rank 1 (b), round 30, partner none: did not come to the next round for 10 s",
        "exit 3",
    )
    assert [failed.rank for failed in outcome.failed] == [1, 1, 0]
    assert [failed.rank for failed in outcome.reported] == [0, 1, 1]


def test_both_ends_of_a_cut_cable_are_named(play):
    outcome, _ = play(
        "say failed: rank 1 (b), round 6, partner 0: no message for 6 s",
        "say failed: rank 0 (a), round 6, partner 1: no message for 6 s",
        "exit 3",
    )
    assert [(failed.rank, failed.partner) for failed in outcome.reported] == [(1, 0), (0, 1)]
    assert outcome.failed == outcome.reported
    assert outcome.error == PINNED["rank 1 on b and rank 0"]


def test_the_number_of_ranks_is_reported_to_the_engine_and_ranks_apart_are_known(play):
    said = "1 rank of 2 was started: the launcher's PMI is not that of this MPI library"
    outcome, _ = play(f"say error: {said}", f"say error: {said}", "exit 1")
    assert outcome == EngineOutcome(2, said, is_disconnected=True)
    outcome, _ = play("launcher-says srun: error: Couldn't find the specified plugin name for mpi/pmix", "exit 1")
    assert outcome.is_disconnected
    outcome, _ = play("say started: 2 ranks", "exit 9")
    assert not outcome.is_disconnected


def test_hosts_outside_of_a_slurm_job_are_no_reason_for_another_launcher(play):
    outcome, _ = play(
        "launcher-says srun: error: Unable to create step for job 14: Requested node configuration is not available",
        "exit 1",
    )
    assert not outcome.is_disconnected
    assert PINNED["is not available (are all"].ends(outcome.error)


def test_a_launcher_that_waits_for_a_host_without_a_name_is_not_waited_for(play, monkeypatch):
    monkeypatch.setattr(session, "UNREACHED_S", 0.5)
    said = "ssh: Could not resolve hostname n7: Name or service not known"
    outcome, _ = play(f"launcher-says {said}", "leave-a-child-that-stalls", "stall")
    assert outcome == EngineOutcome(3, f"the ranks did not start: {said}")
    assert _running(FAKE) == []


def test_a_launcher_that_does_not_end_after_a_rank_ended_in_the_start_is_not_waited_for(play, monkeypatch):
    monkeypatch.setattr(session, "FAILED_S", 0.5)
    outcome, _ = play("launcher-says Primary job  terminated normally, but 1 process returned", "stall")
    error = "the ranks did not start: a rank ended, and the launcher did not end by itself"
    assert outcome == replace(outcome, status=3, error=error)
    assert _running(FAKE) == []


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("[n7:07614] *** Process received signal ***", "[n7:07614] Signal: Segmentation fault (11)"),
        (
            "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
            "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)",
        ),
    ],
)
def test_ranks_that_crash_in_the_start_of_mpi_are_reported_with_their_signal(play, first, reason):
    outcome, _ = play(f"launcher-says {first}", f"launcher-says {reason}", "exit 11")
    assert outcome.status == 3
    assert outcome.error.endswith(f" failed: {reason}")


def test_a_rank_that_is_killed_in_the_start_of_mpi_is_named_with_its_host(play):
    begin, pid, code = "BAD TERMINATION OF ONE OF", "=   PID 77 RUNNING AT n7", "=   EXIT CODE: 9"
    outcome, _ = play(*(f"launcher-says {line}" for line in (begin, pid, code)), "exit 9")
    assert PINNED["failed: a rank on n7 was"].ends(outcome.error)


def test_in_a_group_the_rank_that_does_not_say_that_it_waits_is_the_lost_one(play):
    outcome, _ = play("say stalled: rank 1 (b), round 7: no message from its group for 60 s", "exit 3")
    (failed,) = outcome.failed
    assert (outcome.status, failed.rank, failed.host, failed.round) == (3, 0, None, 7)
    named = name_host(failed, run_facts({"hosts": ["a", "b"], "rank_host": [0, 1]}))
    assert str(named) == PINNED["rank 0 on a failed (no message"]


def test_when_all_of_a_group_wait_no_rank_is_reported(play):
    outcome, _ = play(*(f"say stalled: rank {rank} (a), round 0: no message for 2 s" for rank in (0, 1)), "exit 3")
    (failed,) = outcome.failed
    assert (failed.rank, failed.host) == (None, None)
    assert name_host(failed, {}) == failed


def test_the_launcher_names_a_rank_that_was_killed(play):
    outcome, _ = play("make-run", "launcher-says =   PID 77 RUNNING AT vm", "launcher-says =   EXIT CODE: 9", "exit 9")
    assert (outcome.status, outcome.failed) == (3, ())
    assert outcome.deaths == (Death(None, 77, "vm", "was ended by signal 9 (Killed)"),)


def test_deaths_are_named_by_rank_and_host():
    attributes = {"rank_pid": [70, 77, 90, 90, 50], "hosts": ["a", "b", "c"], "rank_host": [0, 0, 0, 1, 2]}
    deaths = [
        Death(3, None, "10.0.0.2"),
        Death(None, 50, "10.0.0.3"),
        Death(None, 77, "10.0.0.1"),
        Death(None, 90, "b"),
    ]
    named = [(failed.rank, failed.host) for failed in name_deaths(deaths, run_facts(attributes))]
    assert named == [(3, "b"), (4, "c"), (None, "a"), (None, "b")]


def test_a_launcher_that_does_not_start_the_ranks_is_ended_and_quoted(play, monkeypatch):
    monkeypatch.setattr(session, "START_S", ON_A_BUSY_MACHINE_S)
    outcome, _ = play("launcher-says ssh: Could not resolve hostname n7", "leave-a-child-that-stalls", "stall")
    assert outcome == EngineOutcome(3, PINNED["the ranks did not start within"])
    assert _running(FAKE) == []


def test_a_shorter_limit_of_the_start_is_heeded_as_soon_as_it_is_known(play):
    limits = iter([600.0, 600.0, 600.0])
    words = EngineOptions(start_s=lambda: next(limits, 0.5))
    outcome, _ = play("launcher-says   Message:    connect() to 10.150.0.7 failed", "stall", options=words)
    assert outcome.error == PINNED["the ranks did not start within 0"]
    assert outcome.launcher_output == (PINNED["Message: connect() to 10.150.0.7"],)


def test_ranks_that_have_started_may_take_their_time(play, monkeypatch):
    monkeypatch.setattr(session, "START_S", ON_A_BUSY_MACHINE_S)
    outcome, _ = play("say started: 2 ranks", f"nap {ON_A_BUSY_MACHINE_S + 1}", "exit 0")
    assert outcome == EngineOutcome(0)


def test_survivors_that_stalls_are_ended(play, monkeypatch):
    monkeypatch.setattr(session, "FAILED_S", 0.5)
    outcome, _ = play(
        "say failed: rank 1 (b), round 0, partner none: no message for 60 s", "leave-a-child-that-stalls", "stall"
    )
    assert outcome.status == 3
    assert _running(FAKE) == []


def test_ranks_that_stay_in_finalize_are_ended_and_the_run_counts(play, monkeypatch):
    """As ranks of MPICH 5.0.2 did after a complete level."""
    monkeypatch.setattr(session, "END_S", 0.5)
    outcome, shown = play(
        "make-run", "say started: 2 ranks", "say ended: status 0", "leave-a-child-that-stalls", "stall"
    )
    assert outcome == EngineOutcome(0)
    assert shown.notes == [PINNED["the run is complete"]]
    assert _running(FAKE) == []


@pytest.mark.parametrize("status", [1, 3])
def test_the_status_that_the_engine_says_is_that_of_the_run(play, monkeypatch, status):
    monkeypatch.setattr(session, "END_S", 0.5)
    outcome, _ = play("make-run", "say started: 2 ranks", f"say ended: status {status}", "stall")
    assert outcome == EngineOutcome(status)


def test_a_launcher_that_complains_after_the_end_does_not_undo_the_run(play):
    outcome, shown = play("make-run", "say ended: status 0", "launcher-says BAD TERMINATION of a process", "exit 9")
    assert (outcome, shown.notes) == (EngineOutcome(0), [])


def test_a_second_signal_ends_an_engine_that_does_not_stop(play, recorded):
    def twice() -> None:
        for ready in (lambda: len(_running(FAKE)) == 2, lambda: bool(recorded.notes)):
            wait_for(ready)
            os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=twice)
    sender.start()
    outcome, shown = play("make-run", "leave-a-child-that-stalls", "stall")
    sender.join()
    assert (outcome.status, outcome.stopped_by) == (3, signal.SIGINT)
    assert shown.notes == [PINNED["finishing the current round"]]
    assert _running(FAKE) == []


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until it holds, or for a minute: the test goes on to its end in both cases, and does not stall."""
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


def _running(program: Path) -> Sequence[str]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return [line for line in lines if str(program) in line]
