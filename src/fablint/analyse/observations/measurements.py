"""Every time that was taken of the cells of a view: repeats and retests, none replaced by a better one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from fablint.model import Row
from fablint.model.arrays import Cells, Codes, Floats, Values


@dataclass(frozen=True)
class SingleTimes:
    """Single measurements, several of one cell."""

    cell: Codes  # (k,) position of the cell of each
    seconds: Floats  # (k,)
    started: Floats  # (k,) s since the start of the run, NaN where unknown

    def joined(self, other: Self) -> SingleTimes:
        """Return these measurements and others of the same cells."""
        arrays_of_self, others = (vars(one).values() for one in (self, other))
        return SingleTimes(*(np.concatenate(arrays) for arrays in zip(arrays_of_self, others, strict=True)))


@dataclass(frozen=True)
class RepeatedCells:
    """Cells that were measured again by themselves."""

    cells: Cells
    seconds: Floats  # (k,)
    started: Floats  # (k,) s, NaN where unknown


@dataclass(frozen=True)
class TimesTaken:
    """Times of a view before one value per cell was chosen.

    Attributes
    ----------
    seconds
        (r, n, m) s, each repeat of each cell; NaN where it was not measured.
    started
        (r, n, m) s, when each began; None: unknown.
    retests
        Cells that were measured again.
    """

    seconds: Values
    started: Floats | None
    retests: Sequence[RepeatedCells] = ()

    def of(self, cells: Cells) -> SingleTimes:
        """Return all measurements of these (k,) different cells."""
        seconds = self.seconds[:, cells[0], cells[1]].astype(np.float64)
        started = np.full(seconds.shape, np.nan) if self.started is None else self.started[:, cells[0], cells[1]]
        repeat, cell = np.nonzero(~np.isnan(seconds))
        single_times = SingleTimes(cell, seconds[repeat, cell], started[repeat, cell])
        width = self.seconds.shape[2]
        key = cells[0].astype(np.int64) * width + cells[1]
        order = np.argsort(key, kind="stable")
        for again in self.retests:
            wanted = again.cells[0].astype(np.int64) * width + again.cells[1]
            at = np.minimum(np.searchsorted(key[order], wanted), max(key.size - 1, 0))
            is_asked = key[order][at] == wanted if key.size else np.zeros(wanted.size, dtype=bool)
            single_times = single_times.joined(
                SingleTimes(order[at[is_asked]], again.seconds[is_asked], again.started[is_asked])
            )
        return single_times

    def turned(self, partner: Codes | None) -> TimesTaken:
        """Return the same times with each cell at the other end of its pair.

        `partner` has the (n, m) partners of a list of rounds, -1 where idle; None: a matrix.
        """
        if partner is None:
            matrix = [None if values is None else values.swapaxes(1, 2) for values in (self.seconds, self.started)]
            retests = [RepeatedCells(one.cells[::-1], one.seconds, one.started) for one in self.retests]
            return TimesTaken(matrix[0], matrix[1], retests)  # type: ignore[arg-type]
        rows, columns = np.maximum(partner, 0), np.arange(partner.shape[1])
        lists = [None if values is None else values[:, rows, columns] for values in (self.seconds, self.started)]
        retests = [RepeatedCells((partner[one.cells], one.cells[1]), one.seconds, one.started) for one in self.retests]
        return TimesTaken(np.where(partner < 0, np.float32(np.nan), lists[0]), lists[1], retests)  # type: ignore[arg-type]


def repeats_of(row: Row, size: int) -> tuple[Values, Floats | None]:
    """Return the (r, n, m) times of a matrix in s, and when each began in s; None: unknown."""
    values = np.asarray(row.times[:, :, :, row.sizes.index(size)])
    started = np.asarray(row.arrays["started"][:]) if "started" in row.arrays else None
    return values, started if started is None or started.shape == values.shape else None


def allocations_of(rows: Sequence[Row]) -> Codes | None:
    """Return the (m,) allocation that measured each round of the rows; None if they are not of several allocations."""
    if not all("allocation" in row.arrays for row in rows):
        return None
    return np.concatenate([np.asarray(row.arrays["allocation"][:]) for row in rows])
