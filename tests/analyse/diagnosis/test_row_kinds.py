"""Rows of every kernel and pattern: a faulty component is reported by the sender of the payload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from analyse_cases import attributed, changed, named, reported, row_attributed
from row_kinds import (
    KINDS,
    clients_servers,
    fan_in,
    one_direction,
    one_direction_in_rounds,
    only,
    retest,
    victims,
    with_kernel,
    world,
)

from fablint.analyse import diagnose
from fablint.model import Row, Run, State, Verdict
from fablint.model.registry import KERNELS
from fablint.simulate import Fault, Noise, full_mesh, simulate
from fablint.text.evidence_sentences import sentences
from fact_cases import with_facts
from finding_cases import note_texts, ref

pytestmark = pytest.mark.long  # all kinds of rows with all kinds of noise

MESH = full_mesh(8, 8)
QUIET = Noise(scale=0.01, spike_share=0)


def judged(verdict: Verdict) -> tuple[int, int]:
    """Numbers of judged hosts and links."""
    return verdict.coverage.hosts_judged, verdict.coverage.links_judged


STREAMS = [name for name in KINDS if KERNELS[name].quantity == "bandwidth" and KERNELS[name].payload != "both"]
ROUND_TRIPS = [kernel for kernel in KINDS if kernel not in STREAMS]


def verdict_of(run: Run, row: Row) -> str:
    return diagnose(only(run, row), MESH.topology).verdict.verdict


# ------------------------------------------------------------------------------------------------ senders


@pytest.mark.parametrize("direction", ["tx", "rx", "both"])
@pytest.mark.parametrize("kernel", STREAMS)
def test_the_direction_is_that_of_the_payload(kernel: str, direction: str) -> None:
    for seed in range(2):
        run = simulate(MESH, faults=[Fault(ref("host", "h05"), direction, bandwidth_factor=0.7)], seed=seed)
        diagnosis = diagnose(only(run, with_kernel(run, kernel)), MESH.topology)
        assert named(diagnosis) == {("host", "h05", direction)}
        assert diagnosis.verdict.findings[0].quantity == "bandwidth"
        assert diagnosis.verdict.findings[0].effect == pytest.approx(-0.3, abs=0.03)


@pytest.mark.parametrize("kernel", ["get_bandwidth", "put_bandwidth"])
def test_a_directed_link_is_named_in_the_direction_of_the_payload(kernel: str) -> None:
    run = simulate(MESH, faults=[Fault(ref("link", "s4", "s1"), bandwidth_factor=0.6)])
    assert named(diagnose(only(run, with_kernel(run, kernel)), MESH.topology)) == {("link", "s4>s1", None)}


def test_a_few_rounds_of_gets_are_turned_as_well() -> None:
    run = simulate(MESH, faults=[Fault(ref("host", "h40"), "tx", bandwidth_factor=0.7)])
    rounds = one_direction_in_rounds(run, with_kernel(run, "get_bandwidth"), 40, 3)
    assert named(diagnose(only(run, rounds))) == {("host", "h40", "tx")}


@pytest.mark.parametrize("kernel", ROUND_TRIPS)
def test_puts_and_gets_of_few_bytes_and_both_directions_at_once_show_no_direction(kernel: str) -> None:
    fault = Fault(ref("host", "h05"), "tx", bandwidth_factor=0.6, added_latency_s=1e-6)
    run = simulate(MESH, faults=[fault])
    assert named(diagnose(only(run, with_kernel(run, kernel)), MESH.topology)) == {("host", "h05", None)}


def test_several_kernels_of_one_quantity_make_one_finding() -> None:
    run = simulate(MESH, faults=[Fault(ref("host", "h05"), "rx", bandwidth_factor=0.7)])
    both = only(run, run.row("bandwidth"), with_kernel(run, "get_bandwidth"), with_kernel(run, "put_bibandwidth"))
    diagnosis = diagnose(both, MESH.topology)
    assert named(diagnosis) == {("host", "h05", "rx")}
    evidence = sentences(diagnosis.verdict.findings[0].evidence)
    assert all(f"{row} 1 MiB" in evidence for row in ("bandwidth", "get_bandwidth", "put_bibandwidth"))


# ------------------------------------------------------------------------------------------------ one direction


@pytest.mark.parametrize("host", ["h00", "h05", "h63"])
def test_one_direction_per_pair_is_enough_for_a_round_trip(host: str) -> None:
    run = simulate(MESH, faults=[Fault(ref("host", host), added_latency_s=1e-6)])
    row = one_direction(run.row("latency"))
    diagnosis = diagnose(only(run, row), MESH.topology)
    assert named(diagnosis) == {("host", host, None)}
    assert not [f for f in diagnosis.verdict.findings if f.state is State.NOT_JUDGED]
    fit = diagnosis.fits[0]
    assert fit.tx[int(host[1:])] > 0.3
    np.testing.assert_array_equal(fit.tx, fit.rx)


def test_one_direction_per_pair_of_a_slow_cable_names_the_cable() -> None:
    run = simulate(MESH, faults=[Fault(ref("cable", "s1", "s4"), added_latency_s=1e-6)])
    assert named(diagnose(only(run, one_direction(run.row("latency"))), MESH.topology)) == {("cable", "s1=s4", None)}


def test_what_a_stream_in_one_direction_did_not_measure_is_not_judged() -> None:
    run = simulate(MESH, noise=QUIET)
    verdict = diagnose(only(run, one_direction(run.row("bandwidth"))), MESH.topology).verdict
    missing = [f for f in verdict.findings if f.state is State.NOT_JUDGED and f.component == "host"]
    assert [f.name for f in missing] == ["h[00-02,61-63]"]  # fewer than three send to the first, or hear the last
    assert any("one direction of each pair" in note for note in note_texts(verdict))


# ------------------------------------------------------------------------------------------------ stars


@pytest.mark.parametrize(("kernel", "direction"), [("rpc_get", "tx"), ("rpc_put", "rx"), ("bandwidth", "tx")])
# Eight servers are on one switch, so that the path to it is a suspect as well.
@pytest.mark.parametrize(("servers", "state"), [(8, State.FAULT), (13, State.FAULT), (20, State.FAULT)])
def test_a_slow_client_is_named_the_surer_the_more_servers(
    kernel: str, direction: str, servers: int, state: State
) -> None:
    run = simulate(MESH, faults=[Fault(ref("host", "h40"), direction, bandwidth_factor=0.6)], noise=QUIET)
    diagnosis = diagnose(only(run, clients_servers(run, kernel, servers)), MESH.topology)
    assert reported(diagnosis) == {("host", "h40", direction)}
    assert diagnosis.verdict.findings[0].state is state


@pytest.mark.parametrize("servers", [8, 13])
def test_a_slow_server_is_a_suspect_at_most_and_its_clients_are_not(servers: int) -> None:
    run = simulate(MESH, faults=[Fault(ref("host", "h03"), bandwidth_factor=0.6)], noise=QUIET)
    diagnosis = diagnose(only(run, clients_servers(run, "rpc_put", servers)), MESH.topology)
    assert named(diagnosis) == set()
    assert {name for _, name, _ in reported(diagnosis)} <= {"h03"}
    assert diagnosis.verdict.exit_code == 3


def test_a_star_exonerates_no_host_and_spoils_no_verdict() -> None:
    run = simulate(MESH, noise=QUIET)
    star = clients_servers(run, "rpc_put", 8)
    alone = diagnose(only(run, star), MESH.topology).verdict
    assert (alone.verdict, alone.findings) == ("incomplete", ())
    beside = diagnose(only(run, *run.rows, star), MESH.topology).verdict
    assert beside.verdict == "pass"
    assert judged(beside) == judged(diagnose(run, MESH.topology).verdict)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (fan_in, "all ranks share 1 host"),
        (lambda run: clients_servers(run, "rpc_put", 2), "all ranks share 2 hosts"),
        (lambda run: world(run, "allreduce", slow=7), "one time for all ranks"),
        (lambda run: victims(run, 6), "slowed on purpose"),
    ],
)
def test_rows_without_evidence_are_excluded_with_the_reason(make: Callable[[Run], Row], why: str) -> None:
    run = simulate(MESH, faults=[Fault(ref("host", "h00"), bandwidth_factor=0.3)], noise=QUIET)
    row = make(run)
    verdict = diagnose(only(run, row), MESH.topology).verdict
    assert (verdict.verdict, verdict.exit_code, verdict.findings) == ("incomplete", 3, ())
    assert [note for note in note_texts(verdict) if note.startswith(f"row {row.name} is not judged") and why in note]
    healthy = simulate(MESH, noise=QUIET)
    beside = diagnose(only(healthy, *healthy.rows, make(healthy)), MESH.topology).verdict
    assert (beside.verdict, judged(beside)) == ("pass", judged(diagnose(healthy, MESH.topology).verdict))


@pytest.mark.parametrize(
    ("servers", "rank_host"),
    [
        (8, [rank % 8 for rank in range(16)]),  # a server and a client on every host
        (8, [0, 0, 1, 1, 2, 2, 2, 2, *range(3, 11)]),  # four servers share one NIC, elsewhere two do
        (4, [*range(4), 4, 4, 4, *range(5, 14)]),  # three clients share one
    ],
)
def test_hosts_with_different_numbers_of_clients_or_servers_are_no_peers(servers: int, rank_host: list[int]) -> None:
    run = simulate(full_mesh(4, 4), noise=QUIET)
    star = only(run, clients_servers(run, "rpc_put", servers))
    placed = {"rank_host": rank_host, "hosts": run.hosts[: max(rank_host) + 1]}
    verdict = diagnose(attributed(star, **placed, rank_cores=[str(rank) for rank in range(16)])).verdict
    assert verdict.findings == ()
    assert any("different numbers of clients and servers" in note for note in note_texts(verdict))


def test_a_star_of_many_rounds_repeated_is_one_table() -> None:
    run = simulate(MESH, faults=[Fault(ref("host", "h40"), "tx", bandwidth_factor=0.6)], noise=QUIET)
    row = clients_servers(run, "rpc_get", 13)
    arrays = dict(row.arrays)
    arrays["time_median"] = np.concatenate([arrays["time_median"], arrays["time_median"] * np.float32(1.01)], axis=1)
    arrays["dst"] = np.concatenate([arrays["dst"]] * 2, axis=1)
    twice = replace(with_facts(row, repeats=2, rounds=26), arrays=arrays)
    finding = diagnose(only(run, twice), MESH.topology).verdict.findings[0]
    assert (finding.state, finding.name) == (State.FAULT, "h40")
    assert "of 13 pairs" in sentences(finding.evidence)


# ------------------------------------------------------------------------------------------------ healthy


def every_kind(run: Run, seed: int) -> list[Row]:
    rows = [with_kernel(run, kernel) for kernel in KINDS]
    rows += [
        one_direction(row) for row in (run.row("latency"), run.row("bandwidth"), with_kernel(run, "get_bandwidth"))
    ]
    rows += [one_direction_in_rounds(run, run.row(name), 9, seed) for name in ("latency", "bandwidth")]
    rows += [
        clients_servers(run, "rpc_put", servers, unfair=unfair, seed=seed)
        for servers in (3, 7, 20, 40)
        for unfair in (0.0, 0.2)
    ]
    return [*rows, fan_in(run), world(run, "alltoall", seed), victims(run, 6)]


def test_no_kind_of_row_reports_a_healthy_fabric(noise: str) -> None:
    for seed in range(3):
        run = simulate(MESH, noise=Noise(noise), seed=seed)
        for row in every_kind(run, seed):
            assert named(diagnose(only(run, row), MESH.topology)) == set(), row.name
            assert named(diagnose(only(run, row))) == set(), row.name


@pytest.mark.parametrize("ranks_per_host", [2, 4])
def test_several_ranks_per_host_change_nothing_about_that(ranks_per_host: int) -> None:
    mesh = full_mesh(4, 4)
    for seed in range(3):
        run = simulate(mesh, noise=Noise("student3"), seed=seed, ranks_per_host=ranks_per_host)
        rows = [clients_servers(run, "rpc_get", servers) for servers in (12, 16, 17, 31)]
        for row in [*rows, with_kernel(run, "get_bandwidth"), one_direction(run.row("latency")), victims(run, 3)]:
            assert named(diagnose(only(run, row), mesh.topology)) == set(), row.name


# ------------------------------------------------------------------------------------------------ measured again


def slow_pair(run: Run) -> Run:
    def slow(times: np.ndarray, row: str) -> np.ndarray:
        if row == "bandwidth":
            times[3, 40] *= 1.6
            times[40, 3] *= 1.6
        return times

    return changed(run, slow)


@pytest.mark.parametrize(("factor", "suspects"), [(0.5, set()), (1.0, {("route", "h03=h40", None)})])
def test_a_pair_measured_again_is_a_suspect_if_it_was_slow_again(factor: float, suspects: set) -> None:
    run = slow_pair(simulate(MESH, noise=QUIET))
    again = retest(run.row("bandwidth"), [(3, 40), (5, 41)], factor)
    both = only(run, *run.rows, again)
    diagnosis = diagnose(both, MESH.topology)
    assert reported(diagnose(run, MESH.topology)) == {("route", "h03=h40", None)}
    assert reported(diagnosis) == suspects
    assert any("repeats pairs of bandwidth; " in note for note in note_texts(diagnosis.verdict))
    assert diagnosis.verdict.coverage == diagnose(run, MESH.topology).verdict.coverage
    assert len(diagnosis.fits) == 2


def test_hosts_whose_pairs_were_measured_again_alone_are_not_faster_than_others() -> None:
    """As LinkTest does: its slowest pairs again, one after the other, in a network without other messages."""
    run = simulate(MESH, noise=QUIET)
    pairs = [(3, other) for other in range(8, 64)]
    again = retest(run.row("bandwidth"), pairs, 0.75)
    effects = [
        next(fit for fit in diagnose(one, MESH.topology).fits if fit.row == "bandwidth").tx[3]
        for one in (run, only(run, *run.rows, again))
    ]
    assert effects[1] == pytest.approx(effects[0], abs=0.02)


def test_pairs_of_a_few_rounds_are_measured_again_as_well() -> None:
    run = slow_pair(simulate(MESH, noise=QUIET))
    row = run.row("bandwidth")
    dst = np.array(
        [
            [(rank + 1 + 2 * number) % 64 if rank % 2 == 0 else (rank - 1 - 2 * number) % 64 for number in range(32)]
            for rank in range(64)
        ]
    )
    full = np.asarray(row.arrays["time_median"])[0]
    times = full[np.arange(64)[:, None], dst].astype(np.float32)
    times[dst == 43] *= np.float32(1.6)  # h43 is slow with all partners
    listed = Row(
        "bandwidth",
        with_facts(row, layout="list", rounds=32).facts,
        {**row.arrays, "time_median": times, "dst": dst},
    )
    again = retest(row, [(a, 43) for a in range(0, 64, 2)], 1.0)
    assert ("host", "h43", "rx") in named(diagnose(only(run, listed), MESH.topology))
    assert named(diagnose(only(run, listed, again), MESH.topology)) == set()


def test_what_was_never_measured_is_not_made_up_by_measuring_others_again() -> None:
    run = simulate(MESH, noise=QUIET)
    gone = changed(run, lambda times, _: np.where(np.arange(64)[:, None] == 3, np.nan, times))
    again = retest(run.row("bandwidth"), [(3, 40)], 1.0)
    plain, with_again = (diagnose(only(gone, *rows)) for rows in (gone.rows, (*gone.rows, again)))
    assert plain.verdict.coverage == with_again.verdict.coverage


def test_pairs_measured_again_without_their_row_are_left_out() -> None:
    run = simulate(MESH, noise=QUIET)
    again = retest(run.row("bandwidth"), [(3, 40)], 5.0)
    verdict = diagnose(only(run, run.row("latency"), again)).verdict
    assert verdict.verdict == "pass"
    assert any("the run has no row bandwidth" in note for note in note_texts(verdict))


# ------------------------------------------------------------------------------------------------ what the engine says


def test_a_damaged_result_of_a_collective_names_no_sender() -> None:
    run = simulate(MESH, noise=QUIET)
    entries = [{"src": -1, "dst": rank, "size": 4, "message": 0, "offset": 1} for rank in range(64)]
    damaged = row_attributed(only(run, *run.rows, world(run, "allreduce", 3)), "allreduce", corrupt=entries)
    diagnosis = diagnose(damaged, MESH.topology)
    assert named(diagnosis) == {("route", "any>h[00-63]", None)}
    assert "64 damaged payloads" in sentences(diagnosis.verdict.findings[0].evidence)


def test_ranks_that_could_not_be_bound_are_noted() -> None:
    run = simulate(MESH, noise=QUIET)
    note = (
        "ranks 4-7 not bound to CPUs: none of the CPUs near cxi1 (8-15) is among those that the launcher allows (0-3)"
    )
    bound = with_facts(run, binding={"ranks_per_nic": 4, "notes": [note]})
    assert note in note_texts(diagnose(bound, MESH.topology).verdict)
