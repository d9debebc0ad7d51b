"""Growth of counters between two readings, for counters of any width.

Raw totals are not meaningful: they begin when the driver was loaded or the counter was reset. InfiniBand's classic
counters stop at their largest value (InfiniBand Architecture Specification, PortCounters); those of Slingshot NICs have
56 bits and wrap to 0; those of Linux have 64 bits and are assumed not to wrap.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from fablint.snapshot.counter_widths import CXI_BITS, OLD_BITS

_WIDTHS = {**OLD_BITS, "port_xmit_wait": 32}  # bits of counters that stop at their largest value
_WRAPS_AT = 1 << CXI_BITS
_NO_COUNTER = 1 << 64
_AER = "aer_dev_"  # a file with a line for each kind of error, and one with their sum


class Delta(NamedTuple):
    """Growth of a counter within a time."""

    growth: int
    seconds: float
    at_least: bool = False  # the counter is saturated

    @property
    def rate(self) -> float:
        """Growth per second."""
        return self.growth / self.seconds if self.seconds > 0 else 0.0

    def __str__(self) -> str:
        return f"{'at least ' if self.at_least else ''}{self.growth} in {_duration(self.seconds)}"


@lru_cache(maxsize=1 << 12)
def is_same(before: str | None, after: str | None) -> bool:
    """Tell whether two readings of a counter have the same value."""
    return before == after or figure(before) == figure(after)


def figure(text: str | None) -> str:
    """Return the value of a counter without the time of its reading."""
    return text.partition("@")[0] if text else ""


class _CounterKind(NamedTuple):
    """How a counter is written, and what it does at its largest value."""

    is_sum: bool  # of the lines of its file
    largest: int | None  # it stops there
    wraps: bool


@lru_cache(maxsize=1 << 14)  # a fleet has the same paths a thousand times
def _kind(path: str) -> _CounterKind:
    bits = _WIDTHS.get(path.rpartition("/")[2]) if "/infiniband/" in path else None
    return _CounterKind(_AER in path, None if bits is None else (1 << bits) - 1, "/telemetry/" in path)


@lru_cache(maxsize=1 << 12)
def _kinds(folder: str, names: tuple[str, ...]) -> tuple[tuple[str, _CounterKind], ...]:
    return tuple((name, _kind(f"{folder}/{name}")) for name in names)


def saturated(path: str, text: str | None) -> bool:
    """Tell whether a counter has its largest value. A larger value is that of a wider counter of the same name."""
    largest = _kind(path).largest
    return largest is not None and text is not None and _number(figure(text)) == largest


def total(file: str, text: str | None) -> int | None:
    """Return what the counter in a file has counted; None where its text holds no figure."""
    return None if text is None else _counted(_AER in file, text)


@lru_cache(maxsize=1 << 12)  # many counters of a device have the same texts
def _counted(is_sum: bool, text: str) -> int | None:
    return _number(figure(_total(text) if is_sum else text))


def delta(path: str, before: str | None, after: str | None, seconds: float) -> Delta | None:
    """Return the growth of a counter between two readings.

    Parameters
    ----------
    path
        Path of the counter in sysfs.
    before, after
        Its text at the two readings; None: it was not there.
    seconds
        Time between the readings. Slingshot's telemetry (`VALUE@SECONDS`) contains the times of its readings, which
        replace it.

    Returns
    -------
    Delta or None
        None if the growth is unknown: a reading is missing, or the telemetry has no new one.
    """
    if before is None or after is None:
        return None
    if before == after == "0" and seconds > 0:  # most of the counters of a fleet
        return _none(seconds)
    return _delta(_kind(path), before, after, seconds)


def deltas(
    folder: str, names: tuple[str, ...], before: Mapping[str, object], after: Mapping[str, object], seconds: float
) -> dict[str, Delta]:
    """Return the growth of the counters of a folder between two readings.

    Parameters
    ----------
    folder
        Folder of the counters in sysfs.
    names
        Their names.
    before, after
        Texts of files by path, at the two readings.
    seconds
        Time between the readings.

    Returns
    -------
    dict
        Growths by name; unknown ones are left out.
    """
    result = {}
    none = _none(seconds) if seconds > 0 else None
    for name, kind in _kinds(folder, names):
        begun, ended = before.get(name), after.get(name)
        if isinstance(begun, str) and isinstance(ended, str):
            grown = none if none and begun == ended == "0" else _delta(kind, begun, ended, seconds)
            if grown is not None:
                result[name] = grown
    return result


@lru_cache(maxsize=1 << 12)  # many counters of a device have the same texts
def _delta(kind: _CounterKind, before: str, after: str, seconds: float) -> Delta | None:
    if kind.is_sum:
        before, after = _total(before), _total(after)
    begun_at, begun_mark, begun = before.partition("@")
    ended_at, ended_mark, ended = after.partition("@")
    first = _number(begun_at)
    last = first if ended_at == begun_at else _number(ended_at)
    if first is None or last is None:
        return None
    if begun_mark and ended_mark:
        try:
            seconds = float(ended) - float(begun)
        except ValueError:
            return None
    if not seconds > 0:
        return None
    if last >= first:
        return Delta(last - first, seconds, last == kind.largest)
    if kind.wraps and first < _WRAPS_AT and first - last > _WRAPS_AT // 2:
        return Delta(last - first + _WRAPS_AT, seconds)
    return None  # reset in between


@lru_cache(maxsize=1 << 10)
def _none(seconds: float) -> Delta:
    return Delta(0, seconds)


def _number(text: str) -> int | None:
    """Parse the value of a counter of at most 64 bits; None for other texts."""
    try:
        value = int(text)
    except ValueError:
        return None
    return value if 0 <= value < _NO_COUNTER else None


@lru_cache(maxsize=1 << 12)
def _total(text: str) -> str:
    """Return the sum in a file such as `aer_dev_correctable`: `TOTAL_ERR_COR 514`."""
    return next((line.split()[-1] for line in text.splitlines() if line.startswith("TOTAL_")), "")


def _duration(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.1f} s"
