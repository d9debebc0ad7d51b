"""A fake cluster in place of `measurement.measure`: writes the run directories of an engine on such hosts.

For tests of what a check makes of its launches. It measures a round after the other; a pair that stalls or a rank that
dies ends the launch, and what was measured before stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import finding_cases
from fablint.errors import NotStartedError
from fablint.model import ComponentRef, Finding, Plan, Row as RunRow, RowSpec, Run, Slots, State, Switch, Topology
from fablint.model.facts.failed_rank import FailedRank
from fablint.model.preflight_results import Result
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.stages import Stage, stage_of
from fablint.plan.check.suites import find_suite
from fablint.simulate import SimulatedRow
from fablint.simulate.simulated_rows import row_facts
from fablint.store import read_run, set_state
from fablint.store.checksums import ROOT, remove_checksums
from fablint.store.facts.stored_facts import read_run_facts, write_run_facts
from fablint.store.metadata import change_attributes
from fablint.store.writing import write_row
from fablint.system import System
from fablint.workflows import measurement
from fablint.workflows.check.check_run import CheckOutcome
from fablint.workflows.check.launches import Launches
from fablint.workflows.check.level_runs import LevelRuns
from fablint.workflows.check.stage_times import StageTimes
from fablint.workflows.context import Context
from fablint.workflows.recovery.host_exclusion import HostExclusion
from fablint.workflows.recovery.host_triage import HostTriage
from fablint.workflows.recovery.pair_trials import PairTrials
from fablint.workflows.recovery.start_trials import StartTrials
from fact_cases import run_facts, with_facts

Pairs = list[tuple[int, int]]
EPOCH_S = 1_795_176_000.0
LAUNCH_S = 2.0  # until all ranks are there
SILENT = "failed (no message for 20 s)"


class FakeSystem(System):
    """This machine with a home of the test's own, and a clock that only launches move."""

    def __init__(self, home: Path, **environ: str) -> None:
        self.now_s = 0.0
        self._environ = {"FABLINT_HOME": str(home), "PATH": "/nowhere", **environ}

    @property
    def environ(self) -> Mapping[str, str]:
        return self._environ

    def monotonic(self) -> float:
        return self.now_s


@dataclass
class Notes:
    """Progress that keeps its messages, and the events for programs."""

    said: list[str] = field(default_factory=list)
    events: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def step(self, task: str, done: int, total: int, left_s: float | None = None) -> None:
        pass

    def note(self, text: str, event: str = "note", **values: object) -> None:
        if event == "note":
            self.said.append(text)
        self.events.append((event, {"text": text, **values}))


@dataclass(frozen=True)
class Launch:
    """What was launched: on which hosts, and per row the rounds that were asked for, as pairs of hosts."""

    hosts: tuple[str, ...]
    output: Path
    options: tuple[str, ...]
    rows: Mapping[str, Mapping[int, Sequence[tuple[str, str]]]]
    lines: tuple[str, ...]

    @property
    def trial(self) -> bool:
        """Is it one that asks two hosts whether they work?"""
        return self.output.name == "trial.run"

    def met(self) -> set[frozenset[str]]:
        """Hosts that were to be measured with each other."""
        return {frozenset(pair) for rounds in self.rows.values() for pairs in rounds.values() for pair in pairs}


