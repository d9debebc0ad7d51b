"""Tolerant reading of JSON that other programs wrote."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from fablint.snapshot.sharing import parsed


def documents(text: str) -> list[Any]:
    """Return the JSON documents in a text; other text between them is skipped."""
    with suppress(ValueError, RecursionError):  # most texts are one document
        whole = parsed(text.encode())
        if isinstance(whole, dict | list):
            return [whole]
    decoder = json.JSONDecoder()
    result: list[Any] = []
    at = 0
    while (at := _next_bracket(text, at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
            result.append(value)
        except (ValueError, RecursionError):
            return result  # the rest is truncated
    return result


def _next_bracket(text: str, start: int) -> int:
    """Return the position of the next bracket; -1 if there is none."""
    at = [place for place in (text.find("{", start), text.find("[", start)) if place >= 0]
    return min(at, default=-1)


def dicts(value: object) -> list[dict[str, Any]]:
    """Return the mappings in a list, or a single mapping as a list."""
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
