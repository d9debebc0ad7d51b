"""Values of directed pairs of ranks, as a matrix or as a list of rounds, processed in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fablint.model import Observations
from fablint.model.arrays import Cells, Codes, Values

BLOCK_CELLS = 1 << 22  # cells processed at a time: 16 MiB of float32
TILE = 128  # rows transposed at a time
SAMPLE_CELLS = 1 << 19  # cells of a sample


@dataclass(frozen=True)
class Pairs:
    """Values of pairs: `value[i, c]` belongs to the message from rank i to its partner in column c; NaN: not measured.

    In a matrix (`partner` is None) column c is rank c. Otherwise each column is a round, and a round is a matching.
    """

    value: Values  # (n, m)
    partner: Codes | None = None  # (n, m), -1 where idle
    step: float = 0.0  # resolution of the log times; 0: not visible, or not considered

    @classmethod
    def log_times(cls, observations: Observations) -> Pairs:
        """Return the natural logarithms of the times in seconds, NaN where a time is not above 0."""
        sent = np.asarray(observations.sent)
        value = np.empty(sent.shape, dtype=np.float32)
        with np.errstate(divide="ignore", invalid="ignore"):
            np.log(sent, out=value, casting="same_kind")
        value[np.isinf(value)] = np.nan
        partner = observations.partner
        if partner is None:
            np.fill_diagonal(value, np.nan)
            return cls(value)
        partner = np.asarray(partner, dtype=np.int64)
        value[partner < 0] = np.nan
        return cls(value, partner)

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return int(self.value.shape[0])

    def blocks(self) -> Iterator[slice]:
        """Yield slices of the sending ranks in order, each of about BLOCK_CELLS values, that cover all ranks."""
        step = max(1, BLOCK_CELLS // max(1, self.value.shape[1]))
        for first in range(0, self.ranks, step):
            yield slice(first, min(first + step, self.ranks))

    def sample_cells(self, most: int = SAMPLE_CELLS) -> Cells:
        """Return measured cells, evenly spread over all rows and columns: all of them, or about `most`."""
        stride = max(1, self.value.size // most)
        if stride == 1:
            row, column = np.nonzero(~np.isnan(self.value))
            return row, column
        each = max(1, self.value.shape[1] // stride)
        row = np.repeat(np.arange(self.ranks), each)
        # An odd step and an offset per row: neighbouring ranks are compared with different partners.
        column = (np.arange(each)[None, :] * stride + (np.arange(self.ranks) * 7919)[:, None]).ravel()
        column %= self.value.shape[1]
        measured = ~np.isnan(self.value[row, column])
        return row[measured], column[measured]

    def backward(self, cells: Cells) -> Cells:
        """Return the cells that hold the same pairs measured from their other ends."""
        return self.destination(cells), cells[0] if self.partner is None else cells[1]

    def partners(self, rows: slice | Codes) -> Codes:
        """Return the partners of these rows: (1, n) in a matrix, else (rows, m), with 0 where idle (the value is
        NaN).
        """
        if self.partner is None:
            return np.arange(self.ranks)[None, :]
        return np.maximum(self.partner[rows], 0)

    def sent(self, rows: slice) -> Values:
        """Return the (rows, m) values of the messages from these rows to their partners."""
        return self.value[rows]

    def received(self, rows: slice) -> Values:
        """Return the (rows, m) values of the messages from the partners to these rows."""
        if self.partner is None:
            return self._columns(rows)
        idle = self.partner[rows] < 0
        return np.where(idle, np.float32(np.nan), self.value[self.partners(rows), np.arange(self.value.shape[1])])

    def _columns(self, columns: slice) -> Values:
        """Return a (columns, n) transposed copy, made tile by tile.

        A plain transposition misses the cache at every value.
        """
        transposed = np.empty((columns.stop - columns.start, self.ranks), dtype=np.float32)
        for first in range(0, self.ranks, TILE):
            tile = slice(first, first + TILE)
            transposed[:, tile] = self.value[tile, columns].T
        return transposed

    def cells_from(self, ranks: Codes) -> Cells:
        """Return the cells of the messages that these ranks sent."""
        return _flat(np.asarray(ranks)[:, None], np.arange(self.value.shape[1])[None, :])

    def cells_to(self, ranks: Codes) -> Cells:
        """Return the cells of the messages that these ranks received."""
        if self.partner is None:
            return _flat(np.arange(self.ranks)[:, None], np.asarray(ranks)[None, :])
        senders, columns = _flat(self.partner[ranks], np.arange(self.value.shape[1])[None, :])
        return senders[senders >= 0], columns[senders >= 0]

    def destination(self, cells: Cells) -> Codes:
        """Return the (k,) receiver of each cell's message."""
        return cells[1] if self.partner is None else self.partner[cells]


def unordered(a: Codes, b: Codes, count: int) -> Codes:
    """Return a (k,) number for each unordered pair of the codes `a` and `b`, which are below `count`."""
    return np.minimum(a, b).astype(np.int64) * count + np.maximum(a, b)


def _flat(rows: Codes, columns: Codes) -> Cells:
    rows, columns = np.broadcast_arrays(rows, columns)
    return rows.ravel(), columns.ravel()