@dataclass
class FakeCluster:
    """Hosts and what they have. Names are those that the plan has."""

    system: FakeSystem
    slow: dict[str, float] = field(default_factory=dict)  # times as long, whatever it sends or receives
    slow_inside: dict[str, float] = field(default_factory=dict)  # between its own ranks
    mute: set[str] = field(default_factory=set)  # stalls with every host
    cut: set[frozenset[str]] = field(default_factory=set)  # two that stall with each other
    blocked: dict[str, str] = field(default_factory=dict)  # by host: a transport that does not connect it
    requests: bool = False  # only the lower rank of a pair requests a connection, and only requests of it are blocked
    dies: dict[str, str] = field(default_factory=dict)  # the launcher sees its rank die in rows called so
    reports: Sequence[str] = ()  # hosts named as lost by a launch that stalls; none: the first end of the pair
    refused: str = ""  # what the launcher says where a host of `unreached` is to be launched
    unreached: set[str] = field(default_factory=set)
    keeps_apart: set[frozenset[str]] = field(default_factory=set)  # two of which a launch with both does not start
    silent: set[str] = field(default_factory=set)  # do not answer when they are asked
    warnings: Sequence[Result] = ()  # of preflight, when they are asked before a check goes on
    wordless: bool = False  # a launch that stalls names no host
    rate: float = 12.5e9  # bytes/s
    noise: float = 0.005  # standard deviation of the logarithm of a median
    attributes: dict[str, Any] = field(default_factory=dict)  # of every run
    domain: str = ""  # hosts call themselves so, whatever the plan has
    stop_after: int | None = None  # rounds of the last row of a launch that are measured before it is killed
    launches: list[Launch] = field(default_factory=list)

    def look(self, hosts: Collection[str]) -> Mapping[str, Finding]:
        """As the `look` of a cluster check."""
        return {host: no_answer(host) for host in hosts if host in self.silent}

    def measure(
        self, context: Context, plan: Plan, output: Path, options: Sequence[str] = ()
    ) -> measurement.MeasurementResult:
        """As `measurement.measure`."""
        hosts = [slot.host for slot in plan.slots for _ in range(slot.ranks)]
        assert len(hosts) == plan.ranks
        resumed = "--resume" in options
        requests = [row.spec for row in plan.rows]
        rounds = {str(row.name or row.kernel): _rounds(row, output) for row in requests}
        row_pairs = {
            name: {at: [(hosts[a], hosts[b]) for a, b in pairs[at]] for at in only}
            for name, (pairs, only) in rounds.items()
        }
        lines = tuple(row.spec.text for row in plan.rows)
        self.launches.append(Launch(tuple(dict.fromkeys(hosts)), output, tuple(options), row_pairs, lines))
        self.system.now_s += LAUNCH_S
        if self.unreached & set(hosts) or any(pair <= set(hosts) for pair in self.keeps_apart):
            said = self.refused or "the ranks did not start"
            raise NotStartedError(said, "nothing was measured", (said,))
        if not resumed:
            self._begin(output, plan, requests, hosts)
        else:
            self._grow(output, plan, requests, hosts)
        began = read_run_facts(output).launch.started_epoch_s or 0.0
        for request in requests:
            pairs, only = rounds[str(request.name or request.kernel)]
            if self.stop_after is not None and request is requests[-1]:
                self._measure_row(output, request, pairs, list(only)[: self.stop_after], hosts, began)
                return measurement.MeasurementResult(read_run(output), 3, start_s=LAUNCH_S)
            if only and (lost := self._measure_row(output, request, pairs, only, hosts, began)) is not None:
                set_state(output, "interrupted", lost)
                said = f"rank {lost[0].rank} on {lost[0].host} {lost[0].reason}" if lost else "it stalls"
                return measurement.MeasurementResult(read_run(output), 3, said, LAUNCH_S)
        set_state(output, "complete")
        return measurement.MeasurementResult(read_run(output), 0, start_s=LAUNCH_S)

    # -------------------------------------------------------------------------------------------- run directories

    def _called(self, host: str) -> str:
        return f"{host}{self.domain}"

    def _begin(self, output: Path, plan: Plan, rows: Sequence[RowSpec], hosts: Sequence[str]) -> None:
        names = list(dict.fromkeys(hosts))
        output.mkdir(exist_ok=True)
        assert {one.name for one in output.iterdir()} <= {"rounds", "launches"}  # as the engine wants it
        attributes = {
            "format": 1,
            "state": "measuring",
            "creator": "fake",
            "command": [],
            "started": "",
            "started_epoch_s": EPOCH_S + self.system.now_s,
            "rows": [str(row.name or row.kernel) for row in rows],
            "plan": [row.spec.text for row in plan.rows],
            "ranks": len(hosts),
            "hosts": [self._called(host) for host in names],
            "rank_host": [names.index(host) for host in hosts],
            "rank_pid": list(range(1, len(hosts) + 1)),
            "shared_files": True,
            "mpi": {"library": "none", "standard": "3.1"},
            "instrument": {"oversubscribed": False},
            **self.attributes,
        }
        write_run_facts(output, run_facts(attributes))

    def _grow(self, output: Path, plan: Plan, rows: Sequence[RowSpec], hosts: Sequence[str]) -> None:
        facts = read_run_facts(output)
        assert [facts.hosts[at] for at in facts.rank_host] == [self._called(host) for host in hosts]
        names = [str(row.name or row.kernel) for row in rows]
        lines = [
            dict(zip(facts.rows, facts.plan, strict=True)).get(name, row.spec.text)
            for name, row in zip(names, plan.rows, strict=True)
        ]
        begun = [one.name for one in read_run(output).rows]
        assert names[: len(begun)] == begun  # the rows given are all that it has afterwards
        remove_checksums(output, ROOT)
        change_attributes(output, rows=names, plan=lines, state="measuring")

    def _measure_row(
        self,
        output: Path,
        row: RowSpec,
        rounds: Sequence[Pairs],
        only: Sequence[int],
        hosts: Sequence[str],
        began: float,
    ) -> list[FailedRank] | None:
        """Write the rounds of a row and return the ranks that it lost, None where it came to its end."""
        random = np.random.default_rng(len(self.launches))
        root = read_run_facts(output)
        name = str(row.name or row.kernel)
        shape = (len(hosts), len(rounds), len(row.sizes))
        found = next((one for one in read_run(output).rows if one.name == name), None)
        dst = np.full(shape[:2], -1, np.int32) if found is None else np.array(found.arrays["dst"][:])
        times = np.full(shape, np.nan, np.float32) if found is None else np.array(found.arrays["time_median"][:])
        started = np.full(shape[:2], np.nan) if found is None else np.array(found.arrays["started"][:])
        wall_s, lost = 0.0, None
        for at in only:
            lost = self._loses(row, at, rounds[at], hosts)
            if lost is not None:
                break
            for a, b in (*rounds[at], *((b, a) for a, b in rounds[at])):
                dst[a, at] = b
                started[a, at] = EPOCH_S + self.system.now_s + wall_s - began
                times[a, at] = self._seconds(row, hosts[a], hosts[b]) * np.exp(self.noise * random.standard_normal())
            wall_s += row.budget or 0.05
        self.system.now_s += wall_s
        arrays = {
            "dst": dst,
            "time_median": times,
            "started": started,
            "count": np.where(np.isnan(times), 0, 100).astype(np.uint32),
            "size": np.array(row.sizes, np.int64),
        }
        pairs = np.array([len(one) for one in rounds], np.int32)
        facts = row_facts(SimulatedRow(row.kernel, row.sizes, row.order), "list", pairs, 1)  # type: ignore[arg-type]
        measured = with_facts(
            RunRow(name, facts, arrays),
            purpose=row.purpose,
            transport=row.transport,
            options=dict(zip(root.rows, root.plan, strict=True))[name],
            measuring_s=wall_s,
            wall_s=wall_s + (found.facts.result.wall_s or 0.0 if found is not None else 0.0),
            state="complete" if lost is None else "interrupted",
        )
        remove_checksums(output, name)
        write_row(output / name, measured, root)
        return lost

    def _seconds(self, row: RowSpec, one: str, other: str) -> np.ndarray:
        """(sizes,) of a message of each size."""
        sizes = np.array(row.sizes, dtype=float)
        inside = one == other
        healthy = sizes / self.rate if row.kernel_info.is_windowed else 2e-6 + sizes / self.rate
        slow = self.slow_inside.get(one, 1.0) if inside else self.slow.get(one, 1.0) * self.slow.get(other, 1.0)
        return healthy * slow

    def _loses(self, row: RowSpec, at: int, pairs: Pairs, hosts: Sequence[str]) -> list[FailedRank] | None:
        """Entries of the run's `lost`, where the round does not end."""
        name = str(row.name or row.kernel)
        dead = [rank for pair in pairs for rank in pair if name.startswith(self.dies.get(hosts[rank], "?"))]
        if dead:
            return [self._entry(rank, hosts, None, None, "died (signal 9)") for rank in dead[:1]]
        vain = [(a, b) for a, b in pairs if self._is_blocked(row.transport, hosts[min(a, b)], hosts[max(a, b)])]
        stalled = [(a, b) for a, b in pairs if (a, b) in vain or self._stalls(hosts[a], hosts[b])]
        if not stalled:
            return None
        if self.wordless:
            return []
        entries = [
            self._entry(
                rank, hosts, at, other, "failed (no TCP connection to it for 16 s)" if (a, b) in vain else SILENT
            )
            for a, b in stalled
            for rank, other in ((a, b), (b, a))
        ]
        return [one for one in entries if one.host in self.reports] or entries[:1]

    def _is_blocked(self, transport: str, lower: str, higher: str) -> bool:
        """Does this transport not connect two hosts, of which the one with the lower rank requests the connection?"""
        blocked = {lower} if self.requests else {lower, higher}
        return lower != higher and any(self.blocked.get(host) == transport for host in blocked)

    def _stalls(self, one: str, other: str) -> bool:
        return one != other and (bool({one, other} & self.mute) or frozenset((one, other)) in self.cut)

    def _entry(self, rank: int, hosts: Sequence[str], at: int | None, partner: int | None, reason: str) -> FailedRank:
        return FailedRank(rank, self._called(hosts[rank]), at, partner, reason)

    # -------------------------------------------------------------------------------------------- what was launched

    @property
    def measuring(self) -> list[Launch]:
        return [one for one in self.launches if not one.trial]

    @property
    def trials(self) -> list[tuple[str, ...]]:
        return [one.hosts for one in self.launches if one.trial]


