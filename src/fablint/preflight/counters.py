"""How much a counter grew between two readings, whatever its width.

Raw totals say nothing: they begin when the driver was loaded or somebody reset them. InfiniBand's classic counters stop
at their largest value (InfiniBand Architecture Specification, PortCounters); those of Slingshot NICs have 56 bits and
start again at 0; those of Linux have 64 and are taken not to.
"""

from __future__ import annotations

from typing import NamedTuple

from fablint.widths import CXI_BITS, OLD_BITS

_WIDTHS = {**OLD_BITS, "port_xmit_wait": 32}  # bits, of those that stop at their largest value
_WRAPS_AT = 1 << CXI_BITS
_NO_COUNTER = 1 << 64
_AER = "/aer_dev_"  # a file with a line for each kind of error, and one with their sum


class Delta(NamedTuple):
    """What was counted within a time."""

    growth: int
    seconds: float
    at_least: bool = False  # the counter is full: it may be more

    @property
    def rate(self) -> float:
        """Per second."""
        return self.growth / self.seconds if self.seconds > 0 else 0.0

    def __str__(self) -> str:
        return f"{'at least ' if self.at_least else ''}{self.growth} in {_duration(self.seconds)}"


def saturated(path: str, text: str | None) -> bool:
    """Is a counter at the largest value that it can have? What is beyond that is a wider counter of the same name."""
    bits = _WIDTHS.get(path.rpartition("/")[2]) if "/infiniband/" in path else None
    value, _ = _value(path, text)
    return bits is not None and value == (1 << bits) - 1


def total(path: str, text: str | None) -> int | None:
    """What the counter at a path has counted; None where its text holds no figure."""
    return _value(path, text)[0]


def delta(path: str, before: str | None, after: str | None, seconds: float) -> Delta | None:
    """The growth of the counter at a path from one reading to the next; None where it cannot be told.

    Slingshot's telemetry (`VALUE@SECONDS`) carries the moments of its readings, which are then used; a value that was
    not read anew tells nothing.
    """
    first, begun = _value(path, before)
    last, ended = _value(path, after) if after != before else (first, begun)
    if first is None or last is None:
        return None
    if begun is not None and ended is not None:
        seconds = ended - begun
    if seconds <= 0:
        return None
    if last >= first:
        return Delta(last - first, seconds, saturated(path, after))
    if "/telemetry/" in path and first < _WRAPS_AT and first - last > _WRAPS_AT // 2:
        return Delta(last - first + _WRAPS_AT, seconds)
    return None  # reset in between


def _value(path: str, text: str | None) -> tuple[int | None, float | None]:
    """The figure in a counter's file, and when it was read if that is said."""
    figure = _total(text or "") if _AER in path else (text or "").strip()
    number, mark, moment = figure.partition("@")
    try:
        value, read = int(number), float(moment) if mark else None
    except ValueError:
        return None, None
    return (value, read) if 0 <= value < _NO_COUNTER else (None, None)


def _total(text: str) -> str:
    """The sum of `aer_dev_correctable` and its like: `TOTAL_ERR_COR 514`."""
    return next((line.split()[-1] for line in text.splitlines() if line.startswith("TOTAL_")), "")


def _duration(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.1f} s"
