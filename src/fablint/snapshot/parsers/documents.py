"""Tolerant reading of JSON that other programs wrote."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from fablint.snapshot.sharing import parsed

_BEGIN = re.compile(r"""^\s*(?:\[\s*(?:[{\]]|\Z)|\{\s*(?:["}]|\Z)|<\?xml)""", re.MULTILINE)
_XML_ROOT = re.compile(r"<(\w+)[\s>]")


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


def is_cut_off(text: str) -> bool:
    """Tell whether a text has the beginning of a document of JSON or XML and not its end."""
    begin = _BEGIN.search(text)
    if begin is None:
        return False
    if not begin[0].endswith("xml"):
        return not documents(text)
    root = _XML_ROOT.search(text)
    return root is None or not text.rstrip().endswith(f"</{root[1]}>")


def _next_bracket(text: str, start: int) -> int:
    """Return the position of the next bracket; -1 if there is none."""
    at = [place for place in (text.find("{", start), text.find("[", start)) if place >= 0]
    return min(at, default=-1)


def dicts(value: object) -> list[dict[str, Any]]:
    """Return the mappings in a list, or a single mapping as a list."""
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
