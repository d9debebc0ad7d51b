"""Which of host, NIC, cable and switch port: counters, loopback tests and other findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from analyse_cases import attributed
from hypothesis import given, strategies as st

import finding_cases
from fablint.analyse import diagnose
from fablint.analyse.observations.counter_steps import MEANS, CounterSteps, Symptom, count_steps
from fablint.analyse.other_questions.root_cause import PARTS, PRIOR, SYMPTOMS, Ranking, Series, fuse, fuse_run
from fablint.model import ComponentKind, ComponentRef, Direction, Finding, Row, State
from fablint.model.facts.run_attributes import PortCounters
from fablint.model.figures.cpu_wait import CpuWait
from fablint.model.host_name import NicRef
from fablint.simulate import Fault, full_mesh, simulate
from fablint.text.actions import advice
from fablint.text.evidence_sentences import sentences
from fact_cases import with_facts
from finding_cases import note_texts
from pinned import pinned_by

PINNED = pinned_by("analyse.toml", __file__)

SERIES = Series("nid000123", "hsn1", "x1000c1r5b0", "12")
HOST, NIC, CABLE, PORT = (SERIES.components[part] for part in PARTS)

# A Slingshot NIC that counted nothing but traffic.
CLEAN = {name: 0 for names in MEANS.values() for name in names if name.startswith(("hni_", "pct_")) and name[-1] != "*"}
CLEAN |= {"hni_pcs_good_cw": 10**9, "hni_pcs_corrected_cw": 30, "hni_discard_cntr_0": 0, "carrier_changes": 0}


def nic(**moved: int) -> CounterSteps:
    return CounterSteps({**CLEAN, **moved})


def finding(
    name: str | ComponentRef, component: ComponentKind, state: State = State.FAULT, evidence: str = "", **more: Any
) -> Finding:
    label = name if isinstance(name, str) else name.label
    return finding_cases.finding(state, component, label, evidence=evidence, **more)


def first(
    direction: Direction | None = "rx",
    counters: CounterSteps | None = None,
    others: tuple[Finding, ...] = (),
    **more: Any,
) -> ComponentRef:
    return fuse(SERIES, direction, counters, others, **more).first


# ------------------------------------------------------------------------------------------------ the table


@pytest.mark.parametrize(
    ("direction", "moved", "part"),
    [
        ("rx", {"hni_pcs_uncorrected_cw": 40, "hni_llr_rx_replay_event": 900}, CABLE),
        ("tx", {"hni_llr_tx_replay_event": 900}, CABLE),
        ("both", {"hni_llr_tx_replay_event": 900, "hni_pcs_uncorrected_cw": 40}, CABLE),
        ("rx", {"hni_pcs_corrected_cw": 900_000}, CABLE),
        ("rx", {"hni_rx_bad_opt": 50, "pct_spt_timeouts": 4}, PORT),
        ("tx", {"hni_tx_poisoned_opt": 12}, NIC),
        ("rx", {"hni_discard_cntr_3": 4000}, HOST),
        (None, {"hni_pcs_uncorrected_cw": 40, "hni_llr_tx_replay_event": 900, "carrier_changes": 4}, CABLE),
    ],
)
def test_counters_that_moved_name_the_part(
    direction: Direction | None, moved: dict[str, int], part: ComponentRef
) -> None:
    ranking = fuse(SERIES, direction, nic(**moved), ())
    assert ranking.first == part
    assert ranking.parts[0][1] > ranking.parts[1][1] >= ranking.parts[2][1] >= ranking.parts[3][1]


def test_a_swap_is_proposed_with_both_ends_of_the_cable() -> None:
    ranking = fuse(SERIES, "rx", nic(hni_pcs_uncorrected_cw=40), (), run="monday.run")
    assert advice(ranking.next_step) == PINNED["swap cable between nid000123"]
    assert PINNED["the NIC received damaged"].begins(sentences(ranking.reasons))


@pytest.mark.parametrize(
    ("moved", "loopback", "step"),
    [
        (
            "hni_rx_bad_opt",
            State.OK,
            "move the cable of nid000123 hsn1 from x1000c1r5b0 port 12 to another port, then ",
        ),
        ("hni_tx_poisoned_opt", State.OK, "reseat or change the NIC nid000123 hsn1, then "),
        ("hni_discard_cntr_0", State.FAULT, "read the system log, PCIe width and power state of nid000123, then "),
    ],
)
def test_each_part_has_its_action(moved: str, loopback: State, step: str) -> None:
    tested = finding(HOST, "host", loopback, "Loopback: 24.1 GB/s")
    assert advice(fuse(SERIES, "rx", nic(**{moved: 50}), (tested,)).next_step).startswith(step)


def test_what_nothing_tells_apart_asks_for_the_test_that_does() -> None:
    ranking = fuse(SERIES, "rx", None, ())
    assert sentences(ranking.reasons) == ""
    assert advice(ranking.next_step) == PINNED["run a loopback test on nid000123"]
    fine = finding(HOST, "host", State.OK, "loopback: 24.1 GB/s")
    assert advice(fuse(SERIES, "rx", None, (fine,)).next_step).startswith("swap cable between nid000123 hsn1 and ")


def test_without_a_topology_the_parts_have_names_all_the_same() -> None:
    ranking = fuse(Series("h07"), "rx", nic(hni_pcs_uncorrected_cw=9), ())
    assert {part.label for part, _ in ranking.parts} == {"h07", "NIC of h07", "cable of h07", "switch port of h07"}
    assert PINNED["swap cable between h07"].begins(advice(ranking.next_step))


def test_loopback_tells_the_ends_from_the_cable() -> None:
    slow = finding("nid[000100-000199]", "host", State.FAULT, "loopback: 11.3 GB/s")
    fine = slow.model_copy(update={"state": State.OK})
    elsewhere = finding("nid000007", "host", State.FAULT, "loopback: 11.3 GB/s")
    assert first(others=(slow,)) in (HOST, NIC)
    assert first(others=(fine,)) == CABLE
    assert fuse(SERIES, "rx", None, (elsewhere,)) == fuse(SERIES, "rx", None, ())
    assert "fine in loopback" in sentences(fuse(SERIES, "rx", None, (fine,)).reasons)


def test_all_nics_of_a_host_are_the_host() -> None:
    rails = tuple(finding(f"nid000123/hsn{rail}", "nic", quantity="bandwidth") for rail in (0, 1, 2))
    assert first(others=rails) == HOST
    healthy = tuple(rail.model_copy(update={"state": State.OK}) for rail in rails)
    assert first(others=healthy) == CABLE
    assert dict(fuse(SERIES, "rx", None, healthy).parts)[HOST] < dict(fuse(SERIES, "rx", None, ()).parts)[HOST]


def test_other_hosts_of_the_switch_make_the_port_likelier() -> None:
    beside = replace(SERIES, neighbours=("nid000124", "nid000125"))
    alone, together = (
        dict(fuse(beside, "rx", None, others).parts)[PORT]
        for others in ((), (finding("nid000125", "host", quantity="bandwidth"),))
    )
    assert together > alone + 1


@pytest.mark.parametrize(
    ("name", "component", "part"),
    [(CABLE, "cable", CABLE), (NIC, "nic", NIC), ("x1000c1r5b0", "switch", PORT), ("nid000[120-130]", "host", HOST)],
)
def test_a_component_that_another_check_reports_comes_first(
    name: str | ComponentRef, component: ComponentKind, part: ComponentRef
) -> None:
    fine = finding(HOST, "host", State.OK, "loopback: 24.1 GB/s") if part != HOST else finding("x", "host")
    assert first(others=(finding(name, component, evidence="optical power too low"), fine)) == part


def test_a_finding_from_the_times_is_no_second_witness() -> None:
    slow = finding(HOST, "host", quantity="bandwidth", evidence="bandwidth 1 MiB: 63 of 63 pairs slow")
    assert fuse(SERIES, "rx", None, (slow,)) == fuse(SERIES, "rx", None, ())


def test_other_processes_on_the_cpus_of_the_ranks_name_the_host() -> None:
    busy, idle = CpuWait(share=0.12, others=0.001), CpuWait(share=0.002, others=0.001)
    ranking = fuse(SERIES, "rx", None, (), cpu_wait=busy)
    assert ranking.first == HOST
    assert sentences(ranking.reasons) == PINNED["its ranks waited 12.00%"]
    assert PINNED["list the processes of nid000123"].begins(advice(ranking.next_step))
    ranking = fuse(SERIES, "rx", None, (), cpu_wait=idle)
    assert (ranking.first, sentences(ranking.reasons)) == (CABLE, "")


def test_a_run_knows_how_long_the_ranks_of_a_host_waited_for_a_cpu() -> None:
    mesh = full_mesh(4, 4)
    run = simulate(mesh, faults=[Fault(finding_cases.component("host", "h02"), bandwidth_factor=0.8)])
    waiting = replace(run, rows=tuple(with_waits(row, host=2) for row in run.rows))
    verdict = diagnose(waiting, mesh.topology).verdict
    (fault,) = (finding for finding in verdict.findings if finding.state is State.FAULT)
    assert (fault.name, "its ranks waited 20 % of the time" in sentences(fault.evidence)) == ("h02", True)
    assert advice(fault.next_step).startswith("list the processes of h02")
    assert PINNED["they waited for a CPU up"] in str(note_texts(verdict))
    oversubscribed = attributed(waiting, instrument={"oversubscribed": True})
    assert "waited" not in str(diagnose(oversubscribed, mesh.topology).verdict)


def with_waits(row: Row, host: int) -> Row:
    """The row with ranks that waited a thousandth of the time, and one that waited a fifth."""
    shares = [0.2 if rank == host else 0.001 for rank in range(16)]
    waits = [share * row.facts.result.wall_s for share in shares]
    return with_facts(row, cpu_wait_s=waits)


def test_waits_that_all_hosts_have_do_not_name_a_host() -> None:
    assert fuse(SERIES, "rx", None, (), cpu_wait=CpuWait(share=0.12, others=0.1)).first == CABLE


def test_odds_are_of_exactly_one_part() -> None:
    ranking = fuse(SERIES, "rx", nic(hni_rx_bad_opt=3), ())
    chances = [1 / (1 + np.exp(-odds)) for _, odds in ranking.parts]
    assert sum(chances) == pytest.approx(1)
    assert set(SYMPTOMS) == set(get_args(Symptom))
    assert sum(PRIOR.values()) == pytest.approx(1)


@given(moved=st.dictionaries(st.sampled_from(sorted(CLEAN)), st.integers(0, 2**60)))
def test_no_counters_break_it(moved: dict[str, int]) -> None:
    ranking: Ranking = fuse(SERIES, "both", CounterSteps(moved), ())
    assert all(np.isfinite(odds) for _, odds in ranking.parts)


# ------------------------------------------------------------------------------------------------ injected faults

# What a broken part does to the counters of a NIC, and how often each kind of damage happens, as assumed here: cables
# are damaged both ways half of the time; transmitters and receivers of NICs and ports that fail look like a cable
# that is damaged one way, and are rare. Sending again follows damage in three of four cases.
KINDS: Mapping[ComponentRef, tuple[tuple[float, str], ...]] = {
    CABLE: ((0.5, "line both ways"), (0.5, "line")),
    NIC: ((0.6, "dma"), (0.3, "poisons"), (0.1, "line")),
    PORT: ((0.85, "marks"), (0.15, "line")),
}
SHARES = {CABLE: 0.55, NIC: 0.25, PORT: 0.2}


def injected(rng: np.random.Generator, part: ComponentRef) -> tuple[Direction, CounterSteps, tuple[Finding, ...]]:
    """A fault of this part: the direction that is slow, the NIC's counters, a loopback test."""
    shares, kinds = zip(*KINDS[part], strict=True)
    kind = str(rng.choice(kinds, p=shares))
    direction: Direction = "tx" if kind == "poisons" else "rx" if kind == "marks" or rng.random() < 0.5 else "tx"
    moved = {"hni_pcs_corrected_cw": int(rng.integers(0, 1000)), "hni_llr_rx_replay_event": int(rng.integers(0, 4))}
    if kind == "line both ways" or (kind == "line" and direction == "rx"):
        moved |= {"hni_pcs_uncorrected_cw": int(rng.integers(1, 500))}
    if kind == "line both ways" or (kind == "line" and direction == "tx"):
        moved |= {"hni_llr_tx_replay_event": int(rng.integers(10, 5000))}
    if kind == "poisons":
        moved["hni_tx_poisoned_opt"] = int(rng.integers(1, 50))
    if kind == "marks":
        moved["hni_rx_bad_opt"] = int(rng.integers(1, 50))
    if kind == "dma" and rng.random() < 0.3:
        moved["hni_discard_cntr_0"] = int(rng.integers(1, 5000))
    if kind != "dma" and rng.random() < 0.75:
        moved["pct_sct_timeouts"] = int(rng.integers(1, 50))
    if part == CABLE and rng.random() < 0.2:
        moved["carrier_changes"] = 2
    state = State.FAULT if kind == "dma" else State.OK
    return direction, nic(**moved), (finding(NIC, "nic", state, "loopback: measured"),)


