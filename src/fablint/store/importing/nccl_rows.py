"""Figures of a line of nccl-tests, and their units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fablint.errors import UsageError

_UNITS = (1.0, 1e3)  # microseconds: of a time, which was in ms until 2018
_ROUNDED = 0.2  # times and bandwidths of a line agree up to their last digits
_LAST_DIGIT = 0.01  # of a bandwidth
_CLOSE = 0.03  # bandwidths have three digits or more


@dataclass(frozen=True)
class NcclFigures:
    """Figures of a size, out of place or in place; None where the program prints none."""

    time_us: float | None = None
    algbw: float | None = None
    busbw: float | None = None
    wrong: float | None = None  # number of wrong values
    is_checked: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class NcclRow:
    """One size. `kind`, which is data type, operation and root, as printed; '' where it is not."""

    line: int
    size: int
    kind: tuple[str, str, str]
    halves: tuple[NcclFigures, NcclFigures]  # out of place, in place

    def agrees(self, half: NcclFigures) -> bool:
        """Return whether size, time and bandwidth agree; those of a line that lacks a figure do not."""
        if half.time_us is None or half.algbw is None:
            return half.time_us is half.algbw
        return abs(self.size * 1e-3 / max(half.time_us, 1e-9) - half.algbw) <= _LAST_DIGIT + _CLOSE * half.algbw


def in_microseconds(rows: Sequence[NcclRow]) -> list[NcclRow]:
    """Return the rows with times in microseconds: size, time and bandwidth of a line show the unit.

    Raises
    ------
    UsageError
        They do not agree in any unit.
    """
    halves = [(row, half) for row in rows for half in row.halves if half.time_us and half.algbw]
    ratios = sorted(row.size * 1e-3 / ((half.time_us or 1) * (half.algbw or 1)) for row, half in halves)
    unit = ratios[len(ratios) // 2] if ratios else 1.0
    fits = [factor for factor in _UNITS if abs(unit / factor - 1) < _ROUNDED]
    if not fits:
        raise UsageError("its times do not agree with its bandwidths in us or ms", "give the output of a later release")
    return [replace(row, halves=(_scaled(row.halves[0], fits[0]), _scaled(row.halves[1], fits[0]))) for row in rows]


def _scaled(half: NcclFigures, unit: float) -> NcclFigures:
    return half if half.time_us is None else replace(half, time_us=half.time_us * unit)
