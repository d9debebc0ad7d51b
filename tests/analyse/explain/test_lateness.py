"""Which component loses messages, on fabrics drawn message by message (lateness_cases.py); 20 seeds a case."""

from __future__ import annotations

import numpy as np
import pytest
from lateness_cases import Layout, LossyFabric, cauchy, faults, named, pareto

from fablint.analyse.candidates.candidate import Candidate, Candidates
from fablint.analyse.explain.explanation import LateSearch, ScoredCandidates
from fablint.analyse.findings.late_components import late_messages
from fablint.analyse.observations.samples import select_usable_rows
from fablint.analyse.settings import Settings
from fablint.model import ComponentRef, Finding, Placement, Run, State
from fablint.text.evidence_sentences import sentences
from fablint.topology.routing import routes_of

LAYOUTS = pytest.mark.parametrize("layout", ["list", "matrix"])


def late(fabric: LossyFabric, run: Run) -> list[Finding]:
    """What late messages alone say of a run."""
    settings, topology = Settings(), fabric.topology
    placement = Placement.of(run, topology)
    routes = routes_of(topology) if topology and topology.cables else None
    return late_messages(select_usable_rows(run, placement, settings)[0], placement, routes, settings)


def exact(seeds: range, fabric: LossyFabric, layout: Layout, *truth: tuple[str, str], rounds: int | None = None) -> int:
    """In how many of the runs just these are at fault; that no run names another one is asserted."""
    found = [faults(fabric.findings(layout, seed, rounds)) for seed in seeds]
    assert {fault for one in found for fault in one} <= set(truth)
    return sum(one == sorted(truth) for one in found)


# ------------------------------------------------------------------------------------------------ cables and paths


@pytest.mark.parametrize("lossy", [{"l1=p0": 0.05}, {"l1=p0": 0.01}, {"l1>p0": 0.02}])
def test_a_lossy_cable_is_named_and_not_its_victims(lossy: dict[str, float], seeds: range) -> None:
    """4 leaves x 4 hosts, two spines, all paths known."""
    assert exact(seeds, LossyFabric(lossy=lossy), "list", ("cable", "l1=p0")) == len(seeds)


def test_a_lossy_cable_is_named_where_few_pairs_were_measured(seeds: range) -> None:
    fabric = LossyFabric(leaves=8, lossy={"l1=p0": 0.05})
    assert exact(seeds, fabric, "list", ("cable", "l1=p0"), rounds=10) == len(seeds)


def test_two_lossy_cables_are_both_named(seeds: range) -> None:
    fabric = LossyFabric(lossy={"l1=p0": 0.05, "l3=p1": 0.03})
    assert exact(seeds, fabric, "matrix", ("cable", "l1=p0"), ("cable", "l3=p1")) == len(seeds)


@pytest.mark.parametrize("groups", [None, 1])
def test_a_lossy_uplink_is_named_where_paths_are_presumed(groups: int | None, seeds: range) -> None:
    """Also with one switch per group, where no path is presumed at all. The switch itself is healthy."""
    fabric = LossyFabric(spines=1, knows="presumed", groups=groups, lossy={"l1=p0": 0.05})
    assert exact(seeds, fabric, "list", ("route", "l1=any")) == len(seeds)


def test_a_lossy_path_is_named_with_one_switch_per_group(seeds: range) -> None:
    fabric = LossyFabric(leaves=3, spines=0, knows="presumed", groups=1, lossy={"l0=l1": 0.05})
    assert exact(seeds, fabric, "matrix", ("route", "l0=l1")) == len(seeds)


def test_the_only_path_between_two_switches_is_suspected(seeds: range) -> None:
    """There is no other to compare it with; whoever reads PASS would think it is fine."""
    fabric = LossyFabric(leaves=2, spines=0, knows="presumed", lossy={"l0=l1": 0.05})
    for seed in seeds:
        found = fabric.findings("matrix", seed)
        assert faults(found) == []
        assert "l0=l1" in named(found)


