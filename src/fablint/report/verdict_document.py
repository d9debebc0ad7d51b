"""The verdict for programs. Its shape is `model.Verdict`; docs/reference/verdict.md describes it."""

from __future__ import annotations

import json

from fablint.model import Diagnosis, Verdict


def verdict_json(diagnosis: Diagnosis) -> str:
    """The verdict as one JSON object, ending with a newline. Figures that are not finite become null."""
    return diagnosis.verdict.model_dump_json(indent=2) + "\n"


def verdict_schema() -> str:
    """JSON Schema (2020-12) of what `verdict_json` returns."""
    return json.dumps(Verdict.model_json_schema(mode="serialization"), indent=2) + "\n"
