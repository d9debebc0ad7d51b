"""Parser of `dcgmi diag -j`: JSON, whose form depends on the version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fablint.snapshot.parsers.documents import dicts, documents
from fablint.text.sanitise import shortened


def diagnostic_results(text: str) -> Iterator[tuple[str, str]]:
    """Yield the text of each result with its status in lower case."""
    for document in (whole for one in documents(text) for whole in dicts(one)):
        for diagnostic in (part for value in document.values() for part in dicts(value)):
            for test in _below(dicts(diagnostic.get("test_categories")), "tests"):
                for result in dicts(test.get("results")):
                    status = str(result.get("status", "")).lower()
                    gpu = result.get("gpu_ids", result.get("gpu_id", result.get("entity_id", "")))
                    which = f"GPU {gpu}: " if gpu != "" else ""
                    yield shortened(f"{which}{test.get('name')} {status}{_why(result)}", 120), status


def _below(parents: Sequence[dict[str, Any]], name: str) -> Iterator[dict[str, Any]]:
    return (child for parent in parents for child in dicts(parent.get(name)))


def _why(result: Mapping[str, Any]) -> str:
    """Return the warnings of a result: a text, a list of texts, or a list of documents with a text."""
    warnings = result.get("warnings")
    items = warnings if isinstance(warnings, list) else [warnings]
    texts = [one.get("warning") if isinstance(one, dict) else one for one in items]
    valid = [text for text in texts if isinstance(text, str)]
    return f" ({'; '.join(valid)})" if valid else ""
