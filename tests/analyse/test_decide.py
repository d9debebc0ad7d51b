"""The verdict follows from the findings and from what is missing."""

from __future__ import annotations

import pytest

from fablint.analyse.decide import EXIT_CODES, decide, redecided
from fablint.model import Coverage, Finding, State, Verdict, VerdictWord


def of(*states: State) -> list[Finding]:
    return [Finding(state=state, component="host", name=f"h{number}") for number, state in enumerate(states)]


@pytest.mark.parametrize("state", [state for state in State if state not in (State.OK, State.FAULT)])
def test_what_is_neither_ok_nor_a_fault_is_no_pass(state: State) -> None:
    assert decide(of(State.OK, state), complete=True) == "incomplete"
    assert decide(of(State.OK, state, State.FAULT), complete=True) == "fault"


def test_only_a_complete_run_passes() -> None:
    assert decide(of(State.OK), complete=True) == "pass"
    assert decide(of(State.OK), complete=False) == "incomplete"
    assert decide(of(State.FAULT), complete=False) == "fault"


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
    nothing = Coverage(pairs_planned=0, pairs_measured=0, hosts=0, hosts_judged=0)
    verdict = Verdict(verdict=before, exit_code=EXIT_CODES[before], findings=(), coverage=nothing)
    found = redecided(verdict, of(*states), complete=complete)
    assert (found.verdict, found.exit_code) == (after, EXIT_CODES[after])
    assert len(found.findings) == len(states)
