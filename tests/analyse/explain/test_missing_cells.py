"""Planned measurements that are missing: no PASS, and what they have in common is named once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from analyse_cases import attributed, changed, deleted, in_rounds, named, row_attributed
from cluster_cases import matrix_row, run_of
from row_kinds import clients_servers, one_direction, only

from fablint.analyse import diagnose
from fablint.analyse.explain import shared_ends
from fablint.model import ComponentRef, Diagnosis, Finding, Row, Run, State
from fablint.simulate import Noise, full_mesh, multi_rail, simulate
from fablint.text.actions import advice
from fablint.text.evidence_sentences import sentences
from fact_cases import with_facts
from finding_cases import note_texts
from pinned import pinned_by

PINNED = pinned_by("analyse.toml", __file__)

QUIET = Noise(scale=0.01, spike_share=0)
MESH = full_mesh(6, 5)
WHOLE = simulate(MESH, noise=QUIET)
SENDER, RECEIVER = np.ix_(range(30), range(30))
KINDS = {"missing_of_end", "missing_between", "missing_scattered", "missing_unlocated"}


def without(run: Run, cells: np.ndarray) -> Run:
    """The run without these cells of its matrices."""
    return changed(run, lambda times, _: np.where(cells, np.nan, times).astype(np.float32))


def switch(ranks: np.ndarray) -> np.ndarray:
    return ranks // 5


def missing(diagnosis: Diagnosis) -> list[Finding]:
    """Findings about missing measurements."""
    return [
        finding for finding in diagnosis.verdict.findings if any(record.kind in KINDS for record in finding.evidence)
    ]


def found(diagnosis: Diagnosis) -> set[tuple[str, str, str | None]]:
    findings = missing(diagnosis)
    assert {finding.state for finding in findings} <= {State.NOT_JUDGED}
    return {(finding.component, finding.name, finding.direction) for finding in findings}


CASES = {
    "one way between switches": ((switch(SENDER) == 1) & (switch(RECEIVER) == 4), ("route", "s1>s4", None)),
    "both ways": (
        ((switch(SENDER) == 1) & (switch(RECEIVER) == 4)) | ((switch(SENDER) == 4) & (switch(RECEIVER) == 1)),
        ("route", "s1=s4", None),
    ),
    "on a switch": ((switch(SENDER) == 2) & (switch(RECEIVER) == 2), ("route", "s2=s2", None)),
    "sent by a host": (np.broadcast_to(SENDER == 7, (30, 30)), ("host", "h07", "tx")),
    "received by a host": (np.broadcast_to(RECEIVER == 7, (30, 30)), ("host", "h07", "rx")),
    "hosts": (np.isin(SENDER, [7, 21]) | np.isin(RECEIVER, [7, 21]), ("host", "h[07,21]", "both")),
    "most hosts of a switch": ((SENDER < 3) | (RECEIVER < 3), ("host", "h[00-02]", "both")),
    "from a host to two switches": ((SENDER == 7) & (switch(RECEIVER) >= 4), ("host", "h07", "tx")),
    "off a switch": ((switch(SENDER) == 3) & (switch(RECEIVER) != 3), ("switch", "s3", "tx")),
    "a switch": ((switch(SENDER) == 3) | (switch(RECEIVER) == 3), ("switch", "s3", "both")),
    "half of the switches": ((SENDER >= 15) | (RECEIVER >= 15), ("switch", "s[3-5]", "both")),
    "one pair": ((SENDER == 7) & (RECEIVER == 21), ("route", "h07>h21", None)),
}


@pytest.mark.parametrize("case", CASES)
def test_what_missing_measurements_have_in_common_is_named_once(case: str) -> None:
    cells, expected = CASES[case]
    diagnosis = diagnose(without(WHOLE, cells), MESH.topology)
    verdict = diagnosis.verdict
    assert found(diagnosis) == {expected}
    assert (verdict.verdict, verdict.exit_code, named(diagnosis)) == ("incomplete", 3, set())
    planned = 30 * 29
    lost = int(np.count_nonzero(cells & (SENDER != RECEIVER)))
    assert (verdict.coverage.pairs_planned, verdict.coverage.pairs_measured) == (2 * planned, 2 * (planned - lost))
    named_components = {
        component.model_copy(update={"direction": None}) for each in missing(diagnosis) for component in each.components
    }
    healthy = [each for each in verdict.findings if each.state is State.OK and each.component in ("host", "switch")]
    assert not [each for each in healthy if named_components & set(split(each))]


def split(finding: Finding) -> list[ComponentRef]:
    return [ComponentRef.of(finding.component, name) for name in finding.nodes]


def test_the_sentence_says_how_many_of_how_many_in_which_direction_and_what_to_do() -> None:
    (path,) = missing(diagnose(without(WHOLE, CASES["one way between switches"][0]), MESH.topology))
    assert sentences(path.evidence) == PINNED["latency, bandwidth: 25"]
    assert "firewall rules between s1 and s4" in advice(path.next_step)
    (host,) = missing(diagnose(without(WHOLE, CASES["from a host to two switches"][0]), MESH.topology))
    assert sentences(host.evidence) == PINNED["latency, bandwidth: 10"]


def test_many_pairs_of_switches_are_one_finding() -> None:
    cells = (switch(SENDER) < 3) & (switch(RECEIVER) >= 3)
    (finding,) = missing(diagnose(without(WHOLE, cells), MESH.topology))
    assert finding.name == "s[0-2]>s[3-5]"
    assert PINNED["225 of 225 measurements"] in sentences(finding.evidence)


def test_a_row_of_which_all_is_there_is_not_in_the_evidence() -> None:
    cells = CASES["sent by a host"][0]
    gone = changed(WHOLE, lambda times, row: np.where(cells & (row == "bandwidth"), np.nan, times).astype(np.float32))
    (finding,) = missing(diagnose(gone, MESH.topology))
    assert [record.row for record in finding.evidence] == ["bandwidth"]


@pytest.mark.parametrize("share", [0.004, 0.3])
def test_missing_measurements_without_anything_in_common_are_one_finding(share: float) -> None:
    diagnosis = diagnose(deleted(WHOLE, share, 5), MESH.topology)
    (finding,) = missing(diagnosis) if share > 0.1 else missing(diagnosis)[:1]
    lost = diagnosis.verdict.coverage.pairs_planned - diagnosis.verdict.coverage.pairs_measured
    counts = [int(record.values["missing"]) for each in missing(diagnosis) for record in each.evidence]
    assert finding.evidence[0].kind == "missing_scattered"
    assert sum(counts) == lost > 0
    assert diagnosis.verdict.verdict == "incomplete"


def test_scattered_and_shared_are_distinguished() -> None:
    scattered = deleted(WHOLE, 0.05, 3)
    diagnosis = diagnose(without(scattered, CASES["one way between switches"][0]), MESH.topology)
    assert found(diagnosis) == {("route", "s1>s4", None), ("config", "scattered measurements", None)}


def test_more_missing_cells_than_fit_into_memory_have_the_same_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_ends, "MOST_LISTED", 10)
    for case in ("hosts", "half of the switches"):
        assert found(diagnose(without(WHOLE, CASES[case][0]), MESH.topology)) == {CASES[case][1]}


# ------------------------------------------------------------------------------------------------ NICs


RAILS = multi_rail(full_mesh(3, 3), 4)
FOUR_NICS = simulate(RAILS, noise=Noise(scale=0.03))
RANK, OTHER = np.ix_(range(36), range(36))


@pytest.mark.parametrize("topology", [RAILS.topology, None], ids=["declared", "unknown"])
def test_a_nic_without_a_measurement_is_named_and_its_host_not_judged(topology: object) -> None:
    assert diagnose(FOUR_NICS, topology).verdict.coverage.hosts_judged == 9
    diagnosis = diagnose(without(FOUR_NICS, (RANK == 14) | (OTHER == 14)), topology)
    assert found(diagnosis) == {("nic", "h03/hsn2", "both")}
    assert diagnosis.verdict.coverage.hosts_judged == 8
    assert diagnosis.verdict.verdict == "incomplete"
    assert not [each for each in diagnosis.verdict.findings if each.state is State.OK and "h03" in each.hosts]


def test_a_nic_that_was_measured_with_too_few_hosts_is_not_judged_by_its_own_name() -> None:
    """Although nothing that was planned is missing: its rank takes part in two of the rounds only."""
    rounds = in_rounds(FOUR_NICS, 12, seed=2)
    rows = []
    for row in rounds.rows:
        dst, times = np.array(row.arrays["dst"]), np.array(row.arrays["time_median"])
        for number in range(2, 12):
            partner = dst[14, number]
            dst[[14, partner], number] = -1
            times[[14, partner], number] = np.nan
        cells = (dst >= 0).sum(axis=0).tolist()
        arrays = {**row.arrays, "dst": dst, "time_median": times, "count": (~np.isnan(times)).astype(np.uint32)}
        rows.append(replace(with_facts(row, cells_per_round=cells), arrays=arrays))
    diagnosis = diagnose(only(rounds, *rows))
    lacking = [
        each for each in diagnosis.verdict.findings if any(record.kind == "few_hosts" for record in each.evidence)
    ]
    assert not missing(diagnosis)
    assert {each.name for each in lacking} == {"h03/hsn2"}
    assert diagnosis.verdict.coverage.hosts_judged == 8


def test_ranks_of_the_same_host_are_no_partners() -> None:
    """Two hosts with four ranks each: a rank has one other host, however many ranks it was measured with."""
    run = simulate(multi_rail(full_mesh(2, 1), 4), noise=QUIET)
    assert diagnose(run).verdict.coverage.hosts_judged == 0


# ------------------------------------------------------------------------------------------------ plans


def test_plans_with_fewer_pairs_lack_nothing() -> None:
    repeated = matrix_row("latency", lambda a, b: 2e-6, repeats=3)
    halves = np.array(WHOLE.row("latency").arrays["time_median"])
    halves[0, (SENDER < 15) == (RECEIVER < 15)] = np.nan
    latency = WHOLE.row("latency")
    bisection = replace(
        with_facts(latency, pattern="bisection", rounds=15, cells_per_round=30),
        arrays={**latency.arrays, "time_median": halves},
    )
    runs = [
        in_rounds(WHOLE, 9, seed=4),
        only(WHOLE, one_direction(latency)),
        only(WHOLE, bisection),
        only(WHOLE, *WHOLE.rows, clients_servers(WHOLE, "rpc_put", 5)),
        run_of(repeated),
    ]
    for run in runs:
        diagnosis = diagnose(run)
        coverage = diagnosis.verdict.coverage
        assert missing(diagnosis) == []
        assert coverage.pairs_measured == coverage.pairs_planned > 0


def test_one_repeat_of_a_pair_is_missing_although_the_others_were_measured() -> None:
    row = matrix_row("latency", lambda a, b: 2e-6, repeats=3)
    row.arrays["time_median"][1, 4, 9] = np.nan
    diagnosis = diagnose(run_of(row))
    (finding,) = missing(diagnosis)
    assert finding.name == "h04>h09"
    assert (diagnosis.verdict.coverage.pairs_planned, diagnosis.verdict.coverage.pairs_measured) == (720, 719)


def cut_list(row: Row, sender: int, *, entry: bool) -> Row:
    """A list of rounds without what a rank measured; `entry`: its partners are still entered."""
    dst, times = np.array(row.arrays["dst"]), np.array(row.arrays["time_median"])
    times[sender] = np.nan
    if not entry:
        dst[sender] = -1
    return replace(row, arrays={**row.arrays, "dst": dst, "time_median": times})


@pytest.mark.parametrize("entry", [True, False])
def test_the_other_end_of_a_pair_shows_that_a_cell_of_a_list_was_planned(entry: bool) -> None:
    rounds = in_rounds(WHOLE, 12, seed=4)
    gone = only(rounds, *(cut_list(row, 7, entry=entry) for row in rounds.rows))
    assert found(diagnose(gone, MESH.topology)) == {("host", "h07", "tx")}


def test_cells_of_a_list_of_which_neither_end_is_known_are_counted() -> None:
    rounds = in_rounds(WHOLE, 12, seed=4)
    rows = []
    for row in rounds.rows:
        dst, times = np.array(row.arrays["dst"]), np.array(row.arrays["time_median"])
        ends = [7, dst[7, 0]]
        dst[ends, 0] = -1
        times[ends, 0] = np.nan
        rows.append(replace(row, arrays={**row.arrays, "dst": dst, "time_median": times}))
    diagnosis = diagnose(only(rounds, *rows), MESH.topology)
    (finding,) = missing(diagnosis)
    assert PINNED["2 of 360 measurements"].ends(sentences(finding.evidence))
    failed = Finding(state=State.FAULT, components=(ComponentRef.of("host", "h07"),))
    assert missing(diagnose(only(rounds, *rows), MESH.topology, others=[failed])) == []


# ------------------------------------------------------------------------------------------------ ended early


def interrupted(run: Run) -> Run:
    for row in run.rows:
        run = row_attributed(run, row.name, state="interrupted")
    return attributed(run, state="interrupted")


def test_rounds_that_were_not_measured_yet_are_no_finding() -> None:
    late = np.asarray(WHOLE.row("latency").arrays["round"])[0] > 14
    diagnosis = diagnose(interrupted(without(WHOLE, late)), MESH.topology)
    assert missing(diagnosis) == []
    assert any("not complete" in note for note in note_texts(diagnosis.verdict))


def test_a_direction_that_is_missing_in_all_finished_rounds_is_a_finding() -> None:
    late = np.asarray(WHOLE.row("latency").arrays["round"])[0] > 14
    diagnosis = diagnose(interrupted(without(WHOLE, late | CASES["one way between switches"][0])), MESH.topology)
    assert found(diagnosis) == {("route", "s1>s4", None)}


def test_the_cells_of_failed_hosts_are_explained_by_the_finding_on_these() -> None:
    cells = CASES["hosts"][0] | CASES["one way between switches"][0]
    failed = [Finding(state=State.NOT_JUDGED, components=(ComponentRef.of("host", name),)) for name in ("h07", "h21")]
    diagnosis = diagnose(without(WHOLE, cells), MESH.topology, others=failed)
    assert found(diagnosis) == {("route", "s1>s4", None)}


def test_pairs_of_hosts_that_were_excluded_are_explained_as_well() -> None:
    excluded = Finding(state=State.SUSPECT, components=(ComponentRef.of("route", "h07", "h21"),))
    cells = np.isin(SENDER, [7, 21]) & np.isin(RECEIVER, [7, 21])
    assert missing(diagnose(without(WHOLE, cells), MESH.topology, others=[excluded])) == []
    assert len(missing(diagnose(without(WHOLE, cells), MESH.topology))) == 1


# ------------------------------------------------------------------------------------------------ idle NICs


def test_nics_that_carried_nothing_are_a_note_and_no_reason_against_a_pass() -> None:
    run = simulate(multi_rail(full_mesh(4, 4), 2), noise=QUIET, ranks_per_host=1)
    verdict = diagnose(run).verdict
    assert verdict.verdict == "pass"
    assert "hsn1 of 16 hosts was not measured" in note_texts(verdict)
    both = simulate(multi_rail(full_mesh(4, 4), 2), noise=QUIET)
    assert not [note for note in note_texts(diagnose(both).verdict) if "was not measured" in note]


@pytest.mark.parametrize(
    ("grown", "note"),
    [
        ({"hsn0": 90_000, "hsn1": 80_000}, None),  # the library uses both
        ({"hsn0": 90_000, "hsn1": 40}, "hsn1 of 15 hosts was not measured"),
        ({"hsn0": 40, "hsn1": 90_000}, "hsn0 of 15 hosts was not measured"),
    ],
)
def test_counters_show_which_nics_carried_messages(grown: dict[str, int], note: str | None) -> None:
    run = simulate(multi_rail(full_mesh(5, 3), 2), noise=QUIET, ranks_per_host=1)
    counters = {
        when: {host: {nic: {"tx_packets": 1000 + factor * count} for nic, count in grown.items()} for host in run.hosts}
        for when, factor in (("before", 0), ("after", 1))
    }
    notes = [
        each for each in note_texts(diagnose(attributed(run, counters=counters)).verdict) if "not measured" in each
    ]
    assert notes == ([note] if note else [])
