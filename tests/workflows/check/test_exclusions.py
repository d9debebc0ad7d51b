"""A host that failed a level: the finding stays until something refutes it, and what the host missed is said."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_launches import FakeCluster, FakeSystem, every_pair
from level_cases import CHECK, FABRIC, HOSTS
from pydantic import TypeAdapter

import finding_cases
from fablint.analyse import amended
from fablint.model import Diagnosis, Finding, RowSpec, Run, State, Topology
from fablint.text.evidence_sentences import sentences
from fablint.workflows import analysis, measurement
from fablint.workflows.check.check_run import CheckOutcome
from fablint.workflows.check.exclusions import Exclusion, Exclusions
from finding_cases import note_texts
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)

_OF_EXCLUSION = {"failed_level", "missed_levels"}


@dataclass
class PassingCluster(FakeCluster):
    """Hosts that are slow in some rows only: the cause passes."""

    slow_in: dict[str, str] = field(default_factory=dict)  # by host: beginning of the names of these rows

    def _seconds(self, row: RowSpec, one: str, other: str) -> np.ndarray:
        ends = [host for host in (one, other) if str(row.name).startswith(self.slow_in.get(host, "?"))]
        return super()._seconds(row, one, other) * 2.0 ** len(ends)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PassingCluster:
    fake = PassingCluster(FakeSystem(tmp_path / "home"))
    monkeypatch.setattr(measurement, "measure", fake.measure)
    return fake


def about(checked: CheckOutcome, host: str) -> list[tuple[str, str]]:
    """State and evidence of the findings about a host, without the OK ones."""
    findings = checked.diagnosis.verdict.findings
    return [
        (str(one.state), sentences(one.evidence)) for one in findings if host in one.nodes and one.state is not State.OK
    ]


def reporting(host: str, until: str, monkeypatch: pytest.MonkeyPatch, *, healthy: bool = False) -> None:
    """Make each diagnosis call a host faulty until a row of this name is there; then it says nothing, or OK."""
    judge = analysis.diagnose

    def fake_diagnose(run: Run, topology: Topology | None = None, **more: Any) -> Diagnosis:
        diagnosis = judge(run, topology, **more)
        rows = [row.name for row in run.rows]
        is_over = any(row.startswith(until) for row in rows)
        findings = [one for one in diagnosis.verdict.findings if {e.kind for e in one.evidence} & _OF_EXCLUSION]
        if not is_over and any(row.startswith("local") for row in rows):
            findings.append(finding_cases.finding(State.FAULT, "host", host, evidence="half the rate", effect=-0.5))
        elif is_over and healthy:
            findings += [one for one in diagnosis.verdict.findings if one.state is State.OK]
        return _with(diagnosis, findings)

    monkeypatch.setattr(analysis, "diagnose", fake_diagnose)


def _with(diagnosis: Diagnosis, findings: list[Finding]) -> Diagnosis:
    from dataclasses import replace

    return replace(diagnosis, verdict=amended(diagnosis.verdict, findings), follow_ups=(), retests=())


@pytest.mark.parametrize("host", ["h12"])
def test_a_finding_that_excluded_a_host_stays(
    cluster: PassingCluster, check: CHECK, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    reporting(host, "global", monkeypatch)
    checked, level_runs = check()
    assert level_runs.exclusions.levels == {host: "local"}
    said = "it failed the level local and was excluded from the next ones: half the rate; not measured in global"
    assert about(checked, host) == [("FAULT", said)]
    assert checked.diagnosis.verdict.exit_code == 1
    assert analysis.diagnose(checked.run, FABRIC).verdict.exit_code == 1  # also in every later diagnosis


@pytest.mark.parametrize(("host", "level"), [("h14", "edge")])
def test_a_host_that_was_slow_for_a_time_is_measured_again_and_stays_a_suspect(
    cluster: PassingCluster, check: CHECK, host: str, level: str
) -> None:
    """Follow-ups at the end of the check find it healthy, and so do the levels that it missed."""
    cluster.slow_in = {host: level}
    checked, level_runs = check()
    assert level_runs.exclusions.levels == {}
    assert level_runs.exclusions.by_host[host].missed == ()
    assert any(host in pair for _, pair in every_pair(checked.run, "global-again-latency"))
    ((state, evidence),) = about(checked, host)
    assert state == "SUSPECT"
    assert PINNED["it failed the level level"].filled(level=level).begins(evidence)
    assert evidence.endswith("measured again later, it is healthy")
    assert checked.diagnosis.verdict.exit_code == 3
    assert not any(note.startswith("excluded after") for note in note_texts(checked.diagnosis.verdict))


def test_an_exclusion_that_is_refuted_is_undone(
    cluster: PassingCluster, check: CHECK, monkeypatch: pytest.MonkeyPatch
) -> None:
    reporting("h05", "global", monkeypatch, healthy=True)
    checked, level_runs = check()
    assert level_runs.exclusions.levels == {}
    rows = [row for row in checked.run.rows if row.name.startswith("global-again")]
    assert {row.kernel for row in rows} == {"latency", "bandwidth"}
    for row in rows:
        measured = np.asarray(row.arrays["count"][:]).any(axis=-1)
        partner = np.asarray(row.arrays["dst"][:])
        ends = {HOSTS[rank] for rank in np.flatnonzero(measured.any(axis=1))}
        assert "h05" in ends
        assert all("h05" in (HOSTS[a], HOSTS[partner[a, at]]) for a, at in zip(*np.nonzero(measured), strict=True))
    assert about(checked, "h05") == []
    assert PINNED["h05 failed local and was"] in note_texts(checked.diagnosis.verdict)
    notes: list[str] = level_runs.context.progress.said  # type: ignore[attr-defined]
    assert notes[-1] == PINNED["h05 failed local"]


def test_what_a_host_missed_is_not_judged(
    cluster: PassingCluster, check: CHECK, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its exclusion is refuted, and nothing can be launched any more."""
    reporting("h05", "global", monkeypatch, healthy=True)
    monkeypatch.setattr("fablint.workflows.check.level_runs.LevelRuns._stage_again", lambda *_: None)
    checked, _ = check()
    assert about(checked, "h05") == [("NOT JUDGED", PINNED["not measured in global, since"])]
    assert checked.diagnosis.verdict.exit_code == 3


def test_a_faulty_switch_that_explains_a_host_leaves_the_reason_for_the_hole(
    cluster: PassingCluster, check: CHECK
) -> None:
    checked, _ = check("edge")
    finding = finding_cases.finding(State.FAULT, "host", "h05", evidence="half the rate")
    exclusions = Exclusions({"h05": Exclusion("edge", finding, ("local", "global"))})
    written = TypeAdapter(Exclusion).dump_json(exclusions.by_host["h05"])
    assert TypeAdapter(Exclusion).validate_json(written) == exclusions.by_host["h05"]
    for switch, state in ((FABRIC.host_switch["h05"], State.NOT_JUDGED), ("s2", State.FAULT)):
        slow = finding_cases.finding(State.FAULT, "switch", switch, evidence="half the rate")
        (left,) = exclusions.open_findings(_with(checked.diagnosis, [slow]), checked.run, FABRIC)
        assert (left.state, left.hosts) == (state, ("h05",))
