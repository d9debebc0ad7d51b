"""Suites: the pairs that each level measures, how often, and how long that takes."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fabrics import dragonfly, fat_tree, scopes_of, two_level
from hypothesis import assume, given, settings, strategies as st
from test_stages import FOLLOW_UP

from fablint.errors import UsageError
from fablint.model import RowSpec, Run, Scope, Slots, Switch, Topology
from fablint.model.host_name import NicRef
from fablint.plan.check.levels import MOST_ROUNDS, REACH_LEVEL, level_stage, several_each
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.rate_adaptation import bandwidth_row, rate_of
from fablint.plan.check.stages import Stage, next_stage
from fablint.plan.check.suites import SUITES, between, find_suite, plan_summary
from fablint.plan.rows.plan_file import parse_plan
from fablint.plan.schedule.edge_coloring import coloured
from fablint.simulate import Fault, SimulatedFabric, SimulatedRow, fat_tree as simulated_fat_tree
from fablint.topology.routed_placement import RoutedPlacement
from fact_cases import run_facts, with_facts
from finding_cases import ref
from pinned import pinned_by

PINNED = pinned_by("plan.toml", __file__)

SCOPES = (Scope.EDGE, Scope.LOCAL, Scope.GLOBAL)


def topology(*groups: list[int]) -> Topology:
    """Groups of switches, each with so many hosts; no cables."""
    switches, hosts = {}, {}
    for g, counts in enumerate(groups):
        for s, count in enumerate(counts):
            switches[f"g{g}s{s}"] = Switch(f"g{g}s{s}", f"g{g}")
            hosts |= {f"h{g}-{s}-{i}": f"g{g}s{s}" for i in range(count)}
    return Topology(switches, hosts)


def asked(fabric: Topology | int, each: int = 1, **more) -> PlanInput:
    hosts = [f"h{i}" for i in range(fabric)] if isinstance(fabric, int) else list(fabric.host_switch)
    known = None if isinstance(fabric, int) else fabric
    return PlanInput(each * len(hosts), tuple(Slots(host, each) for host in hosts), known, **more)


def rounds_of(stage: Stage) -> list[np.ndarray]:
    (rounds,) = stage.rounds.values()
    return list(rounds)


def met(stage: Stage | None) -> Counter[tuple[int, int]]:
    """How often each pair of ranks meets."""
    pairs = [] if stage is None else np.concatenate(rounds_of(stage)).tolist()
    return Counter((min(pair), max(pair)) for pair in pairs)


# ------------------------------------------------------------------------------------------------ colouring


@given(st.lists(st.integers(1, 9), min_size=2, max_size=7))
def test_members_of_different_parts_meet_once_in_nearly_as_few_rounds_as_can_be(parts):
    part = np.repeat(np.arange(len(parts)), parts)
    rounds = coloured(tuple(parts))
    for pairs in rounds:
        assert np.unique(pairs).size == pairs.size
    found = [tuple(sorted(pair)) for pairs in rounds for pair in pairs.tolist()]
    every = [(a, b) for a, b in itertools.combinations(range(part.size), 2) if part[a] != part[b]]
    assert sorted(found) == every
    assert len(rounds) <= part.size - min(parts) + 1


# ------------------------------------------------------------------------------------------------ levels

FABRICS = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3), min_size=1, max_size=3)


@given(FABRICS, st.integers(1, 3), st.sampled_from(SCOPES), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_every_pair_of_a_scope_is_measured_equally_often(groups, each, scope, random):
    # The busiest host has its partners in the other groups; with more of them matchings are measured, not every pair.
    assume(sum(map(sum, groups)) - min(map(sum, groups)) <= MOST_ROUNDS)
    request = asked(topology(*groups), each)
    placement = request.placement()
    left_out = random.sample(range(request.ranks), random.randrange(request.ranks // 2 + 1))
    stage = level_stage(between(scope), request, placement, left_out)
    number = np.arange(request.ranks) % each
    ranks = [rank for rank in range(request.ranks) if rank not in left_out]
    every = np.array([(a, b) for a, b in itertools.combinations(ranks, 2) if number[a] == number[b]], int)
    every = every.reshape(-1, 2)
    wanted = {tuple(pair) for pair in every[scopes_of(placement, every) == scope].tolist()}
    counts = met(stage)
    assert set(counts) == wanted
    if stage is None:
        return
    assert len(set(counts.values())) == 1
    assert min(counts.values()) >= 2
    for pairs in rounds_of(stage):
        assert np.unique(pairs).size == pairs.size
        partner = dict(placement.host[np.concatenate([pairs, pairs[:, ::-1]])].tolist())
        assert all(partner[placement.host[a]] == placement.host[b] for a, b in pairs.tolist())  # of all ranks of a host
    lead = {int(placement.host[rank]): rank for rank in reversed(ranks)}
    near = np.array(list(itertools.combinations(lead.values(), 2)))
    busiest = np.bincount(
        near[scopes_of(placement, near) == scope].ravel()
    ).max()  # by hosts, whatever ranks are left of them
    repeats = max(counts.values())
    assert len(rounds_of(stage)) <= repeats * (busiest + 1)


@given(FABRICS, st.integers(1, 3), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_whoever_is_left_out_is_in_no_round_of_any_level(groups, each, random):
    request = asked(topology(*groups), each)
    placement = request.placement()
    left_out = random.sample(range(request.ranks), random.randrange(request.ranks + 1))
    for level in (*SUITES["full"].levels, SUITES["switch-pairs"].levels[-1]):
        stage = level_stage(level, request, placement, left_out)
        for pairs in rounds_of(stage) if stage is not None else ():
            assert np.unique(pairs).size == pairs.size > 0
            assert not np.isin(pairs, left_out).any()
            same = placement.host[pairs[:, 0]] == placement.host[pairs[:, 1]]
            assert same.all() if level.within_hosts else not same.any()


def test_ranks_on_nics_of_several_switches_are_paired_by_nic():
    fabric = topology([2, 2])
    nics = {NicRef.of(host, f"hsn{rail}"): f"g0s{rail}" for host in fabric.host_switch for rail in (0, 1)}
    fabric = Topology(fabric.switches, fabric.host_switch, nic_switch=nics)
    request = asked(fabric, 2)
    placement = RoutedPlacement.on_routes(request.rank_hosts, fabric, ["hsn0", "hsn1"] * 4)
    edge = met(level_stage(between(Scope.EDGE), request, placement))
    assert set(edge) == {(a, b) for a, b in itertools.combinations(range(8), 2) if a % 2 == b % 2}
    assert level_stage(between(Scope.LOCAL), request, placement) is None


def test_many_hosts_meet_in_matchings_of_the_scope():
    request = asked(fat_tree(8, 8, 8))
    placement = request.placement()
    for scope, rounds in ((Scope.EDGE, 7 * 5), (Scope.LOCAL, 9), (Scope.GLOBAL, 9)):
        stage = level_stage(between(scope), request, placement)
        assert stage.plan.rows[0].rounds == rounds
        pairs = np.array(list(met(stage)))
        assert set(scopes_of(placement, pairs)) == {scope}
        assert len(pairs) > 0.9 * rounds / (5 if scope is Scope.EDGE else 1) * 256


def test_hosts_of_which_few_have_near_partners_still_meet_them():
    request = asked(topology(*[[1]] * 60, [40]))
    stage = level_stage(between(Scope.EDGE), request, request.placement())
    assert 0 < len(met(stage)) <= 40 * 39 / 2
    assert min(min(pair) for pair in met(stage)) == 60


def test_without_a_topology_all_pairs_are_far():
    request = asked(9)
    levels = {scope: level_stage(between(scope), request, request.placement()) for scope in SCOPES}
    assert levels[Scope.EDGE] is levels[Scope.LOCAL] is None
    assert len(met(levels[Scope.GLOBAL])) == 9 * 8 / 2


def test_rows_are_named_by_level_and_kernel_and_are_what_the_engine_reads():
    request = asked(two_level(2, 4), 2)
    stage = level_stage(SUITES["acceptance"].levels[2], request, request.placement())
    assert [row.spec.name for row in stage.plan.rows] == [
        "edge-latency",
        "edge-bandwidth",
        "edge-bibandwidth",
    ]
    assert set(stage.texts()) == {"rounds/edge.txt"}
    parsed = parse_plan(stage.plan.text, request.ranks, "test", stage.texts().__getitem__)
    assert parsed.rows == stage.plan.rows


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("rate", [None, 1.25e6, 6.25e6, 1e9, 2e10])
def test_every_row_of_every_suite_is_one(suite, rate):
    request = several_each(asked(two_level(4, 4)))
    names = []
    for level in find_suite(suite).levels:
        stage = level_stage(level, request, request.placement(), (), rate)
        if stage is not None:
            parse_plan(stage.plan.text, request.ranks, "test", stage.texts().__getitem__)
            names += [row.spec.name for row in stage.plan.rows]
    assert len(names) == len(set(names)) > 0


def test_neighbours_on_a_host():
    level = SUITES["quick"].levels[0]
    assert level_stage(level, asked(4), asked(4).placement()) is None
    request = several_each(asked(4), 3)
    assert set(met(level_stage(level, request, request.placement(), [0]))) == {
        *((1, 2), (3, 4), (4, 5), (6, 7), (7, 8)),
        *((9, 10), (10, 11)),
    }


@pytest.mark.parametrize("budget_s", [1.0, 10.0, 100.0])
def test_a_budget_is_kept_by_every_level(budget_s):
    request = asked(dragonfly(4, 4, 4))
    for scope in SCOPES:
        stage = level_stage(between(scope), request, request.placement(), budget_s=budget_s)
        assert stage.plan.predicted_s <= budget_s + 1e-9
    with pytest.raises(UsageError, match="not a duration"):
        level_stage(between(scope), request, request.placement(), budget_s=0.0)


def test_oversubscribed_hosts_are_measured_one_pair_at_a_time():
    request = asked(topology([4]), oversubscribed=True)
    stage = level_stage(between(Scope.EDGE), request, request.placement())
    assert all("--order serial" in row.spec.text for row in stage.plan.rows)


# ------------------------------------------------------------------------------------------------ rate


def test_reach_brings_everybody_near_and_far_in_no_time():
    request = asked(fat_tree(4, 4, 4))
    placement = request.placement()
    stage = level_stage(REACH_LEVEL, request, placement, (), 1.25e6)
    assert stage.plan.predicted_s < 2.0
    scopes = [set(scopes_of(placement, pairs)) for pairs in rounds_of(stage)]
    assert len(scopes) == 3
    assert set.union(*scopes) == set(SCOPES)
    assert all(np.unique(pairs).size == request.ranks for pairs in rounds_of(stage))


@pytest.mark.parametrize("hosts", [2, 3, 5, 40])
def test_reach_without_a_topology(hosts):
    request = asked(hosts, 2)
    stage = level_stage(REACH_LEVEL, request, request.placement())
    assert 1 <= len(rounds_of(stage)) <= 3


@given(st.floats(1e5, 1e12), st.floats(0.01, 0.4))
def test_a_stream_fits_the_rate(rate, share_s):
    row = bandwidth_row(rate, share_s)
    (size,) = row.sizes
    assert size in [2**k << 10 for k in range(6, 11)]
    window = row.window or 16
    assert window >= 2
    if size > 1 << 16:
        assert size / rate <= 0.011
    if window > 2:
        assert window * size / rate <= share_s / 4 + 1e-9


def test_the_usual_stream_where_there_is_no_reason_for_less():
    usual = "bandwidth --sizes 1M --warmup 2"
    assert bandwidth_row(None, 0.2).text == bandwidth_row(12e9, 0.2).text == usual
    assert bandwidth_row(6.25e6, 0.2).text == PINNED["bandwidth --sizes 64K --window"]
    assert bandwidth_row(6.25e6, 0.01).text == PINNED["bandwidth --sizes 64K --window 2"]


def measured(stage: Stage, faults: tuple[Fault, ...] = ()) -> Run:
    fabric = simulated_fat_tree(4, 2)
    run = SimulatedFabric(fabric, faults).measure(rounds_of(stage), (SimulatedRow("bandwidth", (1 << 15,)),))
    return replace(run, rows=tuple(with_facts(row, purpose="rate_probe") for row in run.rows))


def test_the_rate_is_that_of_healthy_ranks():
    fabric = simulated_fat_tree(4, 2)
    request = asked(fabric.topology)
    stage = level_stage(REACH_LEVEL, request, request.placement())
    healthy = rate_of(measured(stage))
    with_fault = rate_of(measured(stage, (Fault(ref("host", fabric.hosts[0]), bandwidth_factor=0.1),)))
    assert healthy == pytest.approx(with_fault, rel=0.05)
    assert rate_of(Run(None, run_facts({}), ())) is None


def test_each_row_says_what_it_is_for():
    request = asked(simulated_fat_tree(4, 2).topology)
    stages = {level.name: level_stage(level, request, request.placement()) for level in find_suite("bisection").levels}
    purposes = {name: {row.spec.purpose for row in stage.plan.rows} for name, stage in stages.items() if stage}
    assert purposes == {"reach": {"rate_probe"}, "global": {"measure"}, "bisection": {"bisection"}}
    run = Run(None, run_facts({"hosts": [f"h{i}" for i in range(64)], "rank_host": list(range(64))}), ())
    stage = next_stage(asked(64), run, [FOLLOW_UP], 1, 1e9, 6)
    assert {row.spec.purpose for row in stage.plan.rows} == {"follow_up"}


def test_follow_ups_measure_the_stream_of_the_levels():
    specs = (RowSpec("latency", sizes=(8,)), bandwidth_row(6.25e6, 0.2))
    request = asked(64, rows=specs)
    run = Run(None, run_facts({"hosts": [f"h{i}" for i in range(64)], "rank_host": list(range(64))}), ())
    stage = next_stage(request, run, [FOLLOW_UP], 1, 1e9, 6)
    measured_with = [(row.spec.sizes, row.spec.window, row.spec.warmup) for row in stage.plan.rows]
    assert measured_with == [(spec.sizes, spec.window, spec.warmup) for spec in specs]


# ------------------------------------------------------------------------------------------------ suites


def test_the_guide_tells_every_suite():
    page = (Path(__file__).parents[3] / "docs/how-to/suites.md").read_text()
    assert all(f"`{name}`" in page for name in SUITES)


def test_there_is_no_other_suite():
    with pytest.raises(UsageError, match="there is no suite 'quik': did you mean quick"):
        find_suite("quik")


def test_what_is_said_before_it_runs():
    request = asked(two_level(2, 4))
    summary = plan_summary(find_suite("quick"), request)
    planned = {level.name: level for level in summary.levels}
    assert list(planned) == ["intra-node", "reach", "edge", "local", "global"]
    assert planned["edge"].rows == ("edge-latency", "edge-bandwidth")
    assert (planned["local"].rounds, planned["local"].why) == (0, PINNED["there are no pairs across"])
    assert planned["intra-node"].rounds
    assert summary.walltime_s == 300.0
    assert summary.facts()["levels"][2]["name"] == "edge"
    assert "walltime to ask for: 5 min" in summary.text()
    slow = plan_summary(find_suite("acceptance"), request, rate=2e5)
    assert slow.predicted_s > 2 * summary.predicted_s
    assert slow.walltime_s % 300 == 0
    assert slow.walltime_s > slow.predicted_s
