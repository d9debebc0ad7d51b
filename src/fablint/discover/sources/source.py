"""Interface of a source: it recognises and reads its outputs, and names the command that prints them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fablint.discover.facts import Facts


@dataclass(frozen=True)
class SavedOutput:
    """Output of a tool, from a file or from a command that was run."""

    name: str  # shown to users: the file, or the program
    text: str
    device: str = ""  # switch or host of the output, if given (NAME=FILE)
    path: Path | None = None


class Source(Protocol):
    """One kind of output. `read` skips malformed records without an error.

    If the output as a whole is unusable, `read` raises UsageError with the name of the file.
    """

    @property
    def name(self) -> str:
        """Name shown to users: `lldpcli`, `topology.conf`."""

    @property
    def command(self) -> tuple[str, ...]:
        """Command that prints the output on this machine; empty if there is none, or if every host runs it."""

    def recognises(self, text: str) -> bool:
        """Tell whether a text is an output of this source."""

    def read(self, saved: SavedOutput) -> Facts:
        """Return the facts in an output."""