def _rounds(row: RowSpec, output: Path) -> tuple[list[Pairs], Sequence[int]]:
    """All rounds of a row, and those that are to be measured."""
    if row.rounds_file is None:
        assert row.pattern == "pair"
        return [[(0, 1)]], [0]
    file = output / row.rounds_file  # a run has its own
    rounds = [
        [(int(a), int(b)) for a, b in (pair.split("-") for pair in line.split())]
        for line in file.read_text().splitlines()
    ]
    return rounds, range(len(rounds)) if row.only_rounds is None else row.only_rounds


def no_answer(host: str) -> Finding:
    return Finding(
        state=State.FAULT,
        components=(ComponentRef.of("host", host),),
        evidence=finding_cases.evidence_of("no answer within 20 s"),
    )


def every_pair(run: Run, row: str) -> Iterator[tuple[int, frozenset[str]]]:
    """Round and hosts of each pair that was measured, with its partner on the other side."""
    found, hosts = run.row(row), run.rank_host
    dst, count = np.asarray(found.arrays["dst"][:]), np.asarray(found.arrays["count"][:])
    for rank, at in zip(*(where.tolist() for where in np.nonzero(count.min(axis=-1))), strict=True):
        partner = int(dst[rank, at])
        assert dst[partner, at] == rank
        yield at, frozenset((hosts[rank], hosts[partner]))


