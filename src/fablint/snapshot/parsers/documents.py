"""JSON that somebody else wrote: as much of it as can be understood."""

from __future__ import annotations

import json
from typing import Any


def documents(text: str) -> list[Any]:
    """The JSON documents in a text, one after the other; what is no JSON is left out."""
    decoder = json.JSONDecoder()
    found: list[Any] = []
    at = 0
    while (at := _next_bracket(text, at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
            found.append(value)
        except (ValueError, RecursionError):
            return found  # the rest is truncated
    return found


def _next_bracket(text: str, start: int) -> int:
    """Where the next document can begin; -1 where none can."""
    at = [place for place in (text.find("{", start), text.find("[", start)) if place >= 0]
    return min(at, default=-1)


def dicts(value: object) -> list[dict[str, Any]]:
    """The mappings in a list, or the one mapping: json0 and json differ in this."""
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
