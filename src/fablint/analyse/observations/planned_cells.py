"""Cells that a row planned and did not measure, in blocks of senders.

A cell is a directed pair of ranks in one repeat or round. It is measured when the time of each size is known. The plan
follows from the pattern of a matrix and from the partners of a list: both ends of a pair know it, so that the cell of
one end shows that the other end had one. Of imported rows, several cells of a pair are one: a pair is measured when one
of them is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fablint.analyse.observations.pair_matrix import BLOCK_CELLS
from fablint.analyse.observations.samples import MATCHINGS
from fablint.model import Row
from fablint.model.arrays import Cells, Codes, Mask


@dataclass(frozen=True)
class PlannedBlock:
    """Cells of some senders, in one repeat."""

    first: int  # the first sender
    partner: Codes  # (1, m) or (b, m) partners
    planned: Mask  # (b, m)
    measured: Mask  # (b, m)

    @property
    def missing(self) -> Cells:
        """Senders and receivers of the cells that were not measured, (k,) each."""
        return self.ends(self.planned & ~self.measured)

    def ends(self, cells: Mask) -> Cells:
        """Senders and receivers of cells, (k,) each."""
        sender, column = np.nonzero(cells)
        return sender + self.first, np.broadcast_to(self.partner, cells.shape)[sender, column]


@dataclass(frozen=True)
class PlannedCells:
    """Plan of one row.

    A row that is not `finished` shows of its plan only the pairs whose opposite direction was measured. `host` (n,) is
    that of each rank.
    """

    row: Row
    host: Codes
    finished: bool
    imported: bool

    @property
    def count(self) -> int:
        """Number of planned cells, whether their pairs are known or not."""
        cells = sum(self.row.facts.schedule.planned_cells)
        return cells // max(1, self.row.facts.schedule.repeats) if self.imported else cells

    @property
    def whole(self) -> str:
        """Pairs of a row that planned a block of all pairs: `all`, `halves`, `between hosts`; else empty."""
        if self.imported:
            return self.row.facts.schedule.planned_pairs
        return {"all-pairs": "all", "bisection": "halves"}.get(self.row.pattern, "")

    def blocks(self) -> Iterator[PlannedBlock]:
        """Yield the cells whose pairs are known, in order."""
        ranks, width = self._shape
        step = max(1, BLOCK_CELLS // max(1, width * len(self.row.sizes)))
        if self.row.layout == "matrix":
            yield from self._matrix(step, ranks)
        elif self.imported and self.whole:
            partner = np.asarray(self.row.arrays["dst"][:])
            for senders in _slices(ranks, min(step, max(1, BLOCK_CELLS // ranks))):
                measured = np.zeros((senders.stop - senders.start, ranks), dtype=bool)
                line, column = np.nonzero(self._measured(senders))
                measured[line, partner[senders][line, column]] = True
                yield self._block(senders, measured)
        else:
            yield from self._list(step, ranks)

    @property
    def _shape(self) -> tuple[int, int]:
        """Number of senders, and of the cells of each."""
        shape = self.row.times.shape
        ranks, width = shape[1:3] if self.row.layout == "matrix" else shape[:2]
        return int(ranks), int(width)

    def _measured(self, *where: int | slice) -> Mask:
        """Return which of the selected cells have a time of each size."""
        return np.asarray(~np.isnan(self.row.times[where]).any(axis=-1))

    def _matrix(self, step: int, ranks: int) -> Iterator[PlannedBlock]:
        repeats = range(self.row.times.shape[0])
        for repeat in repeats[:1] if self.imported else repeats:
            opposite = None if self.finished else np.asarray(self.row.times[repeat, :, :, 0])
            for senders in _slices(ranks, step):
                measured = self._measured(repeat, senders)
                for other in repeats[1:] if self.imported else ():
                    measured |= self._measured(other, senders)
                block = self._block(senders, measured)
                if opposite is not None:
                    block.planned[:] &= block.measured | ~np.isnan(opposite[:, senders].T)
                yield block

    def _block(self, senders: slice, measured: Mask) -> PlannedBlock:
        """Return the cells of some senders to all ranks; none is planned that the row's plan does not state."""
        ranks = measured.shape[1]
        sender, receiver = np.arange(senders.start, senders.stop)[:, None], np.arange(ranks)[None, :]
        if self.whole == "halves":
            planned = (sender < ranks // 2) != (receiver < ranks // 2)
        elif self.whole == "between hosts":
            planned = self.host[senders][:, None] != self.host[None, :]
        elif self.whole:
            planned = sender != receiver
        else:
            planned = measured.copy()
        if self.row.directions == "single" and self.whole:
            planned &= sender < receiver
        return PlannedBlock(senders.start, receiver, planned, measured & planned)

    def _list(self, step: int, ranks: int) -> Iterator[PlannedBlock]:
        partner = np.asarray(self.row.arrays["dst"][:], dtype=np.int64)
        if self.row.pattern in MATCHINGS and self.row.directions == "both":
            end, column = np.nonzero(partner >= 0)
            other = partner[end, column]
            unknown = partner[other, column] < 0
            partner[other[unknown], column[unknown]] = end[unknown]
        for senders in _slices(ranks, step):
            planned = partner[senders] >= 0
            measured = self._measured(senders) & planned
            yield PlannedBlock(senders.start, np.maximum(partner[senders], 0), planned, measured)


def _slices(ranks: int, step: int) -> Iterator[slice]:
    for first in range(0, ranks, step):
        yield slice(first, min(first + step, ranks))