# ------------------------------------------------------------------------------------------------ checks


def fabric(switches: int = 3, hosts: int = 8) -> Topology:
    """Two switches in group `ga`, the others in group `gb`, so many hosts on each."""
    every = {f"s{number}": Switch(f"s{number}", "ga" if number < 2 else "gb") for number in range(switches)}
    return Topology(
        every, {f"h{number * hosts + at:02d}": name for number, name in enumerate(every) for at in range(hosts)}
    )


def request_of(hosts: Sequence[str], topology: Topology | None = None, each: int = 1) -> PlanInput:
    return PlanInput(each * len(hosts), tuple(Slots(host, each) for host in hosts), topology)


def one_row(request: PlanInput, rounds: Sequence[np.ndarray], name: str = "edge") -> Stage:
    """Latencies of these rounds."""
    return stage_of(name, rounds, request, "parallel", [(RowSpec("latency", f"{name}-latency", sizes=(8,)), 0.05)])


def launches_of(cluster: FakeCluster, request: PlanInput, output: Path) -> tuple[Launches, Notes]:
    """Launches on the cluster, and what is said meanwhile."""
    notes = Notes()
    context = Context(cluster.system, notes)
    recovery = HostExclusion(HostTriage(PairTrials(context), cluster.look), StartTrials(context))
    times = StageTimes(cluster.system.monotonic)
    return Launches(context, request, output, recovery, times=times), notes


@dataclass
class Done:
    """A check that is over."""

    cluster: FakeCluster
    level_runs: LevelRuns
    checked: CheckOutcome


def whole_check(folder: Path, topology: Topology, **condition: Any) -> Done:
    """A quick check of a cluster in that condition."""
    cluster = FakeCluster(FakeSystem(folder / "home"), **condition)
    launches, _ = launches_of(cluster, request_of(list(topology.host_switch), topology), folder / "a.run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "measure", cluster.measure)
        level_runs = LevelRuns(launches, find_suite("quick"))
        return Done(cluster, level_runs, level_runs.check())
