"""Findings of discovery and of the launches beside those of the measurement: what the verdict becomes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import finding_cases
from fablint.analyse import diagnose, with_additional
from fablint.model import ComponentKind, Coverage, Diagnosis, Finding, State, Verdict, VerdictWord
from fablint.model.facts.failed_rank import FailedRank
from fablint.simulate import Noise, full_mesh, simulate
from fablint.store import read_run, set_state, write_run
from fablint.text import notes as noted
from fablint.text.evidence_sentences import sentences
from fablint.workflows import analysis, run_files
from finding_cases import note_texts

MESH = full_mesh(4, 4)
CODES: dict[VerdictWord, int] = {"pass": 0, "fault": 1, "incomplete": 3}
LOST = FailedRank(5, "h05", 3, 6, "failed (silent for 20 s)")


def finding(state: State, name: str = "h09", component: ComponentKind = "host", evidence: str = "") -> Finding:
    return finding_cases.finding(state, component, name, evidence=evidence)


def diagnosis(word: VerdictWord, *findings: Finding) -> Diagnosis:
    coverage = Coverage(pairs_planned=12, pairs_measured=11, hosts=4, hosts_judged=3)
    known = {
        "findings": findings,
        "coverage": coverage,
        "complete": word != "incomplete",
        "notes": (noted.message("a note"),),
    }
    verdict = Verdict(verdict=word, exit_code=CODES[word], **known)
    return Diagnosis(verdict, ())


def test_without_additional_findings_the_diagnosis_is_unchanged() -> None:
    before = diagnosis("pass", finding(State.OK))
    assert with_additional(before, ()) is before


@pytest.mark.parametrize(
    ("word", "states", "expected"),
    [
        ("pass", [State.OK], "pass"),
        ("pass", [State.NOT_JUDGED], "incomplete"),
        ("pass", [State.CONFOUNDED], "incomplete"),
        ("pass", [State.OK, State.SUSPECT], "incomplete"),
        ("pass", [State.FAULT], "fault"),
        ("incomplete", [State.OK], "incomplete"),
        ("incomplete", [State.SUSPECT], "incomplete"),
        ("incomplete", [State.SUSPECT, State.FAULT], "fault"),
        ("fault", [State.OK], "fault"),
        ("fault", [State.NOT_JUDGED], "fault"),
        ("fault", [State.FAULT], "fault"),
    ],
)
def test_the_worse_of_the_two_is_the_verdict(word: VerdictWord, states: list[State], expected: VerdictWord) -> None:
    found = with_additional(diagnosis(word), [finding(state, f"h{at:02d}") for at, state in enumerate(states)]).verdict
    assert (found.verdict, found.exit_code) == (expected, CODES[expected])


def test_a_host_that_stalled_with_a_faulty_host_only_is_not_reported() -> None:
    victim = finding(State.SUSPECT, "h05").model_copy(
        update={"ambiguity_group": (finding_cases.component("host", "h06"),)}
    )
    before = diagnosis("incomplete", victim)
    component = finding(State.FAULT, "h06")
    assert with_additional(before, [component]).verdict.findings == (component,)
    other_host = finding(State.FAULT, "h07")
    assert with_additional(before, [other_host]).verdict.findings == (other_host, victim)


def test_the_known_cause_of_a_failed_host_replaces_its_suspect_finding() -> None:
    other = finding(State.SUSPECT, "h06", evidence="rank 6 lost")
    cable = finding(State.SUSPECT, "h05", "cable")
    before = diagnosis("incomplete", finding(State.SUSPECT, "h05", evidence="rank 5 lost"), other, cable)
    known = finding(State.FAULT, "h05", evidence="messages of 64 KiB do not arrive")
    after = with_additional(before, [known]).verdict
    assert after.findings == (known, other, cable)
    assert after.verdict == "fault"


def test_what_the_measurement_is_sure_of_stays() -> None:
    measured = finding(State.FAULT, "h05", evidence="sends at half the rate")
    known = finding(State.SUSPECT, "h05", evidence="a rank on it was killed")
    after = with_additional(diagnosis("fault", measured), [known]).verdict
    assert after.findings == (measured, known)


@pytest.mark.parametrize(("measured", "other"), [("host", "nic"), ("host", "cable"), ("nic", "cable"), ("nic", "nic")])
def test_a_suspect_in_series_with_a_fault_is_evidence_of_the_fault(
    measured: ComponentKind, other: ComponentKind
) -> None:
    slow = finding(State.FAULT, "h05", measured, evidence="sends at half the rate")
    losing = finding(State.SUSPECT, "h05", other, evidence="11 of 288 pings lost")
    (fault,) = with_additional(diagnosis("fault", slow), [losing]).verdict.findings
    assert (fault.component, fault.evidence) == (measured, (*slow.evidence, *losing.evidence))


def test_a_suspect_of_another_host_or_nic_stays_beside_a_fault() -> None:
    slow = finding(State.FAULT, "h05/mlx5_0", "nic", evidence="sends at half the rate")
    others = [finding(State.SUSPECT, name, "nic", evidence="pings lost") for name in ("h05/mlx5_1", "h06/mlx5_0")]
    assert with_additional(diagnosis("fault", slow), others).verdict.findings == (slow, *others)


def test_coverage_and_notes_are_those_of_the_measurement() -> None:
    before = diagnosis("pass")
    after = with_additional(before, [finding(State.FAULT)])
    assert (after.verdict.coverage, note_texts(after.verdict)) == (before.verdict.coverage, ["a note"])


STATES = st.lists(st.sampled_from(list(State)), max_size=6)


@given(st.sampled_from(list(CODES)), STATES, STATES)
def test_nothing_is_better_than_before_and_the_worst_is_first(
    word: VerdictWord, measured: list[State], additional: list[State]
) -> None:
    before = diagnosis(word, *(finding(state, f"m{at}") for at, state in enumerate(measured)))
    known = [finding(state, f"k{at}") for at, state in enumerate(additional)]
    after = with_additional(before, known).verdict
    worse = ["pass", "incomplete", "fault"].index
    assert worse(after.verdict) >= worse(word)
    assert after.exit_code == CODES[after.verdict]
    judged_again = [*measured, *additional] if additional else []
    assert (after.verdict == "fault") == (word == "fault" or State.FAULT in judged_again)
    assert {one.name for one in after.findings} == {one.name for one in (*before.verdict.findings, *known)}
    order = list(State).index
    placement = [order(one.state) for one in after.findings]
    assert placement == sorted(placement) or not additional


def test_a_lost_host_of_a_run_is_known_to_every_diagnosis(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    write_run(path, simulate(MESH, noise=Noise(scale=0.01, spike_share=0)))
    set_state(path, "interrupted", [LOST])
    (before,) = (one for one in diagnose(read_run(path), MESH.topology).verdict.findings if one.state is State.SUSPECT)
    assert (before.component, before.name) == ("host", "h05")
    assert sentences(before.evidence).startswith("1 rank lost")
    known = finding(State.FAULT, "h05", evidence="no answer within 20 s")
    run_files.save_findings([known], path)
    after = analysis.diagnose(read_run(path), MESH.topology).verdict
    assert [one for one in after.findings if one.name == "h05"] == [known]
    assert (after.verdict, after.exit_code) == ("fault", 1)


@pytest.mark.parametrize("cut", ["nic", "cable"])
def test_a_cut_host_is_at_fault_by_its_nic_alone(cut: ComponentKind, tmp_path: Path) -> None:
    """Both ends of a pair report each other when one is cut off; here while they connected."""
    path = tmp_path / "a.run"
    write_run(path, simulate(MESH, noise=Noise(scale=0.01, spike_share=0)))
    set_state(path, "interrupted", [LOST, replace(LOST, rank=6, host="h06", partner=5)])
    before = diagnose(read_run(path), MESH.topology)
    assert {one.name for one in before.verdict.findings if one.state is State.SUSPECT} == {"h05", "h06"}
    known = finding(State.FAULT, "h05", cut, evidence="link down, 15 others up")
    after = with_additional(before, [known]).verdict
    assert [one for one in after.findings if one.state in (State.FAULT, State.SUSPECT)] == [known]
    elsewhere = finding(State.FAULT, "h07", cut, evidence="link down, 15 others up")
    after = with_additional(before, [elsewhere]).verdict
    assert {one.name for one in after.findings if one.state is State.SUSPECT} == {"h05", "h06"}


def test_the_partner_of_a_suspect_host_is_not_reported_as_well(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    write_run(path, simulate(MESH, noise=Noise(scale=0.01, spike_share=0)))
    set_state(path, "interrupted", [replace(LOST, rank=6, host="h06", partner=5)])
    before = diagnose(read_run(path), MESH.topology)
    known = finding(State.SUSPECT, "h05", evidence="starts at times")
    after = with_additional(before, [known]).verdict
    assert [one for one in after.findings if one.state is State.SUSPECT] == [known]
    elsewhere = finding(State.SUSPECT, "h07", evidence="starts at times")
    after = with_additional(before, [elsewhere]).verdict
    assert {one.name for one in after.findings if one.state is State.SUSPECT} == {"h06", "h07"}


def test_the_ends_of_a_cut_route_are_not_reported_as_well(tmp_path: Path) -> None:
    """A host that failed with another host, too, is."""
    path = tmp_path / "a.run"
    write_run(path, simulate(MESH, noise=Noise(scale=0.01, spike_share=0)))
    entries = [LOST, replace(LOST, rank=6, host="h06", partner=5), replace(LOST, rank=6, host="h06", partner=7)]
    route = finding_cases.finding(State.SUSPECT, "route", "h05=h06")
    for known, left in ((entries[:2], set()), (entries, {"h06"})):
        set_state(path, "interrupted", known)
        after = with_additional(diagnose(read_run(path), MESH.topology), [route]).verdict
        assert {one.name for one in after.findings if one.state is State.SUSPECT} == {"h05=h06", *left}


def test_nothing_known_leaves_no_file(tmp_path: Path) -> None:
    run_files.save_findings([], tmp_path)
    assert list(tmp_path.iterdir()) == []
