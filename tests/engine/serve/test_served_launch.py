"""Launches that stay: one plan after the other is measured by the same ranks."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from fablint.errors import UsageError
from fablint.measure import EngineOptions, EngineOutcome, Mpiexec, NoProgress, ServedLaunch, run_engine, start_early
from fablint.measure.launcher_choice import find_launchers, find_rendezvous
from fablint.measure.launchers.launcher import Death, Launch
from fablint.measure.served_launch import LaunchSetup, StartOfRanks, members_of, request_text
from fablint.model import Plan, PlanRow, Slots
from fablint.plan.rows.row_text import parse_row
from fablint.store import read_run
from fablint.system import System
from tested_mpis import built_engine, tested_mpis as selected_mpis

ROW = "latency --transport {} --sizes 8 --samples 20"
ENDLESS = "latency --transport {} --pattern all-pairs --sizes 8 --repeats 500 --budget 0.05"
ENGINE = built_engine(selected_mpis()[0])


@dataclass
class FakeLaunch:
    """Ranks that wait, and what they were given."""

    plan: Plan
    words: list[str]
    texts: list[str] = field(default_factory=list)
    is_killed: bool = False

    def poll(self) -> None:
        return None

    def feed(self, text: str) -> None:
        self.texts.append(text)

    def kill(self) -> None:
        self.is_killed = True


def start_fake(launches: list[FakeLaunch]) -> StartOfRanks:
    """Return what starts fakes, and keeps them in the list."""

    def start(plan: Plan, words: Sequence[str]) -> Launch:
        launches.append(FakeLaunch(plan, list(words)))
        return cast("Launch", launches[-1])

    return start


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
    launches: list[FakeLaunch] = []
    served.measure(setup, plan, " ".join, start_fake(launches))
    (launch,) = launches
    assert (launch.plan.ranks, launch.words, launch.texts) == (4, ["--serve"], ["--only-ranks 0,2"])
    assert served.death_in_plan(Death(rank=2)) == Death(rank=1)
    assert served.death_in_plan(Death(rank=3)) == Death(host="b")
    assert served.death_in_plan(Death(pid=7)) == Death(pid=7)


def test_ranks_that_were_started_early_measure_the_first_plan_of_their_hosts() -> None:
    hosts = (Slots("a", 1), Slots("b", 1), Slots("c", 1))
    served, plan = ServedLaunch(fewest_each=2), Plan(3, (), hosts)
    setup = LaunchSetup.of(Path("mpiexec"), Path("engine"), {}, ())
    launches: list[FakeLaunch] = []
    start = start_fake(launches)
    served.begin(setup, plan, start)
    assert [(one.plan.ranks, one.texts) for one in launches] == [(6, [])]
    launch, is_first = served.measure(setup, plan, " ".join, start)
    assert is_first
    assert cast("FakeLaunch", launch).texts == ["--only-ranks 0,2,4"]
    fewer = replace(plan, ranks=2, slots=hosts[:2])
    launch, is_first = served.measure(setup, fewer, " ".join, start)
    assert (is_first, len(launches), launches[0].texts[1:]) == (False, 1, ["--only-ranks 0,2"])
    assert served.early_s > 0


def test_ranks_that_were_started_early_are_replaced_where_a_host_is_excluded_since() -> None:
    """The host may be the reason why they do not start."""
    hosts = (Slots("a", 1), Slots("b", 1), Slots("c", 1))
    served, plan = ServedLaunch(), Plan(3, (), hosts)
    setup = LaunchSetup.of(Path("mpiexec"), Path("engine"), {}, ())
    launches: list[FakeLaunch] = []
    served.begin(setup, plan, start_fake(launches))
    _, is_first = served.measure(setup, replace(plan, ranks=2, slots=hosts[:2]), " ".join, start_fake(launches))
    assert [(one.plan.ranks, one.is_killed, len(one.texts)) for one in launches] == [(3, True, 0), (2, False, 1)]
    assert is_first


def test_ranks_without_a_plan_are_not_waited_for() -> None:
    served = ServedLaunch()
    launches: list[FakeLaunch] = []
    served.begin(LaunchSetup.of(Path("mpiexec"), Path("engine"), {}, ()), Plan(2, ()), start_fake(launches))
    assert served.close()
    assert [one.is_killed for one in launches] == [True]


def test_ranks_start_before_their_plan_is_known(bench: Bench) -> None:
    start_early(System(), bench.launcher, ENGINE, Plan(3, ()), EngineOptions(served=bench.served))
    outcomes = [bench.measure("a.run"), bench.measure("b.run")]
    assert [(one.status, one.error, one.is_new) for one in outcomes] == [(0, "", True), (0, "", False)]
    assert bench.pids("a.run") == bench.pids("b.run")


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
