"""What a source is: it knows its own outputs, reads them, and says what to run to get them here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fablint.discover.facts import Facts


@dataclass(frozen=True)
class Saved:
    """An output that somebody saved, or that we have just asked for."""

    name: str  # for people: the file, or the program
    text: str
    device: str = ""  # whose output it is, where the user said so (NAME=FILE)
    path: Path | None = None


class Source(Protocol):
    """One kind of output. `read` never raises for what is malformed: it tells what it understood.

    Where the whole output is of no use it raises UsageError, naming the file.
    """

    @property
    def name(self) -> str:
        """For people: `lldpcli`, `topology.conf`."""

    @property
    def command(self) -> tuple[str, ...]:
        """What prints it on a machine that has it; empty where nothing does, or where the probe asks."""

    def recognises(self, text: str) -> bool:
        """Is this an output of that kind?"""

    def read(self, saved: Saved) -> Facts:
        """What it says."""


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