@pytest.mark.parametrize("switch", ["l2", "p1"])
def test_a_lossy_switch_is_one_fault(switch: str, seeds: range) -> None:
    assert exact(seeds, LossyFabric(lossy={switch: 0.05}), "list", ("switch", switch)) == len(seeds)


# ------------------------------------------------------------------------------------------------ hosts


@LAYOUTS
@pytest.mark.parametrize("share", [0.05, 0.3, 0.5])
def test_a_lossy_host_is_named(layout: Layout, share: float, seeds: range) -> None:
    """Of 30 % and more the median of some pairs is late as well."""
    assert exact(seeds, LossyFabric(lossy={"h05": share}), layout, ("host", "h05")) == len(seeds)


def test_where_medians_are_late_the_minimum_shows_it(seeds: range) -> None:
    """Half of the messages of half of the pairs: without the minimum these look like slow pairs that lose nothing."""
    fabric = LossyFabric(lossy={"h05": 0.6})
    found = [late(fabric, fabric.measured("list", seed)) for seed in seeds]
    assert [faults(one) for one in found] == [[("host", "h05")]] * len(seeds)


@LAYOUTS
@pytest.mark.parametrize("names", [("h05", "h12"), ("h05", "h06")])
def test_two_lossy_hosts_are_both_named(layout: Layout, names: tuple[str, str], seeds: range) -> None:
    """Also two of the four of a leaf, whose switch is contradicted by the two others."""
    fabric = LossyFabric(lossy=dict.fromkeys(names, 0.05))
    assert exact(seeds, fabric, layout, *(("host", name) for name in names)) == len(seeds)


@pytest.mark.parametrize("factor", [1.5, 4.0])
def test_a_lossy_and_a_slow_host_are_both_named(factor: float, seeds: range) -> None:
    fabric = LossyFabric(lossy={"h05": 0.05}, slow={"h09": factor})
    assert exact(seeds, fabric, "list", ("host", "h05"), ("host", "h09")) == len(seeds)


def test_several_ranks_per_host_are_one_host(seeds: range) -> None:
    assert exact(seeds, LossyFabric(leaves=2, ranks=3, lossy={"h02": 0.05}), "list", ("host", "h02")) == len(seeds)


@LAYOUTS
@pytest.mark.parametrize(
    "fabric",
    [
        *(LossyFabric(leaves=1, hosts=hosts, knows="nothing") for hosts in (4, 5, 6, 8)),
        LossyFabric(leaves=2, hosts=2, spines=0, groups=1, knows="presumed"),
        LossyFabric(leaves=1, hosts=4, ranks=2),
    ],
)
def test_a_lossy_host_among_few_never_passes(fabric: LossyFabric, layout: Layout, seeds: range) -> None:
    lossy = LossyFabric(**{**fabric.__dict__, "lossy": {"h02": 0.08}})
    for seed in seeds:
        found = lossy.findings(layout, seed)
        assert set(faults(found)) <= {("host", "h02")}
        assert "h02" in named(found)


def test_three_of_eight_hosts_never_pass(seeds: range) -> None:
    """18 of 28 pairs are late: the usual is what the calm tenth does, and no majority."""
    fabric = LossyFabric(leaves=1, hosts=8, knows="nothing", lossy={"h02": 0.08, "h05": 0.08, "h07": 0.08})
    for seed in seeds:
        assert {finding.name for finding in fabric.findings("matrix", seed)} == {"h02", "h05", "h07"}


def test_a_host_whose_messages_are_interrupted_is_suspected(seeds: range) -> None:
    """Means 1.5 times as long as usual are what noise of an operating system does, not a loss."""
    fabric = LossyFabric(noisy={"h05": 0.05})
    for seed in seeds:
        [found] = fabric.findings("list", seed)
        assert (found.state, found.name) == (State.SUSPECT, "h05")


