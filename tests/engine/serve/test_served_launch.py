"""Launches that stay: one plan after the other is measured by the same ranks."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from fablint.errors import UsageError
from fablint.measure import EngineOptions, EngineOutcome, Mpiexec, NoProgress, ServedLaunch, run_engine
from fablint.measure.launcher_choice import find_launchers, find_rendezvous
from fablint.measure.launchers.launcher import Death, Launch
from fablint.measure.served_launch import LaunchSetup, members_of, request_text
from fablint.model import Plan, PlanRow, Slots
from fablint.plan.rows.row_text import parse_row
from fablint.store import read_run
from fablint.system import System
from tested_mpis import built_engine, tested_mpis as selected_mpis

ROW = "latency --transport {} --sizes 8 --samples 20"
ENDLESS = "latency --transport {} --pattern all-pairs --sizes 8 --repeats 500 --budget 0.05"
NO_LAUNCH = cast("Launch", None)
ENGINE = built_engine(selected_mpis()[0])


@dataclass
class Bench:
    """Plans that are measured by one launcher, over a transport that it suits."""

    folder: Path
    launcher: Mpiexec
    transport: str
    served: ServedLaunch = field(default_factory=ServedLaunch)

    def measure(self, name: str, row: str = ROW, ranks: int = 3, words: tuple[str, ...] = ()) -> EngineOutcome:
        plan = Plan(ranks, (PlanRow(parse_row(row.format(self.transport).split()), 1, 1.0),))
        options = EngineOptions(words, served=self.served)
        return run_engine(System(), NoProgress(), self.launcher, ENGINE, plan, self.folder / name, options=options)

    def pids(self, name: str) -> list[int]:
        return list(read_run(self.folder / name).facts.rank_pid)


@pytest.fixture(params=["mpi", "direct"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    if request.param == "mpi":
        launcher = find_launchers(System(), ENGINE.mpicxx, ENGINE.libraries).launchers[0]
        bench = Bench(tmp_path, launcher, "mpi")
    else:
        bench = Bench(tmp_path, find_rendezvous(System(), "direct").launchers[0], "tcp")
    yield bench
    bench.served.close()


def _lives(pid: int) -> bool:
    """Does the process run? A zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_plans_of_one_launch_are_measured_by_the_same_ranks(bench: Bench) -> None:
    outcomes = [bench.measure("a.run"), bench.measure("b.run")]
    assert [(one.status, one.error, one.is_new, one.is_written) for one in outcomes] == [
        (0, "", True, True),
        (0, "", False, True),
    ]
    assert outcomes[0].start_s > 0
    assert outcomes[1].start_s == 0
    assert bench.pids("a.run") == bench.pids("b.run")
    bench.served.close()
    assert not any(map(_lives, bench.pids("a.run")))


def test_another_number_of_ranks_is_another_launch(bench: Bench) -> None:
    assert [bench.measure("a.run").is_new, bench.measure("b.run", ranks=2).is_new] == [True, True]
    assert not any(map(_lives, bench.pids("a.run")))


def test_a_plan_of_fewer_ranks_on_each_host_is_measured_by_some_of_the_ranks(tmp_path: Path) -> None:
    launcher = find_rendezvous(System(), "direct").launchers[0]
    bench = Bench(tmp_path, launcher, "tcp", ServedLaunch(fewest_each=3))
    plan = Plan(2, (PlanRow(parse_row(ROW.format("tcp").split()), 1, 1.0),), (Slots("localhost", 2),))
    try:
        for name, ranks in (("a.run", 2), ("b.run", 3)):
            now = replace(plan, ranks=ranks, slots=(Slots("localhost", ranks),))
            options = EngineOptions(served=bench.served)
            outcome = run_engine(System(), NoProgress(), launcher, ENGINE, now, tmp_path / name, options=options)
            assert (outcome.status, outcome.is_new) == (0, name == "a.run")
        assert bench.pids("a.run") == bench.pids("b.run")[:2]
    finally:
        bench.served.close()


def test_the_ranks_of_a_plan_are_the_first_ones_of_its_hosts() -> None:
    launched = Plan(7, (), (Slots("a", 2), Slots("b", 3), Slots("c", 2)))

    def members(*slots: tuple[str, int]) -> list[int] | None:
        found = members_of(Plan(sum(ranks for _, ranks in slots), (), tuple(Slots(*one) for one in slots)), launched)
        return None if found is None else list(found)

    assert members(("a", 1), ("b", 1), ("c", 1)) == [0, 2, 5]
    assert members(("a", 2), ("c", 2)) == [0, 1, 5, 6]
    assert members(("a", 2), ("b", 3), ("c", 2)) == list(range(7))
    assert members(("a", 3), ("b", 1)) is None  # more ranks than there are
    assert members(("b", 1), ("a", 1)) is None  # in another order
    assert members(("b", 1), ("c", 1)) is None  # without rank 0, which reads the requests
    assert members(("a", 1), ("d", 1)) is None
    assert members_of(Plan(7, ()), launched) is None
    assert list(members_of(Plan(3, ()), Plan(3, ())) or ()) == [0, 1, 2]


def test_a_death_that_the_launcher_reports_has_the_number_of_the_plan() -> None:
    served, plan = ServedLaunch(fewest_each=2), Plan(2, (), (Slots("a", 1), Slots("b", 1)))
    setup = LaunchSetup.of(Path("mpiexec"), Path("engine"), {}, ())
    launches = []
    served.measure(setup, plan, " ".join, lambda *given: launches.append(given) or NO_LAUNCH)
    ((launched, words, text),) = launches
    assert (launched.ranks, words, text) == (4, ["--serve"], "--only-ranks 0,2")
    assert served.death_in_plan(Death(rank=2)) == Death(rank=1)
    assert served.death_in_plan(Death(rank=3)) == Death(host="b")
    assert served.death_in_plan(Death(pid=7)) == Death(pid=7)


def test_a_refused_plan_ends_the_launch_and_the_next_one_starts_another(bench: Bench) -> None:
    bench.measure("a.run")
    refused = bench.measure("a.run")
    assert refused.status == 2
    assert "a.run exists: choose another -o" in refused.error
    assert bench.measure("b.run").is_new


def test_a_rank_that_dies_between_two_plans_is_named_in_the_next_one(bench: Bench) -> None:
    bench.measure("a.run")
    first, *_, last = bench.pids("a.run")
    os.kill(last, signal.SIGKILL)
    outcome = bench.measure("b.run", ENDLESS)
    assert outcome.status == 3
    assert not outcome.is_new
    assert outcome.deaths or outcome.failed
    assert not _lives(first)
    assert bench.measure("c.run").is_new


def test_ranks_end_when_nothing_more_is_requested(bench: Bench) -> None:
    bench.measure("a.run")
    bench.served.release()
    bench.served.close()
    assert not any(map(_lives, bench.pids("a.run")))


def test_a_request_has_the_rows_and_the_options_of_its_run() -> None:
    plan = Plan(2, (PlanRow(parse_row(ROW.format("tcp").split()), 1, 1.0),))
    text = request_text(plan, Path("a b.run"), ["--resume", "--threads", "--epoch", "1.5"])
    lines = ["--output a b.run", "--resume", "--epoch 1.5", *plan.text.splitlines(), "", ""]
    assert text == "\n".join(lines)
    with pytest.raises(UsageError, match="has a line break"):
        request_text(plan, Path("a\nb.run"), [])
