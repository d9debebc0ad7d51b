"""Every component is measured all over a row: no component has all of its rounds in one stretch of time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pytest
from fabrics import dragonfly, fat_tree, two_level

from fablint.model import Diagnosis, FollowUp, Scope, Slots, Topology, Verdict
from fablint.model.arrays import RankPairs
from fablint.plan.check.levels import Level, level_stage
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.retest import plan_retest
from fablint.plan.check.stages import ROUTE_REPEATS, first_stage, next_stage
from fablint.plan.check.suites import ALL_PAIRS, between
from fablint.plan.schedule.stratified import stratified_rounds
from fablint.simulate import SimulatedFabric, fat_tree as simulated_fat_tree
from fablint.topology.routed_placement import RoutedPlacement
from finding_cases import component

pytestmark = pytest.mark.long  # many sizes of fabrics

STRETCHES = 4
SEEDS = (1, 2)
FABRICS = {
    "two levels": two_level(8, 8, 4),
    "fat tree": fat_tree(4, 4, 4),
    "dragonfly": dragonfly(4, 4, 4),
    "one switch a group": dragonfly(3, 1, 6),
    "three hosts a switch": dragonfly(2, 3, 3),
}
LEVELS = [*(between(scope) for scope in (Scope.EDGE, Scope.LOCAL, Scope.GLOBAL)), ALL_PAIRS]
CASES = [pytest.param(name, seed, id=f"{name}, seed {seed}") for name in FABRICS for seed in SEEDS]

Component = tuple[str, Hashable]


def asked(topology: Topology, **more: object) -> PlanInput:
    slots = tuple(Slots(host, 1) for host in topology.host_switch)
    return PlanInput(len(slots), slots, topology, **more)  # type: ignore[arg-type]


def components(pairs: RankPairs, placement: RoutedPlacement) -> Iterator[Component]:
    """Hosts, switches with their own hosts, and paths between two switches that a round measures."""
    for rank in np.unique(pairs).tolist():
        yield "host", rank
    for a, b in np.unique(np.sort(placement.switch_or_host[pairs], axis=1), axis=0).tolist():
        yield ("path", (a, b)) if a != b else ("switch", a)


def stretches(rounds: Sequence[Iterable[Component]]) -> Mapping[Component, list[int]]:
    """Of each component the stretch of each of its rounds, where the row is cut into four of equal length."""
    found: dict[Component, list[int]] = defaultdict(list)
    for number, measured in enumerate(rounds):
        for one in measured:
            found[one].append(number * STRETCHES // len(rounds))
    return found


def shares(rounds: Sequence[RankPairs], placement: RoutedPlacement) -> tuple[float, float]:
    """Shares of components with several rounds that have them in one stretch, and of those with many that lack one."""
    found = stretches([components(pairs, placement) for pairs in rounds]).values()
    several = [len(set(where)) == 1 for where in found if len(where) > 1]
    many = [len(set(where)) < STRETCHES for where in found if len(where) >= 2 * STRETCHES]
    return float(np.mean(several)), float(np.mean(many)) if many else 0.0


def level_rounds(level: Level, topology: Topology, seed: int) -> Sequence[RankPairs]:
    request = asked(topology, seed=seed)
    stage = level_stage(level, request, request.placement())
    return () if stage is None else next(iter(stage.rounds.values()))


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_near_and_far_rounds_are_interleaved(name: str, seed: int) -> None:
    placement = asked(FABRICS[name]).placement()
    rounds = stratified_rounds(placement, seed)
    near = [
        (placement.switch_or_host[pairs[:, 0]] == placement.switch_or_host[pairs[:, 1]]).mean() > 0.5
        for pairs in rounds
    ]
    where = stretches([[("near" if here else "far", 0)] for here in near])
    for kind in ("near", "far"):
        counts = np.bincount(where[kind, 0], minlength=STRETCHES)
        assert np.ptp(counts) <= 2, f"{kind}: {counts}"
        assert counts.all() or counts.sum() < STRETCHES


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_matchings_measure_no_component_in_one_stretch_only(name: str, seed: int) -> None:
    placement = asked(FABRICS[name]).placement()
    in_one, lack_one = shares(stratified_rounds(placement, seed), placement)
    assert in_one == 0
    assert lack_one == 0


def test_paths_with_two_rounds_each_are_spread_as_far_as_the_rounds_allow() -> None:
    """The rounds of a dragonfly bring many switches together in the same two rounds and no others."""
    placement = asked(dragonfly()).placement()
    for seed in SEEDS:
        in_one, _ = shares(stratified_rounds(placement, seed), placement)
        assert in_one < 0.03


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
@pytest.mark.parametrize(("name", "seed"), CASES)
def test_a_level_measures_every_component_in_all_stretches(name: str, seed: int, level: Level) -> None:
    topology = FABRICS[name]
    rounds = level_rounds(level, topology, seed)
    if rounds:
        in_one, lack_one = shares(rounds, asked(topology).placement())
        assert in_one == 0
        assert lack_one == 0


def test_a_small_switch_is_measured_as_long_as_a_large_one() -> None:
    """Three hosts have all their pairs in three rounds, eight need seven."""
    topology = two_level(2, 8, 2)
    small = {f"h{number}" for number in range(8, 13)}
    kept = {host: name for host, name in topology.host_switch.items() if host not in small}
    request = asked(Topology(topology.switches, kept, topology.cables, routing=topology.routing))
    placement = request.placement()
    stage = level_stage(between(Scope.EDGE), request, placement)
    assert stage is not None
    (rounds,) = stage.rounds.values()
    where = stretches([components(pairs, placement) for pairs in rounds])
    for switch in np.unique(placement.switch_or_host).tolist():
        assert set(where["switch", switch]) == set(range(STRETCHES))


def test_all_pairs_that_are_spelt_out_are_spread() -> None:
    for name in ("one switch a group", "three hosts a switch"):
        request = asked(FABRICS[name])
        (rounds,) = first_stage(request).rounds.values()
        assert shares(rounds, request.placement()) == (0, 0)


# ------------------------------------------------------------------------------------------------ again


def of_follow_ups(rounds: Sequence[RankPairs], follow_ups: Sequence[FollowUp]) -> Mapping[Component, list[int]]:
    """Return the stretches in which pairs of each follow-up measurement are measured."""
    wanted = {one.name: {frozenset(pair) for pair in one.pairs.tolist()} for one in follow_ups}
    return stretches(
        [
            [
                ("follow-up", name)
                for name, keys in wanted.items()
                if keys & {frozenset(pair) for pair in pairs.tolist()}
            ]
            for pairs in rounds
        ]
    )


def host_follow_up(rank: int, ranks: int) -> FollowUp:
    others = [other for other in range(ranks) if other != rank]
    return FollowUp(component("host", f"h{rank}"), np.array([(rank, other) for other in others]))


@pytest.mark.parametrize("seed", SEEDS)
def test_rounds_of_one_follow_up_are_spread_over_the_row(seed: int) -> None:
    fabric = simulated_fat_tree(4, 3)
    run = SimulatedFabric(fabric).measure(stratified_rounds(RoutedPlacement.on_routes(fabric.hosts, fabric.topology)))
    request = asked(fabric.topology, seed=seed)
    hosts = [host_follow_up(rank, len(fabric.hosts)) for rank in (0, 21)]
    routes = [FollowUp(component("route", f"h{a}=h{b}"), np.array([(a, b), (b, a)])) for a, b in ((1, 30), (9, 50))]
    stage = next_stage(request, run, hosts, 1, 1e9, 6, (routes, ()))
    assert stage is not None
    (rounds,) = stage.rounds.values()
    where = of_follow_ups(rounds, [*hosts, *routes])
    for route in routes:
        assert len(where["follow-up", route.name]) >= ROUTE_REPEATS
        assert set(where["follow-up", route.name]) == set(range(STRETCHES)), route.name
    for host in hosts:
        assert len(set(where["follow-up", host.name])) >= 3, host.name


def test_a_retest_measures_each_reported_component_all_over_the_row() -> None:
    fabric = simulated_fat_tree(4, 3)
    run = SimulatedFabric(fabric).measure(stratified_rounds(RoutedPlacement.on_routes(fabric.hosts, fabric.topology)))
    ranks = len(fabric.hosts)
    link = FollowUp(component("link", "a path"), np.array([(16 + i, 32 + j) for i in range(4) for j in range(4)]))
    follow_ups = (host_follow_up(5, ranks), host_follow_up(6, ranks), link)
    verdict = Verdict.model_validate(
        {
            "verdict": "fault",
            "exit_code": 1,
            "findings": (),
            "coverage": {"pairs_planned": 1, "pairs_measured": 1, "hosts": 1, "hosts_judged": 1},
        }
    )
    retest = plan_retest(run, Diagnosis(verdict, (), retests=follow_ups), fabric.topology)
    assert retest is not None
    (rounds,) = retest.stage.rounds.values()
    where = of_follow_ups(rounds, retest.follow_ups)
    for one in retest.follow_ups:
        assert set(where["follow-up", one.name]) == set(range(STRETCHES)), (one.name, where["follow-up", one.name])
