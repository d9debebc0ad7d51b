"""What all readers of other tools' texts share: numbered lines, numbers, and lines that belong to somebody else."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
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


_ENDLESS = re.compile(r"[0-9]{100,}")


def text_of(data: bytes) -> str:
    """What a file says; bytes that are no UTF-8 stand as the replacement sign, so that their line is still counted.

    So do digits without end: no tool prints them, and Python refuses to read more than some thousands as a number.
    """
    return _ENDLESS.sub("\ufffd", data.decode("utf-8-sig", errors="replace"))


def marked(pattern: bytes) -> re.Pattern[bytes]:
    """Finds a line that begins with `pattern`, whatever a launcher put before it, in the head of a file."""
    label = rb"(?:\[[0-9]+,[0-9]+\]<std(?:out|err)>: ?| *[0-9]+: )?"
    return re.compile(rb"(?m)^" + label + rb"(?:" + pattern + rb")")


def figures(words: Sequence[str]) -> list[float] | None:
    """The numbers of a row of a matrix, nan where nothing was measured; None where a word is no number."""
    found = [math.nan if word in _NOTHING else figure(word) for word in words]
    return None if None in found else [math.nan if one is None else one for one in found]


_NOTHING = ("-", "nan", "-nan", "inf", "-inf")
