"""How much a counter grew between two readings, whatever its width.

Raw totals say nothing: they begin when the driver was loaded or somebody reset them. InfiniBand's classic counters stop
at their largest value (InfiniBand Architecture Specification, PortCounters); those of Slingshot NICs have 56 bits and
start again at 0; those of Linux have 64 and are taken not to.
"""

from __future__ import annotations

from typing import NamedTuple

_WIDTHS = {  # bits, of those that stop at their largest value
    "symbol_error": 16,
    "link_error_recovery": 8,
    "link_downed": 8,
    "port_rcv_errors": 16,
    "port_rcv_remote_physical_errors": 16,
    "port_rcv_switch_relay_errors": 16,
    "port_xmit_discards": 16,
    "port_xmit_constraint_errors": 8,
    "port_rcv_constraint_errors": 8,
    "local_link_integrity_errors": 4,
    "excessive_buffer_overrun_errors": 4,
    "VL15_dropped": 16,
}
_WRAPS_AT = 1 << 56


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
    """Is a counter at the largest value that it can have?"""
    bits = _WIDTHS.get(path.rpartition("/")[2]) if "/infiniband/" in path else None
    value, _ = _value(text)
    return bits is not None and value is not None and value >= (1 << bits) - 1


def delta(path: str, before: str | None, after: str | None, seconds: float) -> Delta | None:
    """The growth of the counter at a path from one reading to the next; None where it cannot be told.

    Slingshot's telemetry (`VALUE@SECONDS`) carries the moments of its readings, which are then used.
    """
    first, begun = _value(before)
    last, ended = _value(after)
    if first is None or last is None:
        return None
    if begun is not None and ended is not None and ended > begun:
        seconds = ended - begun
    if seconds <= 0:
        return None
    if last >= first:
        return Delta(last - first, seconds, saturated(path, after))
    if "/telemetry/" in path and first < _WRAPS_AT and first - last > _WRAPS_AT // 2:
        return Delta(last - first + _WRAPS_AT, seconds)
    return None  # reset in between


def _value(text: str | None) -> tuple[int | None, float | None]:
    number, mark, moment = (text or "").strip().partition("@")
    try:
        return int(number), float(moment) if mark else None
    except ValueError:
        return None, None


def _duration(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.1f} s"