def test_what_is_late_in_one_stretch_of_time_is_suspected(seeds: range) -> None:
    """The same late pairs, with start times one after the other within a tenth of the run."""
    fabric = LossyFabric(leaves=2, hosts=6, lossy={"h05": 0.08})
    for seed in seeds:
        run = fabric.measured("list", seed)
        assert faults(late(fabric, run)) == [("host", "h05")]
        arrays = run.rows[0].arrays
        own = (arrays["dst"] == 5) | (np.arange(12)[:, None] == 5)
        arrays["started"][own] = 0.01
        [found] = late(fabric, run)
        assert (found.state, found.name) == (State.SUSPECT, "h05")
        assert "one stretch of time" in sentences(found.evidence)


# ------------------------------------------------------------------------------------------------ healthy fabrics


@LAYOUTS
@pytest.mark.parametrize("noise", [pareto, cauchy])
@pytest.mark.parametrize(("leaves", "hosts", "messages"), [(1, 4, 5), (2, 4, 60), (4, 4, 60), (6, 6, 5)])
def test_heavy_tails_are_evidence_against_no_component(
    layout: Layout, noise, leaves: int, hosts: int, messages: int, seeds: range
) -> None:
    fabric = LossyFabric(leaves=leaves, hosts=hosts, noise=noise, messages=messages)
    assert [faults(late(fabric, fabric.measured(layout, seed))) for seed in seeds] == [[]] * len(seeds)


def test_tails_of_all_far_pairs_are_evidence_against_no_cable(seeds: range) -> None:
    """What all paths between switches share is their design, or something that no path alone can show."""
    fabric = LossyFabric()
    for seed in seeds:
        run, random = fabric.measured("list", seed), np.random.default_rng(seed)
        arrays = run.rows[0].arrays
        far = np.arange(16)[:, None] // 4 != arrays["dst"] // 4
        arrays["time_mean"][far & (random.random(far.shape) < 0.6)] *= 5
        [found] = late(fabric, run)
        assert (found.state, found.name) == (State.CONFOUNDED, "paths between switches")


@pytest.mark.parametrize(("noise", "share"), [(pareto, 0.05), (cauchy, 0.2)])
def test_a_lossy_host_is_named_among_heavy_tails(noise, share: float, seeds: range) -> None:
    fabric = LossyFabric(noise=noise, lossy={"h05": share})
    found = [faults(late(fabric, fabric.measured("list", seed))) for seed in seeds]
    assert found == [[("host", "h05")]] * len(seeds)


def test_a_component_that_others_cover_is_no_member_of_the_explanation() -> None:
    """All late pairs of `a` cross `b` or `c` as well: it would have no pairs to average."""
    crossed = {"a": range(8), "b": range(6), "c": range(2, 10)}
    candidates = Candidates(
        tuple(Candidate(ComponentRef.of("cable", name), "cable") for name in crossed),
        ((), (), ()),
        np.concatenate([np.array(pairs) for pairs in crossed.values()]),
        np.repeat(np.arange(3), [len(pairs) for pairs in crossed.values()]),
    )
    search = LateSearch(candidates, np.where(np.arange(200) < 10, 1.0, 0.0), np.ones(200), 2.0)
    members = search.members(ScoredCandidates((0, 1, 2)), 1.0)
    assert [candidates.candidate[member.number].component.label for member in members] == ["b", "c"]
    assert all(member.pairs.size for member in members)


@pytest.mark.parametrize(
    ("factor", "apart", "state"),
    [(2.0, True, State.CONFOUNDED), (2.0, False, State.SUSPECT), (6.0, True, State.SUSPECT)],
)
def test_the_only_path_a_little_late_at_a_time_of_its_own_is_confounded(
    factor: float, apart: bool, state: State
) -> None:
    """A check measures messages between groups after those on switches: noise of the hosts in that time explains it."""
    fabric = LossyFabric(leaves=2, hosts=8, spines=0, groups=1, knows="presumed")
    run = fabric.measured("list", 1)
    arrays = run.rows[0].arrays
    far = (np.arange(16)[:, None] // 8 != arrays["dst"] // 8) & (arrays["dst"] >= 0)
    arrays["time_mean"][far] *= factor
    arrays["started"][far] += 100.0 * apart
    [found] = late(fabric, run)
    assert found.state is state
    causes = [one.label for one in found.ambiguity_group]
    assert ("another load at that time" in causes) == (state is State.CONFOUNDED)
