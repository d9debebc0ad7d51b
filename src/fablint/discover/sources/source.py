"""What a source is: it knows its own outputs, reads them, and says what to run to get them here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

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
        """What prints it on a machine that has it; empty where nothing does, or where each host is asked."""

    def recognises(self, text: str) -> bool:
        """Is this an output of that kind?"""

    def read(self, saved: Saved) -> Facts:
        """What it says."""
