"""A check of hosts that do not all reach each other: the path is named and the fewest hosts are excluded at once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from fake_launches import FakeCluster, FakeSystem, Notes
from pinged_hosts import FAMILY, FINE, LOST, SHORT, Row, pinged

from fablint.discover import write_topology
from fablint.model import Allocation, Finding, State, Switch, Topology
from fablint.preflight import Fleet, judge
from fablint.snapshot import CollectedSnapshots
from fablint.system import System
from fablint.text.evidence_sentences import sentences
from fablint.workflows import fabric_discovery, host_preflight, measurement, programs
from fablint.workflows.check import cluster_check
from fablint.workflows.check.check_record import load_check
from fablint.workflows.check.check_run import CheckOutcome
from fablint.workflows.check.cluster_check import UnfitError, check_cluster, resume_check
from fablint.workflows.check.request import CheckRequest, UnfitPolicy
from fablint.workflows.context import Context
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

pytestmark = pytest.mark.long  # many simulated fleets

COUNT, EACH = 9, 3  # hosts n0 ... n8, three on each of the switches s0, s1, s2
HOSTS = [f"n{number}" for number in range(COUNT)]
FABRIC = Topology(
    {f"s{at}": Switch(f"s{at}") for at in range(3)}, {host: f"s{int(host[1:]) // EACH}" for host in HOSTS}
)
Dead = Callable[[int, int], bool]


class Bed:
    """Hosts of which some pairs are not connected: neither by ping nor in a launch."""

    def __init__(self, folder: Path, dead: Dead, kind: Row = LOST) -> None:
        self.cluster = FakeCluster(FakeSystem(folder / "home"))
        self.path, self.notes, self.file = folder / "a.run", Notes(), folder / "topology.yaml"
        self.file.write_text(write_topology(FABRIC))
        pairs = [pair for pair in combinations(range(COUNT), 2) if dead(*pair)]
        self.cluster.keeps_apart = {frozenset((f"n{one}", f"n{other}")) for one, other in pairs}
        hosts = pinged(COUNT, lambda one, other: kind if (min(one, other), max(one, other)) in pairs else FINE)
        collected = CollectedSnapshots({}, {host.name: host.snapshot for host in hosts})
        self.preflight = host_preflight.PreflightResult(collected, judge(Fleet(hosts), FAMILY))

    @property
    def context(self) -> Context:
        return Context(self.cluster.system, self.notes)

    def check(self, unfit: UnfitPolicy = "refuse") -> CheckOutcome:
        policy = {"include_unfit": unfit == "measure", "exclude_unfit": unfit == "exclude"}
        request = CheckRequest(",".join(HOSTS), files=(str(self.file),), suite="global", **policy)
        return check_cluster(self.context, request, self.path)

    @property
    def failed_starts(self) -> int:
        apart = self.cluster.keeps_apart
        return sum(any(pair <= {*one.hosts} for pair in apart) for one in self.cluster.launches)


@pytest.fixture
def bed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bed]:
    def make(dead: Dead, kind: Row = LOST) -> Bed:
        made = Bed(tmp_path, dead, kind)

        def usable(_: System, request: fabric_discovery.FabricRequest, **__: bool) -> tuple[Allocation, list[Finding]]:
            return Allocation(tuple(str(request.hosts).split(",")), "test"), []

        monkeypatch.setattr(fabric_discovery, "usable_hosts", usable)
        monkeypatch.setattr(fabric_discovery, "collect_snapshots", lambda *_: CollectedSnapshots())
        monkeypatch.setattr(host_preflight, "preflight_hosts", lambda *_, **__: made.preflight)
        monkeypatch.setattr(measurement, "measure", made.cluster.measure)
        monkeypatch.setattr(programs, "with_programs", lambda context, _: context)
        monkeypatch.setattr(cluster_check, "refuse_unshared", lambda *_: None)
        return made

    return make


def across(one: int, other: int) -> bool:
    """A black hole between the first two switches."""
    return one < EACH <= other < 2 * EACH


def at_fault(outcome: CheckOutcome, state: State = State.FAULT) -> list[tuple[str, str]]:
    """Hosts and routes; the fake snapshots do not say to which switch the hosts are connected."""
    findings = [one for one in outcome.diagnosis.verdict.findings if one.state is state and one.component != "config"]
    return [(one.component, one.name) for one in findings]


@pytest.mark.parametrize("kind", [LOST, SHORT])
@pytest.mark.parametrize("unfit", ["refuse", "exclude"])
def test_a_path_is_named_and_the_fewest_hosts_are_excluded_before_the_first_launch(
    bed: Callable[..., Bed], kind: Row, unfit: UnfitPolicy
) -> None:
    made = bed(across, kind)
    outcome = made.check(unfit)
    assert made.failed_starts == 0
    assert outcome.run.hosts == HOSTS[:EACH] + HOSTS[2 * EACH :]
    assert at_fault(outcome) == [("route", "s0=s1")]
    assert at_fault(outcome, State.SUSPECT) == []
    (path,) = (
        one for one in outcome.diagnosis.verdict.findings if one.component == "route" and one.state is State.FAULT
    )
    lost = "no ping is answered" if kind is LOST else "frames of 9000 bytes are lost, of 1500 pass"
    assert sentences(path.evidence) == f"{lost}: 9 of 9 pairs between n[0-2] and n[3-5]"
    excluded = [one for one in outcome.diagnosis.verdict.findings if "n4" in one.hosts]
    assert [(one.state, sentences(one.evidence)) for one in excluded] == [
        (
            State.NOT_JUDGED,
            PINNED["without it the ranks"],
        )
    ]
    assert outcome.diagnosis.verdict.exit_code == 1


def test_a_host_that_reaches_none_beyond_its_switch_is_the_fault(bed: Callable[..., Bed]) -> None:
    def dead(one: int, other: int) -> bool:
        return other == COUNT - 1 and one < 2 * EACH

    with pytest.raises(UnfitError, match="n8 is not fit to be measured"):
        bed(dead).check()
    made = bed(dead)
    outcome = made.check("exclude")
    assert made.failed_starts == 0
    assert {name.partition("/")[0] for _, name in at_fault(outcome)} == {"n8"}
    assert outcome.run.hosts == HOSTS[:-1]


@pytest.mark.parametrize("dead", [across, lambda one, other: other == COUNT - 1])
def test_with_force_all_are_launched_once_and_the_rest_without_a_search(bed: Callable[..., Bed], dead: Dead) -> None:
    """Pings may be filtered where messages are not: the launch decides."""
    made = bed(dead)
    outcome = made.check("measure")
    assert made.failed_starts == 1
    assert not any("searching for hosts" in note for note in made.notes.said)
    assert len(outcome.run.hosts) == (6 if dead is across else 8)
    connected = bed(dead)
    connected.path = connected.path.with_name("b.run")
    connected.cluster.keeps_apart = set()
    assert len(connected.check("measure").run.hosts) == COUNT


def test_without_pings_hosts_are_searched_by_launches(bed: Callable[..., Bed]) -> None:
    made = bed(lambda one, other: other == COUNT - 1)
    made.preflight = host_preflight.PreflightResult(CollectedSnapshots(), judge(Fleet([]), FAMILY))
    outcome = made.check()
    assert any("searching for hosts" in note for note in made.notes.said)
    assert at_fault(outcome) == [("host", "n8")]


def test_a_single_pair_is_a_doubt_and_one_of_its_hosts_is_excluded(bed: Callable[..., Bed]) -> None:
    made = bed(lambda one, other: (one, other) == (1, 7))
    outcome = made.check()
    assert made.failed_starts == 0
    assert at_fault(outcome) == []
    assert at_fault(outcome, State.SUSPECT) == [("route", "n7/hsn0=n1/hsn0")]
    assert list(made.cluster.launches[0].hosts) == [host for host in HOSTS if host != "n7"]


@pytest.mark.parametrize("kind", [FINE, ("no answer", None, 0, "", 12, 0)])
def test_hosts_of_which_all_are_healthy_or_none_answers_are_all_launched(bed: Callable[..., Bed], kind: Row) -> None:
    """ICMP may be filtered everywhere: that is no path."""
    made = bed(lambda one, other: True, kind)
    made.cluster.keeps_apart = set()
    outcome = made.check()
    assert len(outcome.run.hosts) == COUNT
    assert at_fault(outcome) == []


def test_a_check_that_is_resumed_excludes_hosts_that_have_lost_the_others_since(bed: Callable[..., Bed]) -> None:
    made = bed(lambda one, other: False)
    made.check()
    for path in made.path.iterdir():  # it was killed before it measured anything between hosts
        if path.name != "rounds":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    record = load_check(made.path)
    assert record is not None
    later = bed(across)
    outcome = resume_check(later.context, later.path, replace(record, ended=False))
    assert outcome is not None
    assert later.failed_starts == 0
    assert outcome.run.hosts == HOSTS[:EACH] + HOSTS[2 * EACH :]
    assert at_fault(outcome) == [("route", "s0=s1")]
