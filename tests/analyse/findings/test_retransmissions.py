"""Which component loses TCP segments, and in which direction, on fabrics drawn segment by segment; 20 seeds a case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from analyse_cases import row_attributed
from lateness_cases import Layout, LossyFabric
from segment_cases import Resending, reported

from fablint.analyse import diagnose
from fablint.analyse.findings.common_causes import explained
from fablint.analyse.findings.retransmissions import counted_losses
from fablint.analyse.other_questions.root_cause import fuse_run
from fablint.model import Finding, Run, State
from fablint.simulate import Noise, full_mesh, simulate
from fablint.text import evidence as seen
from fablint.text.actions import advice
from fablint.text.evidence_sentences import sentences
from fact_cases import attributes_of, with_facts
from finding_cases import component, finding, note_texts
from pinned import pinned_by

PINNED = pinned_by("analyse.toml", __file__)

SMALL = LossyFabric(leaves=2, hosts=4, spines=0, knows="nothing")


def exact(
    seeds: range,
    case: Resending,
    *truth: tuple[str, str, str | None],
    layout: Layout = "list",
    rounds: int | None = None,
) -> int:
    """Number of runs in which exactly these are at fault; no run may report another component."""
    found = [case.findings(seed, layout, rounds) for seed in seeds]
    assert {fault for one in found for fault in reported(one)} <= set(truth)
    return sum(reported(one) == sorted(truth) for one in found)


# ------------------------------------------------------------------------------------------------ faults


@pytest.mark.parametrize("direction", ["tx", "rx"])
@pytest.mark.parametrize(("share", "segments"), [(0.005, 2000), (0.02, 400), (0.05, 100), (0.3, 60)])
def test_a_lossy_host_is_named_with_its_direction(share: float, segments: int, direction: str, seeds: range) -> None:
    case = Resending(SMALL, {f"h02 {direction}": share}, segments=segments)
    assert exact(seeds, case, ("host", "h02", direction)) >= 0.95 * len(seeds)


def test_a_host_that_loses_in_both_directions_is_one_finding(seeds: range) -> None:
    case = Resending(SMALL, {"h02 tx": 0.05, "h02 rx": 0.05})
    assert exact(seeds, case, ("host", "h02", "both")) == len(seeds)


def test_two_lossy_hosts_are_both_named(seeds: range) -> None:
    case = Resending(LossyFabric(), {"h02 tx": 0.02, "h09 rx": 0.05})
    assert exact(seeds, case, ("host", "h02", "tx"), ("host", "h09", "rx")) == len(seeds)


@pytest.mark.parametrize("layout", ["list", "matrix"])
def test_a_lossy_link_is_named_with_its_direction(layout: Layout, seeds: range) -> None:
    case = Resending(LossyFabric(), {"l1>p0": 0.05})
    assert exact(seeds, case, ("link", "l1>p0", None), layout=layout) == len(seeds)


def test_a_cable_that_loses_in_both_directions_is_reported(seeds: range) -> None:
    assert exact(seeds, Resending(LossyFabric(), {"l1=p0": 0.05}), ("cable", "l1=p0", None)) == len(seeds)


def test_a_lossy_switch_is_one_fault(seeds: range) -> None:
    assert exact(seeds, Resending(LossyFabric(), {"l2": 0.05}), ("switch", "l2", None)) == len(seeds)


def test_few_matchings_of_a_larger_fabric_suffice(seeds: range) -> None:
    case = Resending(LossyFabric(leaves=8), {"h05 rx": 0.02})
    assert exact(seeds, case, ("host", "h05", "rx"), rounds=10) == len(seeds)


def with_segments(run: Run, **changes: Any) -> Run:
    """The run with other TCP segments of its row."""
    (row,) = run.rows
    tcp = attributes_of(row)["tcp"] | changes
    return replace(run, rows=(with_facts(row, tcp=tcp),))


def test_of_several_interfaces_the_one_that_loses_is_named() -> None:
    fabric = LossyFabric(leaves=2, hosts=4, spines=0, knows="nothing")
    case = Resending(fabric, {"h02 rx": 0.05}, interfaces=("hsn0", "hsn1"))
    run = case.measured(1)
    tcp = run.rows[0].facts.result.tcp
    pairs = [one for one in tcp.pairs if tcp.ends[one[1]].endswith("hsn1")]
    run = with_segments(run, pairs=pairs)
    found = [one for one in diagnose(run).verdict.findings if one.state in (State.FAULT, State.SUSPECT)]
    assert [(one.component, one.name, one.direction) for one in found] == [("nic", "h02/hsn1", "rx")]


def test_an_interface_with_a_connection_of_the_launcher_is_not_one_of_several() -> None:
    run = Resending(SMALL, {"h02 rx": 0.05}).measured(1)
    tcp = run.rows[0].facts.result.tcp
    run = with_segments(run, ends=[*tcp.ends, "h02/mgmt0"], sent=[*tcp.sent, 12], received=[*tcp.received, 12])
    assert reported(list(diagnose(run).verdict.findings)) == [("host", "h02", "rx")]


# ------------------------------------------------------------------------------------------------ healthy fabrics


@pytest.mark.parametrize(("usual", "uneven"), [(1e-4, 0.0), (1e-3, 1.0), (0.01, 0.0), (0.01, 2.0), (0.05, 1.0)])
@pytest.mark.parametrize("calm", [True, False])
def test_retransmissions_that_all_pairs_have_are_nobodys(usual: float, uneven: float, calm: bool, seeds: range) -> None:
    """Congestion at full rate, evenly or in bursts of some pairs."""
    for fabric in (SMALL, LossyFabric()):
        case = Resending(fabric, usual=usual, uneven=uneven)
        assert [reported(case.findings(seed, calm=calm)) for seed in seeds] == [[]] * len(seeds)


def notes_of(case: Resending, seed: int, calm: bool = True) -> list[str]:
    return [
        note for note in note_texts(diagnose(case.measured(seed, calm=calm)).verdict) if note.startswith("TCP sent")
    ]


@pytest.mark.parametrize(("usual", "uneven"), [(0.003, 0.0), (0.01, 1.0), (0.05, 0.0)])
def test_a_loss_that_all_paths_share_is_a_note(usual: float, uneven: float, seeds: range) -> None:
    for fabric in (SMALL, LossyFabric()):
        case = Resending(fabric, usual=usual, uneven=uneven)
        notes = [notes_of(case, seed) for seed in seeds]
        assert [len(note) for note in notes] == [1] * len(seeds)
        assert all("single messages" in note[0] and "congestion" not in note[0] for note in notes)
        shares = [float(note[0].split()[2]) for note in notes]
        assert np.median(shares) == pytest.approx(100 * usual, rel=0.3)


def test_of_streams_it_may_be_congestion() -> None:
    (note,) = notes_of(Resending(SMALL, usual=0.03), 1, calm=False)
    assert "of streams" in note and PINNED["congestion, or a loss"] in note
    assert notes_of(Resending(SMALL, usual=0.003), 1, calm=False) == []  # as on healthy networks


@pytest.mark.parametrize("lossy", [{}, {"h02 rx": 0.05}, {"h02 tx": 0.3}, {"h02 tx": 0.05, "h02 rx": 0.05}])
def test_losses_of_one_host_are_none_that_all_paths_share(lossy: dict[str, float], seeds: range) -> None:
    assert [notes_of(Resending(SMALL, lossy), seed) for seed in seeds] == [[]] * len(seeds)
    beside = [notes_of(Resending(SMALL, lossy, usual=0.01), seed) for seed in seeds]
    assert [len(one) for one in beside] == [1] * len(seeds)


def test_three_lossy_hosts_of_many_are_none_that_all_paths_share(seeds: range) -> None:
    case = Resending(LossyFabric(), {"h02 rx": 0.02, "h05 rx": 0.02, "h09 rx": 0.02})
    assert [notes_of(case, seed) for seed in seeds] == [[]] * len(seeds)


def test_a_lossy_host_is_named_among_others_that_lose_a_little(seeds: range) -> None:
    case = Resending(SMALL, {"h02 rx": 0.05}, usual=0.002, uneven=1.0)
    assert exact(seeds, case, ("host", "h02", "rx")) >= 0.9 * len(seeds)


def test_what_had_arrived_already_was_not_lost() -> None:
    """All segments arrive; acknowledgements from h02 do not, so that the others send to it again."""
    case = Resending(SMALL, {"h02 tx": 0.1})
    run = case.measured(3)
    tcp = run.rows[0].facts.result.tcp
    to_h02 = tcp.ends.index("h02/hsn0")
    spurious = [one for one in tcp.pairs if one[1] == to_h02]
    assert spurious, "some reports were lost with the share of the other direction"
    found = [one for one in diagnose(run).verdict.findings if one.state is State.FAULT]
    assert reported(found) == [("host", "h02", "tx")]


# ------------------------------------------------------------------------------------------------ less than a fault


def test_streams_alone_make_a_suspect_at_most(seeds: range) -> None:
    case = Resending(SMALL, {"h02 rx": 0.05})
    for seed in seeds:
        found = [one for one in case.findings(seed, calm=False) if "TCP" in sentences(one.evidence)]
        assert reported(found) == []
        assert reported(found, State.SUSPECT) == [("host", "h02", "rx")]
        assert "congestion" in sentences(found[0].evidence)


def test_streams_of_a_link_that_all_share_are_evidence_against_no_component(seeds: range) -> None:
    case = Resending(LossyFabric(), {"l1>p0": 0.03})
    found = [one for seed in seeds for one in case.findings(seed, calm=False)]
    assert [one for one in found if "TCP" in sentences(one.evidence)] == []


def test_kernels_that_report_nothing_make_a_suspect_at_most(seeds: range) -> None:
    case = Resending(SMALL, {"h02 rx": 0.05}, reports=False)
    for seed in seeds:
        found = case.findings(seed)
        assert reported(found) == []
        assert "h02" in {one.name for one in found}


def test_one_pair_is_no_host() -> None:
    run = with_segments(Resending(SMALL).measured(1), pairs=[[2, 3, 400, 40, 0]])
    assert [one for one in diagnose(run).verdict.findings if one.state is State.FAULT] == []


def test_of_three_hosts_two_partners_are_too_few_for_a_fault(seeds: range) -> None:
    case = Resending(LossyFabric(leaves=1, hosts=3, spines=0, knows="nothing"), {"h01 rx": 0.1})
    assert all(reported(case.findings(seed)) == [] for seed in seeds)


@pytest.mark.parametrize("tcp", [None, {"ends": ["h00/eth0"], "sent": [9], "received": [9], "pairs": []}])
def test_no_retransmissions_show_nothing(tcp: object) -> None:
    mesh = full_mesh(4, 4)
    run = simulate(mesh, noise=Noise(scale=0.01, spike_share=0))
    more = {} if tcp is None else {"tcp": tcp}
    assert diagnose(row_attributed(run, "latency", **more)).verdict == diagnose(run).verdict


# ------------------------------------------------------------------------------------------------ beside other findings

LOST = seen.tcp_resent(
    lost=20,
    sent=1000,
    spurious=0,
    direction="rx",
    lossy=3,
    pairs=3,
    over=(),
    others_lost=0,
    others_lossy=0,
    others=12,
)
RESENT = finding(State.FAULT, "host", "h1", direction="rx").model_copy(update={"evidence": (LOST,)})


def joined(*claims: Finding) -> list[Finding]:
    return explained(claims, counted_losses(claims))


def kinds(given: Finding) -> list[str]:
    return [record.kind for record in given.evidence]


def beside(state: State, direction: str | None, quantity: str = "latency") -> Finding:
    return finding(state, "host", "h1", direction=direction, quantity=quantity, evidence="late")


def test_late_messages_of_the_same_host_are_replaced_and_leave_their_evidence() -> None:
    for state in (State.FAULT, State.SUSPECT):
        late = beside(state, None)
        (result,) = joined(RESENT, late)
        assert (result.state, result.direction) == (State.FAULT, "rx")
        assert kinds(result) == ["tcp_resent", *kinds(late)]


def test_a_slow_host_keeps_its_finding_and_takes_the_evidence() -> None:
    slow = beside(State.FAULT, "tx", "bandwidth")
    (result,) = joined(slow, RESENT)
    assert (result.direction, result.quantity) == ("tx", "bandwidth")
    assert kinds(result) == [*kinds(slow), "tcp_resent"]


def test_a_suspect_finding_of_streams_joins_a_fault() -> None:
    late = beside(State.FAULT, None)
    (result,) = joined(RESENT.model_copy(update={"state": State.SUSPECT}), late)
    assert (result.state, result.direction, kinds(result)) == (State.FAULT, "rx", [*kinds(late), "tcp_resent"])


def test_other_components_stay_beside() -> None:
    other = beside(State.FAULT, None).model_copy(update={"components": (component("host", "h2"),)})
    assert joined(other, RESENT) == [other, RESENT]


def test_lost_segments_speak_for_the_line_and_against_a_loopback_test() -> None:
    run = Resending(SMALL).measured(1)
    without = fuse_run(run, None, component("host", "h02"), "rx", ())
    ranking = fuse_run(run, None, component("host", "h02"), "rx", (), 20)
    assert "loopback" in advice(without.next_step)
    assert (sentences(ranking.reasons), "loopback" in advice(ranking.next_step)) == ("messages were sent again", False)
    assert dict(ranking.parts)[component("host", "h02")] < dict(without.parts)[component("host", "h02")]
