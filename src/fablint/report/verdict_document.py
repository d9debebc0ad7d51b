"""The verdict for programs. Its shape is `model.Verdict`; docs/reference/verdict.md describes it."""

from __future__ import annotations

import json

from fablint.model import Diagnosis, Verdict
from fablint.text.notes import note_text
from fablint.text.sentences import finding_facts


def verdict_json(diagnosis: Diagnosis) -> str:
    """The verdict as one JSON object, ending with a newline. Figures that are not finite become null."""
    verdict = diagnosis.verdict
    facts = json.loads(verdict.model_dump_json()) | {"findings": [finding_facts(one) for one in verdict.findings]}
    for document, note in zip(facts["notes"], verdict.notes, strict=True):
        document["text"] = note_text(note)
    return json.dumps(facts, indent=2, allow_nan=False) + "\n"


def verdict_schema() -> str:
    """JSON Schema (2020-12) of what `verdict_json` returns."""
    return json.dumps(Verdict.model_json_schema(mode="validation"), indent=2) + "\n"
