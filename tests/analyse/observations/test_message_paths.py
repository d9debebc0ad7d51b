"""Paths of pairs: the links of the routes in every layout, and no link that is unknown."""

from __future__ import annotations

import numpy as np
import pytest
from analyse_cases import attributed
from fabric_cases import DEEP, FABRICS, FLY, HASHED, RAILS, TREE, View, as_list, measured, view_of
from hypothesis import given, settings, strategies as st

from fablint.analyse.observations.message_paths import MessagePaths
from fablint.simulate import Fabric

LAYOUTS = ("list", "matrix")


def links_of(fabric: Fabric, src: int, dst: int) -> tuple[str, ...]:
    """Names of the links between the NICs of two ranks, one rank on each NIC."""
    at = fabric.port_switch
    (hops,) = fabric.routes.hops(at[[src]], at[[dst]], np.array([dst // fabric.rails]))
    return tuple(fabric.routes.names[link] for link in hops.tolist() if link >= 0)


def names_of(message_paths: MessagePaths, path: int) -> tuple[str, ...]:
    """Names of the links of a path; `s0..s1` for an unknown path between two switches."""
    assert message_paths.routes is not None
    named = []
    for segment in message_paths.segments[path].tolist():
        if segment >= message_paths.known_links:
            named.append("unknown")
        elif segment >= 0:
            named.append(message_paths.routes.names[segment])
    return tuple(named)


def expected(fabric: Fabric, src: int, dst: int) -> tuple[str, ...]:
    apart = fabric.port_switch[src] != fabric.port_switch[dst]
    return links_of(fabric, src, dst) or (("unknown",) if apart else ())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FABRICS)
def test_the_path_of_every_cell_is_that_of_its_message(name: str, layout: str) -> None:
    fabric = FABRICS[name]
    view = view_of(fabric, layout)
    row, column = np.nonzero(~np.isnan(view.pairs.value))
    to = view.pairs.destination((row, column))
    found = view.message_paths.of_cells(view.pairs, (row, column))
    of_rows = np.concatenate([view.message_paths.of_rows(view.pairs, rows) for rows in view.pairs.blocks()])
    np.testing.assert_array_equal(np.broadcast_to(of_rows, view.pairs.value.shape)[row, column], found)
    np.testing.assert_array_equal(view.message_paths.between(row, to), found)
    for src, dst, path in list(zip(row.tolist(), to.tolist(), found.tolist(), strict=True))[::7]:
        assert names_of(view.message_paths, path) == expected(fabric, src, dst)


@pytest.mark.parametrize("name", FABRICS)
def test_a_matrix_and_a_list_of_the_same_pairs_have_the_same_totals(name: str) -> None:
    fabric = FABRICS[name]
    matrix = View(measured(fabric, "matrix"), fabric.topology, bidirectional=False)
    rounds = View(as_list(measured(fabric, "matrix")), fabric.topology, bidirectional=False)
    assert (matrix.message_paths.count, matrix.message_paths.known_links) == (
        rounds.message_paths.count,
        rounds.message_paths.known_links,
    )
    totals = []
    for view in (matrix, rounds):
        cells = np.nonzero(~np.isnan(view.pairs.value))
        path = view.message_paths.of_cells(view.pairs, cells)
        totals.append(view.message_paths.totals(np.bincount(path, minlength=view.message_paths.segments.shape[0])))
    np.testing.assert_array_equal(*totals)
    np.testing.assert_array_equal(
        matrix.message_paths.possible[: matrix.message_paths.known_links], totals[0][: matrix.message_paths.known_links]
    )
    assert not rounds.message_paths.possible.any()  # of a list, the pairs that could have been measured are unknown


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FABRICS)
@settings(max_examples=8)
@given(data=st.data())
def test_cells_on_a_link_are_those_that_cross_it(name: str, layout: str, data: st.DataObject) -> None:
    fabric = FABRICS[name]
    view = view_of(fabric, layout)
    wanted = np.array(
        data.draw(st.lists(st.integers(0, view.message_paths.count - 1), min_size=1, max_size=3, unique=True))
    )
    row, column = np.nonzero(~np.isnan(view.pairs.value))
    segments = view.message_paths.segments[view.message_paths.of_cells(view.pairs, (row, column))]
    crossing = np.isin(segments, wanted).any(axis=1)
    brute = set(zip(row[crossing].tolist(), column[crossing].tolist(), strict=True))
    cells = view.message_paths.cells_on(view.message_paths.crossing(wanted))
    measured_cells = ~np.isnan(view.pairs.value[cells])
    found = list(zip(cells[0][measured_cells].tolist(), cells[1][measured_cells].tolist(), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == brute


def test_an_unknown_path_between_two_switches_is_one_segment() -> None:
    for fabric in (HASHED, FLY):
        view = view_of(fabric, "matrix")
        at = fabric.port_switch
        a, b = 0, len(fabric.hosts) - 1
        path = view.message_paths.between(np.array([a, b, a]), np.array([b, a, b - 1]))
        there, back, beside = (view.message_paths.segments[one] for one in path)
        assert at[b] == at[b - 1]
        np.testing.assert_array_equal(there, beside)
        assert there.max() != back.max()
        assert min(there.max(), back.max()) >= view.message_paths.known_links


def test_only_paths_that_depend_on_the_destination_are_not_symmetric() -> None:
    assert not view_of(TREE, "list").message_paths.is_symmetric
    assert not view_of(DEEP, "list").message_paths.is_symmetric
    assert view_of(HASHED, "list").message_paths.is_symmetric
    assert view_of(FLY, "list").message_paths.is_symmetric


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_message_stays_on_its_rail(layout: str) -> None:
    view = view_of(RAILS, layout)
    assert view.message_paths.routes is not None
    row, column = np.nonzero(~np.isnan(view.pairs.value))
    to = view.pairs.destination((row, column))
    for rail in (0, 1):
        inside = (row % 2 == rail) & (to % 2 == rail)
        message_paths = np.unique(view.message_paths.of_cells(view.pairs, (row[inside], column[inside])))
        names = {name for path in message_paths for name in names_of(view.message_paths, path)}
        assert names <= {name for name in view.message_paths.routes.names if name.startswith(f"p{rail}.")}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_a_topology_there_are_no_paths(layout: str) -> None:
    view = View(measured(TREE, layout), None, bidirectional=False)
    cells = np.nonzero(~np.isnan(view.pairs.value))
    assert (view.message_paths.count, view.message_paths.known_links) == (0, 0)
    assert not view.message_paths.of_cells(view.pairs, cells).any()
    assert not view.message_paths.crossing(np.array([], dtype=np.int64)).any()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_hosts_missing_from_the_topology_have_no_path(layout: str) -> None:
    run = measured(TREE, layout)
    hosts = ["stranger", *run.hosts[1:]]
    view = View(attributed(run, hosts=hosts), TREE.topology, bidirectional=False)
    row, column = np.nonzero(~np.isnan(view.pairs.value))
    to = view.pairs.destination((row, column))
    found = view.message_paths.of_cells(view.pairs, (row, column))
    strange = (row == 0) | (to == 0)
    assert (view.message_paths.segments[found[strange]] == -1).all()
    for src, dst, path in list(
        zip(row[~strange].tolist(), to[~strange].tolist(), found[~strange].tolist(), strict=True)
    )[::11]:
        assert names_of(view.message_paths, path) == expected(TREE, src, dst)
