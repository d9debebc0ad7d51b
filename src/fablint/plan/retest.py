"""Measure again what a run accuses: the same kernels, the parts at fault beside healthy pairs, in a run of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fablint.model import Diagnosis, Finding, Run, State
from fablint.plan.follow_up import follow_up, with_controls
from fablint.plan.grammar import split_row, write_row
from fablint.plan.hosts import parse_hosts
from fablint.plan.kernels import PATTERNS
from fablint.plan.seats import seats_of
from fablint.plan.stages import RETEST, Asked, Stage, suspects_of, timed_stage

PAIRS = 12  # of each part: a link that fewer than 8 pairs cross is not judged
MOST_ROUNDS = 24
CONTROLS = 8  # healthy pairs in a round
ACCUSED = (State.FAULT, State.SUSPECT)

# What a row is measured with; all other options say whom, when and for how long.
_KEPT = ("sizes", "window", "warmup", "buffers", "batch", "win", "sync", "transport", "memory", "validate", "histogram")


@dataclass(frozen=True)
class Fate:
    """What became of a part that was accused."""

    was: Finding
    state: Literal["gone", "still there", "undecided"]
    now: Finding | None = None  # what the new run says about it

    def facts(self) -> dict[str, Any]:
        """For programs."""
        return {
            "component": self.was.component,
            "name": self.was.name,
            "state": self.state,
            "was": self.was.model_dump(mode="json"),
            "now": self.now.model_dump(mode="json") if self.now else None,
        }


def accused(diagnosis: Diagnosis) -> list[Finding]:
    """The findings that a retest is about."""
    return [finding for finding in diagnosis.verdict.findings if finding.state in ACCUSED]


def retest_stage(run: Run, diagnosis: Diagnosis, asked: Asked) -> Stage | None:
    """Rounds with the pairs that test what is accused, and with others that show what is healthy now.

    None where nothing is accused, or no pair would tell.
    """
    seats = seats_of(run.rank_host, asked.topology, run.attributes.get("rank_nic") or ())
    questions = [question for question in diagnosis.retests if question.open]
    rounds = follow_up(questions, seats, least=PAIRS, most_rounds=MOST_ROUNDS)
    if not rounds:
        return None
    rounds = with_controls(rounds, seats, suspects_of(questions), CONTROLS, asked.seed)
    return timed_stage(RETEST, rounds, asked, asked.budget_s or math.inf, kernel_lines(run))


def kernel_lines(run: Run) -> Sequence[str]:
    """The kernels of a run's rows of pairs with what they were measured with, each once."""
    lines: dict[str, None] = {}
    for row in run.rows:
        kernel, texts = split_row(str(row.attributes["options"]).split())
        if PATTERNS[texts.get("pattern") or "pair"] == "pairs":
            kept = {option: text for option, text in texts.items() if option in _KEPT}
            lines[write_row(kernel, kept)] = None
    return list(lines)


def fates(before: Diagnosis, after: Diagnosis) -> list[Fate]:
    """What became of every part that was accused.

    Still there: the new run finds it, or what it could not be told from, at fault. Undecided: the new run suspects it,
    asks about it or could not judge it. Gone: none of that.
    """
    return [_fate(finding, after) for finding in accused(before)]


def _fate(was: Finding, after: Diagnosis) -> Fate:
    names = {was.name, *was.alternatives}
    about = [found for found in after.verdict.findings if found.state != State.OK and _named(found, was, names)]
    for found in about:
        if found.state == State.FAULT:
            return Fate(was, "still there", found)
    asks = any(question.name in names for question in after.questions)
    return Fate(was, "undecided" if about or asks else "gone", about[0] if about else None)


def _named(found: Finding, was: Finding, names: set[str]) -> bool:
    """Is a finding about a part, or about one that the evidence did not tell from it? Hosts may be folded."""
    if names & {found.name, *found.alternatives}:
        return True
    return found.component == was.component == "host" and was.name in parse_hosts(found.name)
