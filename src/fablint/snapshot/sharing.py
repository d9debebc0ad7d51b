"""Documents of many hosts, read fast and kept small: what hosts of one kind have in common is one object for all."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

_DEEPEST = 40  # folders in each other; a path of /sys has a dozen


def parsed(text: bytes) -> Any:
    """The value of a JSON text. Raises ValueError, or RecursionError where it is nested too deeply.

    pydantic's parser is twice as fast as Python's, and makes one object of equal short strings. What it refuses, such
    as half of a surrogate pair in the name of a file, Python's reads.
    """
    from pydantic_core import from_json

    try:
        return from_json(text, cache_strings="all")
    except ValueError:
        return json.loads(text.decode("utf-8", "replace"))


def written(document: Any) -> bytes:
    """A document as JSON on one line."""
    from pydantic_core import to_json

    try:
        return to_json(document)
    except (ValueError, RecursionError):  # as `parsed`
        return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


class Sharing:
    """Makes parts of documents one object where they are equal: folders, texts, outputs of programs.

    A document is compared with the one before that was taken of such a machine, which is compared with the one before
    it: most of ten thousand hosts of one kind are kept once. The values do not change.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, ...], dict[str, Any]] = {}

    def of(self, document: dict[str, Any]) -> dict[str, Any]:
        """The document, whose parts are now those of documents before it."""
        kind = _kind(document)
        before = self._last.get(kind)
        self._last[kind] = document
        if before is not None:
            with suppress(RecursionError):  # a comparison of what no collector writes: it stays as it is
                _share(document, before, _DEEPEST)
        return document


def _kind(document: dict[str, Any]) -> tuple[str, ...]:
    """Return product name and programs of a document; documents of one kind are mostly equal."""
    result: Any = document.get("files")
    for name in ("sys", "devices", "virtual", "dmi", "id", "product_name"):
        result = result.get(name) if isinstance(result, dict) else None
    commands = document.get("commands")
    return (str(result), *(commands if isinstance(commands, dict) else ()))


def _share(document: dict[str, Any], before: dict[str, Any], levels: int) -> None:
    for key, value in document.items():
        other = before.get(key)
        if other is value or not isinstance(value, dict | str | list) or type(other) is not type(value):
            continue
        if other == value:
            document[key] = other
        elif levels and isinstance(value, dict) and isinstance(other, dict):
            _share(value, other, levels - 1)
