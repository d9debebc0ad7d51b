"""What is measured at once: repeats of a matrix, both directions at once, and large numbers of flows on a link."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from analyse_cases import reported
from fabric_cases import DEEP, QUIET, STREAM, TREE, View, faulty

from fablint.analyse import diagnose
from fablint.analyse.null_model.loads import STEPS, loads, median_of_loads, never_shared
from fablint.model import Finding, Run, State
from fablint.simulate import Fabric, Fault, SimulatedFabric, SimulatedRow, fat_tree, torus
from fact_cases import with_facts
from finding_cases import ref

EXCHANGE = SimulatedRow("exchange", (1 << 20,))
GRID, NARROW = torus((4, 3), 2), fat_tree(8, 2)
FABRICS = {"tree": TREE, "narrow": NARROW, "deep": DEEP, "torus": GRID}


def drawn_rounds(fabric: Fabric, count: int, seed: int) -> list[np.ndarray]:
    """Random matchings, which collide."""
    rng, hosts = np.random.default_rng(seed), len(fabric.hosts)
    return [rng.permutation(hosts)[: hosts // 2 * 2].reshape(-1, 2) for _ in range(count)]


def drawn_view(fabric: Fabric) -> View:
    run = faulty(fabric).measure(drawn_rounds(fabric, 6, 1), [STREAM])
    return View(run, fabric.topology, bidirectional=False)


def links_of(fabric: Fabric, src: int, dst: int) -> list[int]:
    at = fabric.port_switch
    (hops,) = fabric.routes.hops(at[[src]], at[[dst]], np.array([dst]))
    return [link for link in hops.tolist() if link >= 0]


def counted_at_once(fabric: Fabric, partner: np.ndarray) -> np.ndarray:
    """(n, m) flows on the busiest link of each message if all messages of a round are sent at once."""
    busiest = np.zeros(partner.shape, dtype=int)
    for column in range(partner.shape[1]):
        pairs = [(a, b) for a, b in enumerate(partner[:, column].tolist()) if b >= 0]
        flows = Counter(link for a, b in pairs for link in links_of(fabric, a, b))
        for a, b in pairs:
            busiest[a, column] = max((flows[link] for link in links_of(fabric, a, b)), default=0)
    return busiest


@pytest.mark.parametrize("name", FABRICS)
def test_both_directions_at_once_share_links_and_the_slower_one_counts(name: str) -> None:
    fabric, view = FABRICS[name], drawn_view(FABRICS[name])
    partner = view.pairs.partner
    assert partner is not None
    flows = counted_at_once(fabric, partner)
    slower = np.maximum(flows, np.take_along_axis(flows, np.maximum(partner, 0), axis=0)) * (partner >= 0)
    columns = np.ones(partner.shape[1], dtype=bool)
    load = loads(view.pairs, view.message_paths, columns, None, at_once=True)
    np.testing.assert_array_equal(load, np.count_nonzero(slower[..., None] >= STEPS, axis=-1))
    alone = never_shared(view.pairs, view.message_paths, columns, None)
    np.testing.assert_array_equal(alone, slower <= 1)
    assert never_shared(view.pairs, view.message_paths, np.zeros_like(columns), None).all()


@pytest.mark.parametrize("flows", [5, 7, 9, 11, 13, 15])
def test_numbers_of_flows_that_differ_by_one_are_not_compared(flows: int) -> None:
    """Six streams on a link are a fifth slower than five."""
    assert len({int(np.searchsorted(STEPS, number, side="right")) for number in (flows - 1, flows, flows + 1)}) == 3


def test_a_cell_of_repeats_has_the_load_of_their_median() -> None:
    rounds = np.array([[[-1, 0], [0, -1]], [[-1, 2], [2, -1]], [[-1, 5], [-1, -1]]])
    of_repeats = [np.array([[0, 1], [4, 0]], np.uint8), None, np.array([[0, 9], [7, 0]], np.uint8)]
    load = median_of_loads(of_repeats, rounds)
    assert load is not None
    assert load.tolist() == [[0, 1], [2, 0]]  # the cell that the third repeat lacks is the median of two
    assert median_of_loads([None, None], rounds[:2]) is None
    assert median_of_loads(of_repeats[:1], None) is of_repeats[0]


def as_matrix(run: Run, repeats: int) -> Run:
    """Rounds of a list as a matrix of repeats, each of which has as many of the rounds."""
    (row,) = run.rows
    target, times = np.asarray(row.arrays["dst"]), np.asarray(row.arrays["time_median"])
    each = target.shape[1] // repeats
    matrix = np.full((repeats, run.ranks, run.ranks, 1), np.nan, np.float32)
    rounds = np.full((repeats, run.ranks, run.ranks), -1, np.int32)
    source, column = np.nonzero(target >= 0)
    to = target[source, column]
    matrix[column // each, source, to] = times[source, column]
    rounds[column // each, source, to] = column
    counts = np.where(np.isnan(matrix), 0, 100).astype(np.uint32)
    arrays = {"time_median": matrix, "round": rounds, "count": counts, "size": row.arrays["size"]}
    row = with_facts(row, layout="matrix", pattern="all-pairs", repeats=repeats, rounds=target.shape[1])
    return replace(run, rows=(replace(row, arrays=arrays),))


def tournament(hosts: int, seed: int) -> list[np.ndarray]:
    """All pairs, in rounds; `seed` draws the order of the hosts. Of an odd number, one is idle in each round."""
    order, rounds = np.random.default_rng(seed).permutation(hosts), []
    even = hosts + hosts % 2
    ring = list(range(1, even))
    for turn in range(even - 1):
        order_of_turn = [0, *ring[turn:], *ring[:turn]]
        pairs = np.array([order_of_turn[: even // 2], order_of_turn[: even // 2 - 1 : -1]]).T
        rounds.append(order[pairs[(pairs < hosts).all(axis=1)]])
    return rounds


def repeated(fabric: Fabric, *faults: Fault, same: bool, seed: int) -> Run:
    """Three repeats of all pairs, in the same rounds or in others."""
    rounds = [pairs for repeat in range(3) for pairs in tournament(len(fabric.hosts), 0 if same else repeat)]
    return as_matrix(faulty(fabric, *faults, noise=QUIET, seed=seed).measure(rounds, [STREAM]), 3)


@pytest.mark.parametrize("same", [True, False], ids=["same rounds", "other rounds"])
@pytest.mark.parametrize("name", ["narrow", "deep", "torus"])
def test_repeats_of_contended_rounds_report_no_component(name: str, same: bool) -> None:
    fabric = FABRICS[name]
    for seed in range(2):
        diagnosis = diagnose(repeated(fabric, same=same, seed=seed), fabric.topology)
        assert reported(diagnosis) == set()


@pytest.mark.parametrize("name", FABRICS)
def test_repeats_that_lack_most_pairs_report_no_component_where_cables_are_unknown(name: str) -> None:
    fabric = FABRICS[name]
    simulated = SimulatedFabric(fabric, (), QUIET, seed=1)
    run = as_matrix(simulated.measure(drawn_rounds(fabric, 24, 7), [STREAM]), 3)
    assert reported(diagnose(run, replace(fabric.topology, cables=()))) == set()


@pytest.mark.parametrize("name", ["tree", "narrow", "deep", "torus"])
def test_contended_exchanges_of_a_healthy_fabric_pass(name: str) -> None:
    fabric = FABRICS[name]
    run = faulty(fabric, noise=QUIET).measure(drawn_rounds(fabric, 24, 2), [EXCHANGE])
    diagnosis = diagnose(run, fabric.topology)
    assert [
        finding for finding in diagnosis.verdict.findings if finding.state not in (State.OK, State.NOT_JUDGED)
    ] == []


def faults_in(run: Run, fabric: Fabric) -> list[Finding]:
    return [finding for finding in diagnose(run, fabric.topology).verdict.findings if finding.state is State.FAULT]


@pytest.mark.parametrize("name", FABRICS)
def test_a_slow_cable_beside_other_shared_links_is_at_fault(name: str) -> None:
    """Some of its messages have a share of another link, and are no slower for the cable."""
    fabric = FABRICS[name]
    ends = fabric.topology.cables[5]
    cable = ref("cable", ends.a, ends.b)
    simulated = faulty(fabric, Fault(cable, bandwidth_factor=0.5), noise=QUIET)
    run = simulated.measure(drawn_rounds(fabric, 40, 3), [STREAM])
    assert [finding.name for finding in faults_in(run, fabric)] == [cable.label]


@pytest.mark.parametrize("name", ["narrow", "deep", "torus"])
@pytest.mark.parametrize("rounds", [16, 24])
def test_a_host_of_which_all_streams_had_a_share_of_a_link_is_not_ok(name: str, rounds: int) -> None:
    """A host that could send faster than its share looks no faster."""
    fabric = FABRICS[name]
    run = faulty(fabric, noise=QUIET).measure(drawn_rounds(fabric, rounds, 6), [STREAM])
    view, (row,) = View(run, fabric.topology, bidirectional=False), run.rows
    load = loads(view.pairs, view.message_paths, np.ones(view.pairs.value.shape[1], dtype=bool), None)
    assert load is not None
    times, lost = np.array(row.arrays["time_median"]), np.random.default_rng(1).random(load.shape) < 0.9
    times[(load == 0) & lost] = np.nan
    run = replace(run, rows=(replace(row, arrays={**row.arrays, "time_median": times}),))
    healthy = [finding for finding in diagnose(run, fabric.topology).verdict.findings if finding.state is State.OK]
    assert not [finding for finding in healthy if finding.component in ("host", "switch")]