def test_nine_of_ten_injected_faults_are_named_among_three_parts() -> None:
    """The issue asks for 90 %. Priors and likelihoods of the product are not those by which the faults are drawn."""
    rng = np.random.default_rng(1)
    numbers = rng.choice(len(SHARES), 2000, p=list(SHARES.values()))
    right = 0
    for part in (list(SHARES)[number] for number in numbers.tolist()):
        direction, counters, others = injected(rng, part)
        ranked = [name for name, _ in fuse(SERIES, direction, counters, others).parts if name != HOST]
        right += ranked[0] == part
    assert right / numbers.size >= 0.9


# ------------------------------------------------------------------------------------------------ counters


def counters(before: dict[str, int], after: dict[str, int]) -> PortCounters:
    return PortCounters({"h00": {"cxi0": before}}, {"h00": {"cxi0": after}})


@pytest.mark.parametrize(
    ("name", "before", "after", "moved"),
    [
        ("hni_pcs_uncorrected_cw", 5, 9, 4),
        ("hni_pcs_good_cw", (1 << 56) - 10, 5, 15),  # wraps
        ("hni_pcs_good_cw", 10**12, 7, 7),  # was cleared
        ("rx_crc_errors", 100, 3, 3),
        ("symbol_error", 65530, 65535, 5),  # at least
        ("symbol_error", 65535, 65535, None),  # stands still, whatever happens
        ("local_link_integrity_errors", 15, 15, None),
        ("link_downed", 255, 0, 0),
        ("port_xmit_discards", 70000, 70003, None),
    ],
)
def test_counters_wrap_saturate_and_are_cleared(name: str, before: int, after: int, moved: int | None) -> None:
    found = count_steps(counters({name: before}, {name: after}), "h00", "cxi0")
    assert found is not None
    assert found.by == ({} if moved is None else {name: moved})


