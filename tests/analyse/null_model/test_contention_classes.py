"""What pairs are compared within: scope, cables between, and flows on the busiest link, against counting one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from analyse_cases import reported
from fabric_cases import DEEP, FLY, HASHED, MESH_FLY, QUIET, ROUND_TRIP, STREAM, TREE, View, checked, faulty, measured

from fablint.analyse import diagnose
from fablint.analyse.null_model.comparison_groups import Classes, cables_beyond
from fablint.analyse.null_model.loads import EXPECTED, STEPS, loads
from fablint.analyse.settings import FEWEST_PEERS, SMALL_SHARE
from fablint.model import SCOPES, Cable, Finding, Routing, Run, Scope, State
from fablint.simulate import Fabric, SimulatedFabric, dragonfly, fat_tree, torus

UNKNOWN = len(STEPS)
GRID = torus((4, 3), 2)
# Leaf-spine whose routing is not declared; two of its leaves share a cable as well.
SEVERAL = Fabric(
    replace(TREE.topology, cables=(*TREE.topology.cables, Cable("leaf0", "leaf1")), routing=Routing("shortest"))
)


def drawn(fabric: Fabric) -> View:
    """Random matchings, which collide."""
    rng = np.random.default_rng(1)
    rounds = [rng.permutation(len(fabric.hosts))[: len(fabric.hosts) // 2 * 2].reshape(-1, 2) for _ in range(12)]
    return View(faulty(fabric).measure(rounds, [STREAM]), fabric.topology, bidirectional=False)


def path(fabric: Fabric, src: int, dst: int) -> list[int]:
    """Links that the message from one host to another crosses."""
    at = fabric.port_switch
    (hops,) = fabric.routes.hops(at[[src]], at[[dst]], np.array([dst]))
    return [link for link in hops.tolist() if link >= 0]


def find_step(flows: int) -> int:
    return int(np.count_nonzero(flows >= STEPS))


def counted(fabric: Fabric, rounds: list[list[tuple[int, int]]]) -> dict[tuple[int, int, int], int]:
    """Step of each (round, src, dst): lower ranks send first, then the others."""
    found = {}
    for number, cells in enumerate(rounds):
        for turn in (True, False):
            some = [(a, b) for a, b in cells if (a < b) == turn]
            flows = Counter(link for a, b in some for link in path(fabric, a, b))
            for a, b in some:
                found[number, a, b] = find_step(max((flows[link] for link in path(fabric, a, b)), default=0))
    return found


@pytest.mark.parametrize("fabric", [TREE, DEEP, GRID], ids=["tree", "deep", "torus"])
def test_loads_of_a_list_are_those_counted_by_hand(fabric: Fabric) -> None:
    view = drawn(fabric)
    partner = view.pairs.partner
    assert partner is not None
    load = loads(view.pairs, view.message_paths, np.ones(partner.shape[1], dtype=bool), None)
    rounds = [[(a, b) for a, b in enumerate(column.tolist()) if b >= 0] for column in partner.T]
    wanted = np.zeros(partner.shape, dtype=int)
    for (number, a, _), step in counted(fabric, rounds).items():
        wanted[a, number] = step
    assert load is not None
    np.testing.assert_array_equal(load, wanted)


@pytest.mark.parametrize("fabric", [TREE, GRID], ids=["tree", "torus"])
def test_loads_of_a_matrix_are_those_counted_by_hand(fabric: Fabric) -> None:
    run = measured(fabric, "matrix")
    view = View(run, fabric.topology, bidirectional=False)
    when = np.asarray(run.rows[0].arrays["round"][0])
    load = loads(view.pairs, view.message_paths, np.empty(0, dtype=bool), when)
    rounds = [
        list(zip(*(index.tolist() for index in np.nonzero(when == number)), strict=True))
        for number in range(when.max() + 1)
    ]
    wanted = np.zeros(when.shape, dtype=int)
    for (_, a, b), step in counted(fabric, rounds).items():
        wanted[a, b] = step
    assert load is not None
    np.testing.assert_array_equal(load, wanted)


def test_pairs_measured_alone_share_nothing() -> None:
    view = drawn(TREE)
    rounds = view.pairs.value.shape[1]
    assert loads(view.pairs, view.message_paths, np.zeros(rounds, dtype=bool), None) is None
    some = np.arange(rounds) < rounds // 2
    load, every = (loads(view.pairs, view.message_paths, which, None) for which in (some, np.ones(rounds, dtype=bool)))
    assert load is not None
    assert every is not None
    assert not load[:, ~some].any()
    np.testing.assert_array_equal(load[:, some], every[:, some])


@pytest.mark.parametrize("fabric", [FLY, HASHED], ids=["adaptive", "hashed"])
def test_the_expected_flows_count_with_several_paths(fabric: Fabric) -> None:
    view = drawn(fabric)
    partner = view.pairs.partner
    assert partner is not None
    some = np.arange(partner.shape[1]) % 2 == 0
    load = loads(view.pairs, view.message_paths, some, None)
    load = np.zeros(partner.shape, dtype=np.uint8) if load is None else load
    assert not load[:, ~some].any()
    wanted = np.zeros(partner.shape, dtype=int)
    for column in np.flatnonzero(some):
        for turn in (True, False):
            src = np.flatnonzero((partner[:, column] > np.arange(len(partner))) == turn)
            at = fabric.port_switch
            query, link, share = fabric.routes.exposure(at[src], at[partner[src, column]])
            flows = np.bincount(link, weights=share, minlength=len(fabric.routes.ends))
            flows += detoured(fabric, int(np.count_nonzero(at[src] != at[partner[src, column]])))
            for number, host in enumerate(src.tolist()):
                mine = flows[link[(query == number) & (share >= SMALL_SHARE)]]
                wanted[host, column] = np.searchsorted(EXPECTED, mine.max(initial=0.0), side="right")
    assert len(np.unique(wanted)) > 2 or fabric is HASHED  # there, six hosts of a leaf share six uplinks
    assert (load != wanted).mean() < 0.01  # sums of shares that are equal but for the last digit


def detoured(fabric: Fabric, messages: int) -> float:
    """Messages to be expected on each link because they take a detour: two shortest paths of average length."""
    if fabric.topology.routing.kind != "adaptive":
        return 0.0
    apart = fabric.routes.distances(np.arange(len(fabric.routes.switches), dtype=np.int32))
    share = 1 - fabric.topology.routing.minimal_share
    return messages * share * 2 * float(apart[apart > 0].mean()) / len(fabric.routes.ends)


def test_pairs_with_unknown_paths_are_not_taken_for_isolated_pairs() -> None:
    """Between two groups there are several shortest paths."""
    view = View(measured(SEVERAL, "list"), SEVERAL.topology, bidirectional=False)
    load = loads(view.pairs, view.message_paths, np.ones(view.pairs.value.shape[1], dtype=bool), None)
    assert load is not None
    row, column = np.nonzero(~np.isnan(view.pairs.value))
    to = view.pairs.destination((row, column))
    unknown = np.array([not path(SEVERAL, a, b) for a, b in zip(row.tolist(), to.tolist(), strict=True)])
    unknown &= SEVERAL.port_switch[row] != SEVERAL.port_switch[to]
    assert 0.02 < unknown.mean() < 1
    np.testing.assert_array_equal(load[row, column] == UNKNOWN, unknown)


# ------------------------------------------------------------------------------------------------ classes


@pytest.mark.parametrize("fabric", [TREE, MESH_FLY, FLY, GRID], ids=["tree", "direct", "adaptive", "torus"])
@pytest.mark.parametrize("layout", ["list", "matrix"])
def test_a_class_is_a_scope_a_distance_and_a_step_of_load(fabric: Fabric, layout: str) -> None:
    view = View(measured(fabric, layout), fabric.topology, bidirectional=False)
    rng = np.random.default_rng(1)
    load = rng.integers(0, UNKNOWN + 1, view.pairs.value.shape).astype(np.uint8)
    for steps in (None, load):
        classes = Classes(view.placement, steps, cables_beyond(view.placement, view.routes))
        cells = np.nonzero(~np.isnan(view.pairs.value))
        codes = classes.of_cells(view.pairs, cells)
        assert codes.max() < classes.count
        assert codes.dtype.itemsize <= 2  # one code for each pair of ranks
        np.testing.assert_array_equal(
            np.concatenate([classes.of_rows(view.pairs, rows) for rows in view.pairs.blocks()])[cells], codes
        )
        scopes = view.placement.scopes(cells[0], view.pairs.destination(cells))
        np.testing.assert_array_equal(codes % len(SCOPES), scopes)
        expected = {(0, 0) if steps is None else (0, int(step)) for step in np.unique(load)}
        distances = {
            hops(fabric, a, b) for a, b in zip(cells[0].tolist(), view.pairs.destination(cells).tolist(), strict=True)
        }
        assert len(np.unique(codes)) <= len(expected) * len(distances) * 2
        # The same code: the same distance.
        for code in np.unique(codes):
            here = codes == code
            ends = zip(cells[0][here].tolist(), view.pairs.destination(cells)[here].tolist(), strict=True)
            lengths = {hops(fabric, a, b) for a, b in ends}
            assert len(lengths) == 1 or (steps is not None and min(lengths) > 3), (SCOPES[code % len(SCOPES)], lengths)


def hops(fabric: Fabric, src: int, dst: int) -> int:
    """Cables between the switches of two hosts, by breadth-first search."""
    start, end = (int(fabric.port_switch[host]) for host in (src, dst))
    reached, length = {start}, 0
    while end not in reached:
        reached |= {int(b) for a, b in fabric.routes.ends.tolist() if a in reached}
        length += 1
    return length


def test_a_fat_tree_has_one_distance_per_scope() -> None:
    for fabric in (TREE, DEEP):
        view = View(measured(fabric, "list"), fabric.topology, bidirectional=False)
        assert cables_beyond(view.placement, view.routes) is None
    assert cables_beyond(view.placement, None) is None


@pytest.mark.parametrize(
    "fly", [dragonfly(9, 4, 4), dragonfly(9, 4, 4, minimal_share=None)], ids=["adaptive", "direct"]
)
def test_a_longer_path_between_groups_is_not_slow(fly: Fabric) -> None:
    """One to three cables lie between hosts of two groups: small messages take a third longer over three."""
    for seed in range(3):
        run = checked(faulty(fly, noise=QUIET, seed=seed), ROUND_TRIP)
        assert reported(diagnose(run, fly.topology)) == set()


# ------------------------------------------------------------------------------------------------ informative cells


def contended_view(costly: float) -> tuple[View, Classes, dict[int, float]]:
    """Half of the columns share a link with another flow, which makes them `costly` times as long."""
    view = View(measured(TREE, "list"), TREE.topology, bidirectional=False)
    load = np.zeros(view.pairs.value.shape, dtype=np.uint8)
    load[:, ::2] = 1
    offsets = {}
    for scope in (Scope.EDGE, Scope.LOCAL, Scope.GLOBAL):
        offsets[SCOPES.index(scope)] = -10.0
        offsets[SCOPES.index(scope) + len(SCOPES)] = -10.0 + np.log(costly)
    return view, Classes(view.placement, load), offsets


def test_pairs_that_shared_a_link_do_not_tell_of_their_ends_where_sharing_costs() -> None:
    view, classes, offsets = contended_view(2.0)
    informative, *of_ends = classes.informative(view.pairs, offsets, 0.05)
    assert informative is not None
    assert all(shown is informative for shown in of_ends)
    assert informative[:, 1::2].all()
    assert not informative[:, ::2].any()
    assert classes.sharing(offsets, 0.05) == pytest.approx((2.0, 2.0))


def test_all_pairs_tell_where_sharing_costs_nothing() -> None:
    view, classes, offsets = contended_view(1.01)
    assert classes.informative(view.pairs, offsets, 0.05) == (None, None, None)
    assert classes.sharing(offsets, 0.05) is None
    assert Classes(view.placement).informative(view.pairs, offsets, 0.05) == (None, None, None)


def test_all_pairs_tell_where_too_few_were_free() -> None:
    view, classes, offsets = contended_view(2.0)
    assert classes.load is not None
    classes.load[:, FEWEST_PEERS - 1 :] = 1
    assert classes.informative(view.pairs, offsets, 0.05) == (None, None, None)


def test_contended_pairs_of_a_healthy_tree_report_no_component() -> None:
    fabric = fat_tree(8, 2)
    run = faulty(fabric).measure(None, [STREAM])  # all pairs: many share a link
    diagnosis = diagnose(run, fabric.topology)
    assert reported(diagnosis) == set()


@pytest.mark.parametrize("costly", [True, False])
def test_a_direction_slow_beside_others_is_not_judged_where_sharing_costs(costly: bool) -> None:
    """Its turn may have lasted into the next one, whose messages share its cable."""
    run = SimulatedFabric(TREE, (), QUIET, seed=1).measure(None, [STREAM])
    view, (row,) = View(run, TREE.topology, bidirectional=False), run.rows
    when, switch = np.asarray(row.arrays["round"][0]), view.placement.switch
    load = loads(view.pairs, view.message_paths, np.empty(0, dtype=bool), when)
    assert load is not None
    times = np.array(row.arrays["time_median"])
    times[0, load > 0] *= 2.0 if costly else 1.0
    a, b = np.argwhere((load == 0) & (switch[:, None] != switch) & (when >= 0))[500]
    times[0, a, b] *= 1.6
    slowed = replace(run, rows=(replace(row, arrays={**row.arrays, "time_median": times}),))
    found = [(finding.name, finding.state) for finding in unexplained_routes(slowed)]
    assert found == ([(f"h{a:02}>h{b:02}", State.NOT_JUDGED)] if costly else [])  # else a note: measured once


def unexplained_routes(run: Run) -> list[Finding]:
    return [finding for finding in diagnose(run, TREE.topology).verdict.findings if finding.component == "route"]
