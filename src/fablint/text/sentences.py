"""Findings in words: the one table of sentences that terminal, report, tickets and JSON share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fablint.text.actions import advice
from fablint.text.evidence_sentences import sentence, sentences
from fablint.text.notes import note_text

if TYPE_CHECKING:
    from fablint.model import Finding, Verdict


def finding_facts(finding: Finding) -> dict[str, Any]:
    """A finding as JSON data; `text` has the sentences."""
    text = {
        "component": finding.component,
        "name": finding.name,
        "evidence": sentences(finding.evidence),
        "ambiguity_group": [one.text for one in finding.ambiguity_group],
        "next_step": advice(finding.next_step),
    }
    facts: dict[str, Any] = json.loads(finding.model_dump_json())  # figures that are not finite become null
    return {**facts, "text": text}


def without_sentence(verdict: Verdict) -> str:
    """Return the kind of the first evidence, action or note that has no sentence here; empty where all have one.

    A verdict in a file may be of another version, with other kinds or fields.
    """
    parts: list[tuple[str, Any, Callable[[Any], str]]] = [(note.kind, note, note_text) for note in verdict.notes]
    for finding in verdict.findings:
        parts += [(record.kind, record, sentence) for record in finding.evidence]
        parts += [(action.kind, (action,), advice) for action in finding.next_step]
    for kind, part, words_of in parts:
        try:
            words_of(part)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            return kind
    return ""