def test_counters_that_were_not_read_are_no_counters() -> None:
    assert count_steps(PortCounters(), "h00", "cxi0") is None
    assert count_steps(PortCounters({"h00": {"cxi0": {"a": 1}}}), "h00", "cxi0") is None
    assert count_steps(counters({"a": 1}, {"a": 2}), "h01", "cxi0") is None
    assert count_steps(counters({"a": 1}, {"b": 2}), "h00", "cxi0") == CounterSteps({})


def test_a_counter_that_stands_at_its_maximum_shows_nothing_to_be_absent() -> None:
    assert CounterSteps({}).symptoms() == {}
    assert CounterSteps({"symbol_error": 0}).symptoms() == {"line_rx": False}
    assert CounterSteps({"symbol_error": 12}).symptoms() == {"line_rx": True}
    assert CounterSteps({"hni_rx_bad_opt": 5, "hni_pcs_uncorrected_cw": 0}).symptoms() == {
        "line_rx": False,
        "marked": True,
    }
    assert CounterSteps({"hni_rx_bad_opt": 5, "hni_pcs_uncorrected_cw": 2}).symptoms() == {"line_rx": True}
    assert CounterSteps({"hni_pfc_fifo_oflw_cntr_6": 1}).symptoms() == {"late": True}


def test_a_run_knows_the_nic_its_counters_and_its_port() -> None:
    mesh = full_mesh(2, 4)
    topology = replace(
        mesh.topology,
        nic_switch={NicRef("h02/hsn0"): "s0", NicRef("h02/hsn1"): "s1"},
        ports={("s1", "h02/hsn1"): "12", ("s0", "h02/hsn0"): "3"},
    )
    nics = [
        {"name": f"cxi{rail}", "kind": "cxi", "netdevs": [f"hsn{rail}"], "state": "up", "speed_mbps": 200000}
        for rail in (0, 1)
    ]
    moved = {"before": {"h02": {"cxi1": CLEAN}}, "after": {"h02": {"cxi1": {**CLEAN, "hni_pcs_uncorrected_cw": 7}}}}
    run = attributed(simulate(mesh), nics={"h02": nics}, rank_nic=["cxi1"] * 8, counters=moved)
    host, second, first_nic = (
        finding_cases.component(*one) for one in (("host", "h02"), ("nic", "h02/hsn1"), ("nic", "h02/hsn0"))
    )
    for name in (host, finding_cases.component("nic", "h02/cxi1"), second):
        ranking = fuse_run(replace(run, path=Path("a/b.run")), topology, name, "rx", ())
        assert ranking.first.label == "h02=s1"
        assert advice(ranking.next_step) == PINNED["swap cable between h02 hsn1"]
    assert "damaged code words" not in sentences(fuse_run(run, topology, first_nic, "rx", ()).reasons)
    assert fuse_run(run, None, host, "rx", ()).first.label == "cable of h02"
    assert "other hosts" in sentences(
        fuse_run(run, topology, finding_cases.component("host", "h05"), "rx", (finding("h06", "host"),)).reasons
    )
