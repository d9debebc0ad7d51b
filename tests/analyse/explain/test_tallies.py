"""What the pairs of each part add up to: the same however it is counted, and after whatever was explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields

import numpy as np
import pytest
from fabric_cases import (
    DEEP,
    FABRICS,
    FLY,
    HASHED,
    ROUND_TRIP,
    STREAM,
    TREE,
    View,
    as_list,
    faulty,
    measured,
    thinned,
)
from hypothesis import given, settings, strategies as st

from fablint.analyse.candidates.components import Cables, Endpoints, Spines, Tally, find_crossing_cells
from fablint.analyse.explain.evidence import Evidence
from fablint.simulate import Fabric, Fault, fat_tree
from finding_cases import ref

SLOW_HOST = Fault(ref("host", "h05"), bandwidth_factor=0.7, added_latency_s=1e-6)


def counted(evidence: Evidence, values: np.ndarray) -> Tally:
    """(n, m) values added up cell by cell."""
    pairs, placement, message_paths = evidence.pairs, evidence.placement, evidence.message_paths
    sizes = [*[pairs.ranks] * 4, len(placement.switches), len(placement.groups), message_paths.count]
    tally = Tally(*(np.zeros(size, int) for size in sizes))
    for row, column in zip(*(index.tolist() for index in np.nonzero(values)), strict=True):
        value = int(values[row, column])
        to = int(pairs.destination((np.array([row]), np.array([column])))[0])
        for src, dst in ((row, to), (to, row)) if evidence.bidirectional else ((row, to),):
            path = int(message_paths.between(np.array([src]), np.array([dst]))[0])
            for segment in message_paths.segments[path].tolist():
                if segment >= 0:
                    tally.segment[segment] += value
        if has(evidence.informative.sender, (row, column)):
            tally.own_sent[row] += value
        if has(evidence.informative.receiver, (row, column)):
            tally.own_received[to] += value
        if not has(evidence.informative.both, (row, column)):
            continue
        tally.sent[row] += value
        tally.received[to] += value
        for codes, sums in ((placement.switch, tally.in_switch), (placement.group, tally.in_group)):
            if codes[row] == codes[to] >= 0:
                sums[codes[row]] += value
    return tally


def has(mask: np.ndarray | None, cell: tuple[int, int]) -> bool:
    return mask is None or bool(mask[cell])


def assert_equal(one: Tally, other: Tally) -> None:
    names = [field.name for field in fields(Tally)]
    for name, a, b in zip(names, astuple(one), astuple(other), strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)


def gathered(fabric: Fabric, layout: str, *, bidirectional: bool, known: bool = True) -> Evidence:
    run = measured(fabric, layout, SLOW_HOST, row=ROUND_TRIP if bidirectional else STREAM)
    view = View(thinned(run, 0.2, 1), fabric.topology if known else None, bidirectional=bidirectional)
    return view.evidence(view.fitted())


CASES = [
    (name, layout, bidirectional)
    for name in FABRICS
    for layout in ("list", "matrix")
    for bidirectional in (False, True)
]
FEW = [("tree", "matrix", True), ("deep", "list", False), ("hashed", "list", True), ("adaptive", "matrix", False)]


@pytest.mark.parametrize(("name", "layout", "bidirectional"), CASES)
def test_tallies_are_those_added_up_cell_by_cell(name: str, layout: str, bidirectional: bool) -> None:
    evidence = gathered(FABRICS[name], layout, bidirectional=bidirectional)
    assert np.count_nonzero(evidence.gain) > 100
    assert_equal(evidence.total, counted(evidence, evidence.gain))
    assert_equal(evidence.live, counted(evidence, evidence.gain != 0))


@pytest.mark.parametrize("layout", ["list", "matrix"])
def test_without_a_topology_only_ends_are_tallied(layout: str) -> None:
    evidence = gathered(TREE, layout, bidirectional=False, known=False)
    assert not evidence.total.in_switch.size + evidence.total.in_group.size
    assert_equal(evidence.total, counted(evidence, evidence.gain))
    evidence.remove((np.arange(3), np.arange(3)))
    assert_equal(evidence.total, counted(evidence, evidence.gain))


@pytest.mark.parametrize(("name", "layout", "bidirectional"), FEW)
@settings(max_examples=6)
@given(seeds=st.lists(st.tuples(st.integers(0, 999), st.sampled_from(["part", "random", "again"])), max_size=5))
def test_what_is_removed_is_gone_from_every_tally(
    name: str, layout: str, bidirectional: bool, seeds: Sequence[tuple[int, str]]
) -> None:
    run = measured(FABRICS[name], layout, SLOW_HOST, row=ROUND_TRIP if bidirectional else STREAM)
    view = View(run, FABRICS[name].topology, bidirectional=bidirectional)
    evidence = view.evidence(view.fitted())
    types, last = view.list_component_types(), (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    for seed, what in seeds:
        rng = np.random.default_rng(seed)
        if what == "part":
            component_type = types[rng.integers(len(types))]
            cells = component_type.cells(int(rng.integers(len(component_type))), 0)
        elif what == "random":
            cells = np.nonzero(rng.random(evidence.gain.shape) < 0.1)
        else:
            cells = last  # explained already: not counted again
        evidence.remove(cells)
        assert not evidence.gain[cells].any()
        last = cells
    assert_equal(evidence.total, counted(evidence, evidence.gain))
    assert_equal(evidence.live, counted(evidence, evidence.gain != 0))


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("name", ["tree", "deep", "hashed", "shortest"])
def test_a_matrix_and_a_list_have_the_same_tallies(name: str, bidirectional: bool) -> None:
    fabric = FABRICS[name]
    run = measured(fabric, "matrix", SLOW_HOST, row=ROUND_TRIP if bidirectional else STREAM)
    found = []
    for one in (run, as_list(run)):
        view = View(one, fabric.topology, bidirectional=bidirectional)
        found.append(view.evidence(view.fitted()))
    assert_equal(found[0].live, found[1].live)
    assert_equal(found[0].total, found[1].total)


def test_cells_that_do_not_tell_of_their_ends_count_for_links_only() -> None:
    fabric = fat_tree(8, 2)
    run = faulty(fabric).measure(None, (STREAM,))
    load = np.zeros((64, 64), dtype=np.uint8)
    load[:, ::2] = 1  # as if these had shared a link, and
    run.rows[0].arrays["time_median"][0, :, ::2] *= 2  # been slower for it
    view = View(run, fabric.topology, bidirectional=False, loads=load)
    effects = view.fitted()
    evidence = view.evidence(effects)
    assert evidence.informative.both is not None
    shared = np.broadcast_to(np.arange(64) % 2 == 0, (64, 64))
    apart = fabric.port_switch[:, None] != fabric.port_switch[None, :]
    assert not evidence.informative.both[shared & apart].any()
    assert evidence.live.received[::2].sum() < 0.2 * evidence.live.received[1::2].sum()
    link = fabric.routes.names.index("spine0>leaf3")  # to h24 only, whose column was shared
    assert evidence.live.segment[link] == 56
    assert_equal(evidence.total, counted(evidence, evidence.gain))


@pytest.mark.parametrize(("name", "layout", "bidirectional"), CASES[::3])
def test_sums_of_a_part_are_those_of_its_cells(name: str, layout: str, bidirectional: bool) -> None:
    run = measured(FABRICS[name], layout, SLOW_HOST, row=ROUND_TRIP if bidirectional else STREAM)
    view = View(run, FABRICS[name].topology, bidirectional=bidirectional)
    evidence = view.evidence(view.fitted())
    for component_type in view.list_component_types():
        sums = component_type.sums(evidence.total)
        masks: tuple[np.ndarray | None, ...] = (None, None, None)
        if isinstance(component_type, Endpoints):
            both, sender, receiver = astuple(evidence.informative)
            masks = (both, both, both) if component_type.inside else (sender, receiver, both)

        def known_cells(cells: set[tuple[int, int]], mask: np.ndarray | None) -> set[tuple[int, int]]:
            return {cell for cell in cells if has(mask, cell)}

        for part in range(0, len(component_type), max(1, len(component_type) // 5)):
            sides = [
                set(zip(*(axis.tolist() for axis in component_type.cells(part, side)), strict=True)) for side in (0, 1)
            ]
            inner = sides[0] & sides[1]
            if isinstance(component_type, Endpoints) and not component_type.inside:
                inner = set()  # between ranks of one host nothing is measured
            if isinstance(component_type, Spines):
                assert sums[0][part] == gain_of_spine(view, evidence, int(component_type.codes[part]))
                continue
            for side in (0, 1):
                assert sums[side][part] == gain_of(evidence, known_cells(sides[side], masks[side]))
            if not isinstance(component_type, Cables) or view.message_paths.is_symmetric:
                assert sums[2][part] == gain_of(evidence, known_cells(inner, masks[2]))


def gain_of(evidence: Evidence, cells: set[tuple[int, int]]) -> int:
    return sum(int(evidence.gain[cell]) for cell in cells)


def gain_of_spine(view: View, evidence: Evidence, switch: int) -> int:
    """Each pair once: at half if a round trip crosses it in one direction only, so that no increment counts twice."""
    assert view.routes is not None
    row, column = np.nonzero(evidence.gain)
    to = view.pairs.destination((row, column))
    into = np.flatnonzero(view.routes.ends[:, 1] == switch)
    there, back = (
        np.isin(view.message_paths.segments[view.message_paths.between(*path)], into).any(axis=1)
        for path in ((row, to), (to, row))
    )
    gain = evidence.gain[row, column].astype(np.int64)
    return int((gain * there + gain * back).sum() // 2 if evidence.bidirectional else gain[there].sum())


@pytest.mark.parametrize(("fabric", "bidirectional"), [(DEEP, False), (DEEP, True), (HASHED, False), (FLY, True)])
def test_a_few_cells_are_tallied_as_all_are(fabric: Fabric, bidirectional: bool) -> None:
    evidence = gathered(fabric, "list", bidirectional=bidirectional)
    rng = np.random.default_rng(2)
    chosen = (rng.random(evidence.gain.shape) < 0.2) & (evidence.gain != 0)
    cells = np.nonzero(chosen)
    few = evidence.tally(cells, evidence.gain[cells].astype(np.int64))
    wanted = counted(evidence, np.where(chosen, evidence.gain, 0))
    assert_equal(few, wanted)


@pytest.mark.parametrize("layout", ["list", "matrix"])
def test_a_round_trip_crosses_the_path_back_as_well(layout: str) -> None:
    run = measured(DEEP, layout, row=ROUND_TRIP)
    view = View(run, DEEP.topology, bidirectional=True)
    row, column = np.nonzero(~np.isnan(view.pairs.value))
    to = view.pairs.destination((row, column))
    for link in range(0, view.message_paths.known_links, 17):
        there, back = (
            np.isin(view.message_paths.segments[view.message_paths.between(*path)], [link]).any(axis=1)
            for path in ((row, to), (to, row))
        )
        brute = set(zip(row[there | back].tolist(), column[there | back].tolist(), strict=True))
        cells = find_crossing_cells(view.message_paths, view.pairs, np.array([link]), bidirectional=True)
        assert {
            cell
            for cell in zip(*(axis.tolist() for axis in cells), strict=True)
            if not np.isnan(view.pairs.value[cell])
        } == brute
