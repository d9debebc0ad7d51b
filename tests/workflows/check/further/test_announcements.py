"""What a check tells while it runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from fake_launches import Done, Notes

from fablint.model import ComponentRef, Coverage, Diagnosis, Finding, FollowUp, Plan, PlanRow, RowSpec, State, Verdict
from fablint.plan.check.stages import Stage
from fablint.workflows.check.announcements import Announcements
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)
STAGE = Stage(Plan(4, (PlanRow(RowSpec("latency", sizes=(8,)), 3, 1.5), PlanRow(RowSpec("bandwidth"), 3, 4.0))))


def diagnosis(*findings: Finding) -> Diagnosis:
    coverage = Coverage(pairs_planned=2, pairs_measured=2, hosts=2, hosts_judged=0)
    return Diagnosis(Verdict(verdict="fault", exit_code=1, findings=findings, coverage=coverage), ())


def about(host: str, state: State = State.FAULT, effect: float = -0.3) -> Finding:
    return Finding(state=state, components=(ComponentRef.of("host", host),), quantity="bandwidth", effect=effect)


def events_of(done: Done, event: str) -> list[dict[str, Any]]:
    progress = done.level_runs.context.progress
    assert isinstance(progress, Notes)
    return [values for kind, values in progress.events if kind == event]


def announced(*judged: Sequence[Finding]) -> list[tuple[str, str]]:
    notes = Notes()
    announcements = Announcements(notes)
    for findings in judged:
        announcements.judged(diagnosis(*findings))
    return [(event, str(values["text"])) for event, values in notes.events]


def test_a_fault_is_announced_once_and_a_suspect_is_not() -> None:
    later = about("h2", effect=-0.35)
    assert announced([about("h1", State.SUSPECT)], [about("h2")], [later, about("h1")], [later, about("h1")]) == [
        ("finding", "fablint: FAULT host h2  bandwidth -30 %"),
        ("finding", "fablint: FAULT host h1  bandwidth -30 %"),
    ]


def test_a_fault_that_later_measurements_do_not_show_is_withdrawn() -> None:
    assert announced([about("h1"), about("h2")], [about("h2")], [about("h2")])[2:] == [
        ("withdrawn", "fablint: no longer a fault: host h1")
    ]


def test_a_follow_up_is_announced_with_what_it_decides_and_the_time_left() -> None:
    notes = Notes()
    pairs = np.array([[0, 1]])
    doubts = [FollowUp(ComponentRef.of("host", f"h{number}"), pairs) for number in (1, 2, 3, 4, 5, 6, 1)]
    Announcements(notes).follow_up(STAGE, doubts, 20.4)
    ((event, values),) = notes.events
    assert (event, values["rounds"], values["predicted_s"]) == ("next", 6, 5.5)
    assert values["components"] == [f"host h{number}" for number in range(1, 7)]
    assert values["text"] == PINNED["next a follow-up"]


def test_every_level_is_announced_before_it_is_measured(healthy: Done) -> None:
    levels = [values["level"] for values in events_of(healthy, "next")]
    assert levels == ["intra-node", "reach", "edge", "local", "global"]
    assert all(values["rounds"] > 0 and values["predicted_s"] > 0 for values in events_of(healthy, "next"))
    assert events_of(healthy, "finding") == []


def test_faults_are_announced_before_the_last_level_and_are_those_of_the_verdict(faulty: Done) -> None:
    progress = faulty.level_runs.context.progress
    assert isinstance(progress, Notes)
    order = [values.get("level", event) for event, values in progress.events if event in ("next", "finding")]
    assert order.index("finding") < order.index("global")
    documents = [values["finding"] for values in events_of(faulty, "finding")]
    withdrawn = [values["finding"] for values in events_of(faulty, "withdrawn")]
    names = {Finding.model_validate(document).name for document in documents if document not in withdrawn}
    verdict = faulty.checked.diagnosis.verdict
    assert names == {finding.name for finding in verdict.findings if finding.state is State.FAULT}
    json.dumps(documents)
