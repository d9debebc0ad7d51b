"""Findings in words: the one table of sentences that terminal, report, tickets and JSON share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fablint.text.actions import advice
from fablint.text.evidence_sentences import sentences

if TYPE_CHECKING:
    from fablint.model import Finding


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
