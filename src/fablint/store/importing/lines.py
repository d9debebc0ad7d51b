"""What all readers of other tools' texts share: numbered lines, numbers, and lines that belong to somebody else."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?(?:nan|inf)"
PLAIN = r"[0-9]{1,18}(?:\.[0-9]{1,18})?"  # always finite
INTEGER = r"[0-9]{1,18}"  # what fits into 63 bits, and keeps Python from refusing to convert it

# What launchers put before a line: `[1,0]<stdout>:` (Open MPI --tag-output), `0: ` (srun -l).
_LABEL = re.compile(r"^(?:\[[0-9]+,[0-9]+\]<std(?:out|err)>: ?| *[0-9]+: (?=[#0-9 ]))")


@dataclass(frozen=True)
class Foreign:
    """A line that is not part of the format: from the program's environment, garbled, or cut off."""

    line: int  # counted from 1
    text: str


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, from 1, without line ends and without what a launcher put before them."""
    for number, line in enumerate(text.split("\n"), 1):
        yield number, _LABEL.sub("", line.removesuffix("\r"))


def figure(word: str) -> float | None:
    """A number; None for `-`, nan and infinities: nothing was measured."""
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
