"""The verdict follows from the findings and from what is missing."""

from __future__ import annotations

import pytest

from fablint.analyse.decide import EXIT_CODES, amended, verdict_of
from fablint.model import ComponentRef, Coverage, Finding, State, Verdict, VerdictWord
from fablint.text import evidence as seen
from finding_cases import finding


def of(*states: State) -> list[Finding]:
    return [finding(state, "host", f"h{number}") for number, state in enumerate(states)]


NOTHING = Coverage(pairs_planned=0, pairs_measured=0, hosts=0, hosts_judged=0)


def decide(findings: list[Finding], *, complete: bool) -> VerdictWord:
    return verdict_of(findings, NOTHING, complete=complete).verdict


@pytest.mark.parametrize("state", [State.SUSPECT, State.CONFOUNDED, State.NOT_JUDGED])
def test_what_is_neither_ok_nor_a_fault_is_no_pass(state: State) -> None:
    assert decide(of(State.OK, state), complete=True) == "incomplete"
    assert decide(of(State.OK, state, State.FAULT), complete=True) == "fault"


def test_only_a_complete_run_passes() -> None:
    assert decide(of(State.OK), complete=True) == "pass"
    assert decide(of(State.OK), complete=False) == "incomplete"
    assert decide(of(State.FAULT), complete=False) == "fault"


def test_a_run_of_one_host_without_findings_about_it_is_local() -> None:
    one_host = Finding(
        state=State.NOT_JUDGED,
        components=(ComponentRef(kind="config", title="one host"),),
        evidence=(seen.one_host(2, "n1"),),
    )
    verdict = verdict_of([one_host, *of(State.OK)], NOTHING, complete=True)
    assert (verdict.verdict, verdict.exit_code) == ("local", 0)
    assert amended(verdict).verdict == "local"
    assert decide([one_host], complete=False) == "incomplete"
    assert decide([one_host, *of(State.SUSPECT)], complete=True) == "incomplete"
    assert decide([one_host, *of(State.FAULT)], complete=True) == "fault"


@pytest.mark.parametrize(
    ("before", "states", "complete", "after"),
    [
        ("pass", (State.OK,), True, "pass"),
        ("pass", (State.SUSPECT,), True, "incomplete"),
        ("pass", (State.OK,), False, "incomplete"),
        ("incomplete", (State.OK,), True, "incomplete"),
        ("incomplete", (State.FAULT,), True, "fault"),
        ("fault", (State.OK,), True, "fault"),
    ],
)
def test_the_verdict_does_not_become_better(
    before: VerdictWord, states: tuple[State, ...], complete: bool, after: VerdictWord
) -> None:
    verdict = Verdict(verdict=before, exit_code=EXIT_CODES[before], findings=(), coverage=NOTHING)
    verdict = verdict.model_copy(update={"complete": before != "incomplete"})
    found = amended(verdict, of(*states), complete=complete)
    assert (found.verdict, found.exit_code) == (after, EXIT_CODES[after])
    assert len(found.findings) == len(states)
