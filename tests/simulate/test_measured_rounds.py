"""Rounds of a simulated fabric: what each measurement costs, alone and beside others."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from simulate_cases import (
    FABRICS,
    FLY,
    RAILS,
    ROUND_TRIP,
    SILENT,
    STREAM,
    TREE,
    as_matrix,
    every_round,
    listed,
    silent,
)

from fablint.errors import UsageError
from fablint.simulate import Fault, Noise, SimulatedFabric, SimulatedRow, fat_tree, full_mesh
from fablint.simulate.messages.costs import SOFTWARE_S
from fablint.simulate.messages.times import MESSAGES
from fablint.simulate.rounds import all_rounds, opponent, partners_of, schedule
from fablint.simulate.simulated_rows import ROUND_S
from fablint.store import read_run, write_run
from finding_cases import component, ref

BOTH_WAYS = SimulatedRow("bibandwidth", (1 << 20,))
EXCHANGE = SimulatedRow("exchange", (8,))
FAULTS = (
    Fault(ref("host", "h01"), "tx", bandwidth_factor=0.5),
    Fault(ref("switch", "leaf2"), bandwidth_factor=0.8, added_latency_s=1e-6),
    Fault(ref("link", "leaf0", "spine1"), bandwidth_factor=0.6, added_latency_s=2e-6),
)


@pytest.mark.parametrize("name", sorted(set(FABRICS) - {"fly"}))
@pytest.mark.parametrize("row", [STREAM, ROUND_TRIP, BOTH_WAYS, EXCHANGE], ids=lambda row: row.kernel)
def test_a_matrix_holds_what_rounds_do(name: str, row: SimulatedRow) -> None:
    """The two ways to simulate agree, cell by cell."""
    fabric = FABRICS[name]
    faulty = silent(
        fabric,
        Fault(fabric.link_ref(2), bandwidth_factor=0.7, added_latency_s=1e-6, duplex_factor=0.9),
        Fault(ref("host", fabric.hosts[1]), "rx", bandwidth_factor=0.5),
    )
    full, rounds = faulty.measure(None, [row]), faulty.measure(every_round(fabric), [row])
    np.testing.assert_allclose(as_matrix(full, row.kernel), as_matrix(rounds, row.kernel), rtol=1e-6)
    assert full.rows[0].layout == "matrix"
    assert rounds.rows[0].layout == "list"


def test_a_stream_follows_the_slowest_link_and_a_round_trip_the_sum() -> None:
    faulty = silent(TREE, *FAULTS)
    healthy = silent(TREE).measure(None, [STREAM, ROUND_TRIP])
    run = faulty.measure(None, [STREAM, ROUND_TRIP])
    slower = as_matrix(run) / as_matrix(healthy)
    assert slower[1, 5] == pytest.approx(2.0)  # h01 sends over leaf0>spine1, which is less slow
    assert slower[0, 5] == pytest.approx(1 / 0.6)
    assert slower[0, 4] == pytest.approx(1.0)
    assert slower[0, 9] == pytest.approx(1 / 0.6)
    assert slower[8, 0] == slower[0, 8] == pytest.approx(1 / 0.8)
    added = as_matrix(run, "latency") - as_matrix(healthy, "latency")
    assert added[0, 9] == pytest.approx((2e-6 + 1e-6 + 1e-6) / 2, rel=1e-3)  # there over both, back over leaf2


def test_both_directions_at_once_show_the_slower_one() -> None:
    faulty = silent(TREE, Fault(ref("host", "h01"), "tx", bandwidth_factor=0.5))
    run = faulty.measure(None, [STREAM, BOTH_WAYS])
    one, both = as_matrix(run), as_matrix(run, "bibandwidth")
    np.testing.assert_array_equal(both, both.T)
    assert both[0, 1] == one[1, 0] == pytest.approx(2 * one[0, 1])


def test_duplex_faults_show_only_while_both_directions_are_in_use() -> None:
    faulty = silent(TREE, Fault(ref("host", "h01"), duplex_factor=0.5))
    run = faulty.measure(None, [STREAM, ROUND_TRIP, BOTH_WAYS, SimulatedRow("exchange", (1 << 20,))])
    healthy = silent(TREE).measure(None, [STREAM, ROUND_TRIP, BOTH_WAYS, SimulatedRow("exchange", (1 << 20,))])
    for row in ("bandwidth", "latency"):
        np.testing.assert_array_equal(as_matrix(run, row), as_matrix(healthy, row))
    for row in ("bibandwidth", "exchange"):
        slower = as_matrix(run, row) / as_matrix(healthy, row)
        assert slower[1, 5] > 1.9
        assert slower[5, 1] > 1.9
        assert slower[2, 5] == 1.0


def test_pairs_that_share_a_link_share_its_bandwidth() -> None:
    """h00, h01 and h02 of leaf 0 send to h05, h09 and h13, all of which spine 1 serves."""
    together = [np.array([[0, 5], [1, 9], [2, 13], [4, 3]])]
    alone = [np.array([[0, 5]]), np.array([[4, 3]])]
    contended = silent(TREE, contention=True)
    shared = listed(contended.measure(together, [STREAM]))[:, 0]
    single = listed(contended.measure(alone, [STREAM]))
    np.testing.assert_allclose(shared[[0, 1, 2]] / single[0, 0], 3.0, rtol=1e-6)
    assert shared[5] == single[5, 0]  # the reverse paths part at spines 0, 1, 2
    assert shared[3] == pytest.approx(single[3, 1])  # on another spine
    serial = contended.measure(together, [SimulatedRow("bandwidth", (1 << 20,), "serial")])
    np.testing.assert_allclose(listed(serial)[[0, 1, 2], 0], single[0, 0], rtol=1e-6)
    np.testing.assert_array_equal(listed(silent(TREE).measure(together, [STREAM]))[:3, 0], single[0, 0])


def test_both_directions_of_all_pairs_share_at_once() -> None:
    pairs = [np.array([[0, 5], [9, 1], [2, 13]])]  # 9 sends to 1 while 1 sends to 9
    run = silent(TREE, contention=True).measure(pairs, [STREAM, BOTH_WAYS])
    one, both = listed(run)[:, 0], listed(run, "bibandwidth")[:, 0]
    assert both[0] == pytest.approx(3 * 42e-6, rel=0.01)
    assert one[0] == pytest.approx(3 * 42e-6, rel=0.01)  # the lower ranks send first, 1 to 9 too


def test_ranks_of_a_host_share_its_cable() -> None:
    fabric = SimulatedFabric(TREE, (), SILENT, ranks_per_host=2, contention=True)
    run = fabric.measure([np.array([[0, 8], [1, 16]]), np.array([[0, 8]])], [STREAM])
    assert listed(run)[0, 0] / listed(run)[0, 1] == pytest.approx(2.0)


def test_a_contended_dragonfly_is_slower_with_fewer_paths() -> None:
    """All hosts of a group send to another group, over one cable and detours."""
    size = len(FLY.hosts) // 5
    pairs = [np.array([[host, host + size] for host in range(size)])]
    row = SimulatedRow("bandwidth", (1 << 20,))
    contended = listed(silent(FLY, contention=True).measure(pairs, [row]))[:size, 0]
    quiet = listed(silent(FLY).measure(pairs, [row]))[:size, 0]
    assert (contended / quiet).min() > 3
    assert (contended / quiet).max() < size


@settings(max_examples=30)
@given(players=st.integers(2, 30), number=st.integers(0, 60))
def test_opponents_are_those_of_the_schedule(players: int, number: int) -> None:
    rounds = schedule(players)
    number %= int(rounds.max()) + 1
    met = opponent(np.arange(players), players, number)
    for player in range(players):
        expected = np.flatnonzero(rounds[player] == number)
        assert met[player] == (expected[0] if expected.size else -1)


@pytest.mark.parametrize("pairs", [[[0, 1], [1, 2]], [[3, 3]], [[0, 99]], [[-1, 2]]])
def test_rounds_that_are_no_matching_are_refused(pairs) -> None:
    with pytest.raises(UsageError, match="round 0"):
        partners_of([np.array(pairs)], 16)


@pytest.mark.parametrize(
    "row",
    [SimulatedRow("rpc_put", (8,)), SimulatedRow("latency", ()), SimulatedRow("latency", (8,), statistics=("x",))],
)
def test_rows_that_are_unknown_are_refused(row: SimulatedRow) -> None:
    with pytest.raises(UsageError):
        silent(TREE).measure(None, [row])


def test_started_gives_the_first_leader_and_one_after_the_other() -> None:
    rounds = [np.array([[0, 1], [2, 3]]), np.array([[0, 2], [1, 3]])]
    parallel, serial = (
        np.asarray(silent(TREE).measure(rounds, [SimulatedRow("bandwidth", (8,), order)]).rows[0].arrays["started"])
        for order in ("parallel", "serial")
    )
    assert parallel[0, 0] < parallel[1, 0]
    assert parallel[0, 1] > parallel[2, 1]
    assert np.nanmax(parallel[:, 0]) < np.nanmin(parallel[:, 1])
    known = np.sort(serial[~np.isnan(serial)])
    np.testing.assert_allclose(np.diff(known), ROUND_S / 2)
    assert np.isnan(parallel[4:]).all()


def test_more_rounds_join_the_run_and_hosts_stay_as_they_are() -> None:
    """Scatter is new, what a host and a link are by themselves is not."""
    spread = Noise(scale=0.0, spike_share=0.0, host_spread=0.05, link_spread=0.02)
    fabric = SimulatedFabric(TREE, (FAULTS[0],), spread, seed=4)
    rounds = all_rounds(16)
    run = fabric.measure(rounds[:5], [STREAM, ROUND_TRIP])
    more = fabric.extended(run, rounds[3:8])
    assert [row.name for row in more.rows] == ["bandwidth", "latency", "bandwidth-2", "latency-2"]
    assert more.facts.rows == [row.name for row in more.rows]
    for row in ("bandwidth", "latency"):
        np.testing.assert_array_equal(listed(more, row)[:, 3:5], listed(more, f"{row}-2")[:, :2])
    assert np.nanmin(more.rows[2].arrays["started"]) >= np.nanmax(more.rows[1].arrays["started"])
    noisy = SimulatedFabric(TREE, seed=4)
    twice = noisy.extended(noisy.measure(rounds[:2], [STREAM]), rounds[:2], [STREAM])
    assert (listed(twice) != listed(twice, "bandwidth-2")).all()


@pytest.mark.parametrize("name", sorted(FABRICS))
def test_runs_survive_the_disk(name: str, tmp_path: Path) -> None:
    fabric = FABRICS[name]
    row = SimulatedRow("bandwidth", (8, 1 << 20), histogram=True, statistics=("min", "median", "mean", "p99", "max"))
    run = SimulatedFabric(fabric, ranks_per_host=fabric.rails).measure(every_round(fabric)[:3], [row])
    write_run(tmp_path / "a.run", run)
    back = read_run(tmp_path / "a.run")
    assert not back.notes
    for array, values in run.rows[0].arrays.items():
        np.testing.assert_array_equal(back.rows[0].arrays[array][:], values)


def test_rows_are_the_same_whatever_else_is_measured() -> None:
    fabric = SimulatedFabric(TREE)
    rounds = all_rounds(16)[:4]
    both, one = fabric.measure(rounds, [STREAM, ROUND_TRIP]), fabric.measure(rounds, [STREAM])
    np.testing.assert_array_equal(listed(both), listed(one))


def test_histograms_hold_every_message_and_agree_with_the_statistics() -> None:
    row = SimulatedRow("bandwidth", (1 << 20,), histogram=True, statistics=("min", "median", "mean", "p99", "max"))
    run = SimulatedFabric(TREE, (FAULTS[0],), Noise(spike_share=0.0)).measure(all_rounds(16), [row])
    arrays = run.rows[0].arrays
    counts, edges = arrays["histogram"][:, :, 0, :], arrays["bucket"]
    assert (counts.sum(axis=-1) == MESSAGES).all()
    middle = edges[(counts.cumsum(axis=-1) < MESSAGES / 2).sum(axis=-1)]
    np.testing.assert_allclose(middle, arrays["time_median"][:, :, 0], rtol=0.02)
    order = [arrays[f"time_{name}"] for name in ("min", "median", "mean", "p99", "max")]
    for low, high in ((0, 1), (0, 2), (1, 3), (3, 4)):
        assert (order[low] <= order[high] * 1.0001).all()


def test_adaptive_messages_cross_a_faulty_link_as_often_as_they_should() -> None:
    """Of the pairs between two groups half of the messages take the one cable, and so do detours inside the two."""
    groups = FLY.topology.switches
    cable = next(c for c in FLY.topology.cables if groups[c.a].group != groups[c.b].group)
    slow = Fault(ref("link", cable.a, cable.b), bandwidth_factor=0.5)
    row = SimulatedRow("bandwidth", (1 << 20,), histogram=True)
    run = silent(FLY, slow).measure(all_rounds(len(FLY.hosts)), [row])
    arrays = run.rows[0].arrays
    late = arrays["histogram"][:, :, 0, :][..., arrays["bucket"] > 1.5 * 42e-6].sum(axis=-1) / MESSAGES
    group = np.array([FLY.topology.group_of(host) for host in FLY.hosts])
    partner = np.asarray(arrays["dst"])
    known = partner >= 0
    there = known & (group[:, None] == groups[cable.a].group) & (group[partner] == groups[cable.b].group)
    apart = known & ~np.isin(group, [groups[cable.a].group])[:, None] & (group[partner] != groups[cable.b].group)
    assert 0.5 <= late[there].mean() < 0.7
    assert late[apart].mean() < 0.02
    from_there = known & (group[:, None] == groups[cable.a].group) & ~there & (group[partner] != group[:, None])
    assert 0.05 < late[from_there].mean() < 0.3  # detours pass through the group at its other end


def test_adaptive_medians_are_blind_where_few_messages_cross() -> None:
    link = 0
    run = silent(FLY, Fault(FLY.link_ref(link), bandwidth_factor=0.5)).measure(all_rounds(len(FLY.hosts)), [STREAM])
    slower = listed(run) > 1.2 * np.nanmin(listed(run))
    code = {name: number for number, name in enumerate(FLY.routes.switches)}
    switch = np.array([code[FLY.topology.host_switch[host]] for host in FLY.hosts])
    rank, column = np.nonzero(slower)
    query, crossed, share = FLY.routes.exposure(switch[rank], switch[run.rows[0].arrays["dst"][rank, column]])
    minimal = np.bincount(query[crossed == link], weights=share[crossed == link], minlength=rank.size)
    assert rank.size and (minimal >= 0.45).all()  # of messages, of which with some detours a half


def test_rails_take_the_plane_of_the_sender() -> None:
    run = silent(RAILS, Fault(component("nic", "h01/hsn1"), bandwidth_factor=0.5)).measure(None, [STREAM])
    slower = as_matrix(run) / np.nanmin(as_matrix(run))
    assert run.facts.rank_nic[:4] == ["hsn0", "hsn1", "hsn0", "hsn1"]
    src, dst = np.indices(slower.shape)
    expected = ((src == 3) | ((dst // 2 == 1) & (src % 2 == 1))) & (src // 2 != dst // 2)
    np.testing.assert_array_equal(slower[src // 2 != dst // 2] > 1.5, expected[src // 2 != dst // 2])


def test_a_large_message_hides_the_latency() -> None:
    run = silent(full_mesh(2, 2)).measure(None, [SimulatedRow("latency", (0, 1 << 20))])
    time = np.asarray(run.rows[0].arrays["time_median"])[0, 0, 1]
    assert time[0] == pytest.approx(SOFTWARE_S + 2 * 0.3e-6)
    assert time[1] - time[0] == pytest.approx((1 << 20) / 25e9)


def test_paths_of_ecmp_are_the_same_in_every_round() -> None:
    fabric = fat_tree(4, 2, "ecmp")
    faulty = silent(fabric, Fault(ref("link", "leaf0", "spine1"), bandwidth_factor=0.5))
    rounds = all_rounds(16)
    once, again = (as_matrix(faulty.measure(rounds[:n], [STREAM])) for n in (8, 15))
    np.testing.assert_array_equal(once[~np.isnan(once)], again[~np.isnan(once)])
    slow = np.isclose(again / np.nanmin(again), 2.0)
    assert 4 < slow.sum() < 30
    assert not slow[4:].any()
