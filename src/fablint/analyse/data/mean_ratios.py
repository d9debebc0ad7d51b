"""Mean by median of the messages of each measured pair: large where some messages are much later than the others.

Cells of lists of rounds and of full matrices are counted, selected and removed in the same way. A matrix is read in
blocks of rows and kept as float16, 2 bytes per cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.places import Codes, Places
from fablint.model import Row

LATE = 3.0  # times the usual ratio of the row, beyond which some messages of a cell are late
BLOCK_CELLS = 1 << 22  # cells of a matrix that are read at a time
SAMPLE_CELLS = 1 << 20  # cells from which the usual ratio of a matrix is known
MOST_CELLS = 1 << 29  # of a matrix: 1 GiB; of larger ones the first repeats are read
LARGEST = 6e4  # that a float16 holds

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """Measured pairs of ranks, one entry for each time they were measured."""

    src: Codes
    dst: Codes
    ratio: npt.NDArray[np.float32]  # mean by median, 1: as usual in the row

    @property
    def late(self) -> npt.NDArray[np.bool_]:
        """(k,) of which cells some messages are late."""
        return self.ratio > LATE

    def only(self, mask: npt.NDArray[np.bool_]) -> Cells:
        """The cells of a mask."""
        return Cells(self.src[mask], self.dst[mask], self.ratio[mask])


class Ratios(Protocol):
    """Cells of one row, without those within hosts."""

    def per_rank(self) -> tuple[Counts, Counts]:
        """(n,) cells in which each rank is an end: measured, and late."""

    def between(self, code: Codes, count: int) -> tuple[Counts, Counts]:
        """(count, count) cells from ranks of one code to ranks of another: measured, and late. Codes below 0: none."""

    def of_ranks(self, ranks: Codes) -> Cells:
        """Cells in which one of these ranks is an end."""

    def of_block(self, src: Codes, dst: Codes) -> Cells:
        """Cells from one of these ranks to one of those."""

    def remove(self, ranks: Codes) -> None:
        """Remove the cells of these ranks."""


def ratios_of(row: Row, places: Places) -> Ratios | None:
    """The ratios of the smallest size of a row; None where means and medians were not both stored, or nothing was."""
    if not {"mean", "median"} <= set(row.statistics):
        return None
    return _list_ratios(row, places) if row.layout == "list" else _matrix_ratios(row, places)


# ------------------------------------------------------------------------------------------------ lists of rounds


@dataclass
class ListRatios:
    """Cells of a list of rounds, one after the other."""

    cells: Cells
    ranks: int

    def per_rank(self) -> tuple[Counts, Counts]:
        """See Ratios."""
        ends = np.concatenate([self.cells.src, self.cells.dst])
        late = np.tile(self.cells.late, 2)
        return np.bincount(ends, minlength=self.ranks), np.bincount(ends[late], minlength=self.ranks)

    def between(self, code: Codes, count: int) -> tuple[Counts, Counts]:
        """See Ratios."""
        a, b = code[self.cells.src], code[self.cells.dst]
        known = (a >= 0) & (b >= 0)
        key, late = a[known].astype(np.int64) * count + b[known], self.cells.late[known]
        measured, found = (np.bincount(one, minlength=count * count) for one in (key, key[late]))
        return measured.reshape(count, count), found.reshape(count, count)

    def of_ranks(self, ranks: Codes) -> Cells:
        """See Ratios."""
        return self.cells.only(self._touching(ranks))

    def of_block(self, src: Codes, dst: Codes) -> Cells:
        """See Ratios."""
        return self.cells.only(np.isin(self.cells.src, src) & np.isin(self.cells.dst, dst))

    def remove(self, ranks: Codes) -> None:
        """See Ratios."""
        self.cells = self.cells.only(~self._touching(ranks))

    def _touching(self, ranks: Codes) -> npt.NDArray[np.bool_]:
        return np.isin(self.cells.src, ranks) | np.isin(self.cells.dst, ranks)


def _list_ratios(row: Row, places: Places) -> ListRatios | None:
    size = min(row.sizes)
    mean, median = (np.asarray(row.observations(size, name).sent, np.float32) for name in ("mean", "median"))
    partner = np.asarray(row.arrays["dst"][:])
    src, column = np.nonzero((partner >= 0) & (mean > 0) & (median > 0))
    dst = partner[src, column].astype(np.int64)
    ratio = mean[src, column] / median[src, column]
    if not ratio.size:
        return None
    cells = Cells(src, dst, (ratio / np.median(ratio)).astype(np.float32))
    return ListRatios(cells.only(places.host[src] != places.host[dst]), partner.shape[0])


# ------------------------------------------------------------------------------------------------ full matrices


@dataclass
class MatrixRatios:
    """Every ordered pair of a block of ranks, in each repeat."""

    ratio: npt.NDArray[np.float16]  # (repeat, src, dst), NaN: not measured, or removed
    usual: float  # of all cells

    def per_rank(self) -> tuple[Counts, Counts]:
        """See Ratios."""
        ranks = self.ratio.shape[1]
        measured, late = np.zeros(ranks, np.int64), np.zeros(ranks, np.int64)
        for repeat, rows in self._blocks():
            block = self.ratio[repeat, rows]
            for total, mask in ((measured, ~np.isnan(block)), (late, block > np.float16(LATE * self.usual))):
                total[rows] += np.count_nonzero(mask, axis=1)
                total += np.count_nonzero(mask, axis=0)
        return measured, late

    def between(self, code: Codes, count: int) -> tuple[Counts, Counts]:
        """See Ratios."""
        measured, late = np.zeros((count, count), np.int64), np.zeros((count, count), np.int64)
        to = code >= 0
        for one in np.unique(code[to]):
            block = self.ratio[:, code == one]
            for total, mask in ((measured, ~np.isnan(block)), (late, block > np.float16(LATE * self.usual))):
                total[one] = np.bincount(code[to], weights=np.count_nonzero(mask, axis=(0, 1))[to], minlength=count)
        return measured, late

    def of_ranks(self, ranks: Codes) -> Cells:
        """See Ratios."""
        every = np.arange(self.ratio.shape[1])
        return joined([self.of_block(ranks, every), self.of_block(np.setdiff1d(every, ranks), ranks)])

    def of_block(self, src: Codes, dst: Codes) -> Cells:
        """See Ratios."""
        block = self.ratio[:, src[:, None], dst[None, :]]
        known = ~np.isnan(block)
        _, a, b = np.nonzero(known)
        return Cells(src[a], dst[b], block[known].astype(np.float32) / np.float32(self.usual))

    def remove(self, ranks: Codes) -> None:
        """See Ratios."""
        self.ratio[:, ranks] = np.nan
        self.ratio[:, :, ranks] = np.nan

    def _blocks(self) -> Iterator[tuple[int, slice]]:
        repeats, ranks = self.ratio.shape[:2]
        return ((repeat, rows) for repeat in range(repeats) for rows in _rows(ranks))


def _matrix_ratios(row: Row, places: Places) -> MatrixRatios | None:
    means, medians = row.arrays["time_mean"], row.arrays["time_median"]
    index, ranks = row.sizes.index(min(row.sizes)), means.shape[1]
    repeats = min(means.shape[0], max(1, MOST_CELLS // ranks**2))
    ratio = np.empty((repeats, ranks, ranks), dtype=np.float16)
    for repeat in range(repeats):
        for rows in _rows(ranks):
            mean, median = (np.array(one[repeat, rows, :, index], np.float32) for one in (means, medians))
            within = places.host[rows, None] == places.host[None, :]
            mean[within | ~((mean > 0) & (median > 0))] = np.nan
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio[repeat, rows] = np.minimum(mean / median, LARGEST)
    flat = ratio.reshape(-1)
    sample = flat[:: max(1, flat.size // SAMPLE_CELLS) | 1]  # an odd step, so that every column is in the sample
    sample = sample[~np.isnan(sample)]
    return MatrixRatios(ratio, float(np.median(sample.astype(np.float32)))) if sample.size else None


def _rows(ranks: int) -> Iterator[slice]:
    step = max(1, BLOCK_CELLS // ranks)
    return (slice(first, min(first + step, ranks)) for first in range(0, ranks, step))


# ------------------------------------------------------------------------------------------------ several rows


@dataclass
class JoinedRatios:
    """The cells of several rows together."""

    rows: list[Ratios]

    def per_rank(self) -> tuple[Counts, Counts]:
        """See Ratios."""
        return _sums([row.per_rank() for row in self.rows])

    def between(self, code: Codes, count: int) -> tuple[Counts, Counts]:
        """See Ratios."""
        return _sums([row.between(code, count) for row in self.rows])

    def of_ranks(self, ranks: Codes) -> Cells:
        """See Ratios."""
        return joined([row.of_ranks(ranks) for row in self.rows])

    def of_block(self, src: Codes, dst: Codes) -> Cells:
        """See Ratios."""
        return joined([row.of_block(src, dst) for row in self.rows])

    def remove(self, ranks: Codes) -> None:
        """See Ratios."""
        for row in self.rows:
            row.remove(ranks)


def _sums(pairs: list[tuple[Counts, Counts]]) -> tuple[Counts, Counts]:
    measured, late = (np.sum(one, axis=0) for one in zip(*pairs, strict=True))
    return measured, late


def joined(parts: Sequence[Cells]) -> Cells:
    """The cells of several selections together."""
    columns = zip(*((one.src, one.dst, one.ratio) for one in parts), strict=True)
    src, dst, ratio = (np.concatenate(column) for column in columns)
    return Cells(src, dst, ratio)
