"""What the verdict says of measurements that a check had no time for."""

from __future__ import annotations

import numpy as np

from fablint.model import ComponentRef, Diagnosis, FollowUp, Run, Verdict
from fablint.plan.check.check_loop import LoopResult
from fablint.workflows.check.check_run import with_undecided
from fact_cases import run_facts
from finding_cases import component, note_texts
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)

VERDICT = {
    "verdict": "incomplete",
    "exit_code": 3,
    "findings": (),
    "coverage": {"pairs_planned": 1, "pairs_measured": 1, "hosts": 1, "hosts_judged": 1},
}
RUN = Run(None, run_facts({}), ())


def about(one: ComponentRef) -> FollowUp:
    return FollowUp(one, np.array([(0, 1)]))


ROUTE, HOST, PATH = (
    about(component(kind, label)) for kind, label in (("route", "h3=h9"), ("host", "h4"), ("route", "s1=s2"))
)


def notes(undecided: tuple[FollowUp, ...] = (), outstanding: tuple[FollowUp, ...] = (), ended: str = "") -> list[str]:
    diagnosis = Diagnosis(Verdict.model_validate(VERDICT), (), distances=(PATH,))
    result = LoopResult(RUN, diagnosis, undecided, outstanding, ended)
    return note_texts(with_undecided(diagnosis, result).verdict)


def test_routes_whose_retest_is_outstanding_are_named() -> None:
    assert notes(outstanding=(ROUTE,), ended="the budget ended") == [PINNED["not measured again when"]]


def test_components_that_are_undecided_and_routes_to_retest_have_a_note_each() -> None:
    said = notes((HOST,), (ROUTE,), "the budget ended")
    assert [note.partition(" (")[0] for note in said] == [
        "undecided when the budget ended: host h4",
        PINNED["not measured again when the"],
    ]


def test_paths_to_measure_alone_have_their_own_note_elsewhere() -> None:
    assert notes(outstanding=(PATH,), ended="the budget ended") == []


def test_of_many_routes_the_first_are_named_and_the_others_counted() -> None:
    routes = tuple(about(component("route", f"h{number}=h{number + 50}")) for number in range(20))
    (note,) = notes(outstanding=routes, ended="the budget ended")
    assert "h7=h57, 12 more (a larger" in note
    assert "h8=" not in note


def test_a_check_that_ended_for_another_reason_has_no_such_note() -> None:
    assert notes((HOST,), (ROUTE,)) == []
