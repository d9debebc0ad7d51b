"""Arrays of a row while its cells are measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from fablint.model.arrays import Codes, Values
from fablint.simulate.messages.costs import Measurements
from fablint.simulate.messages.times import MESSAGES, buckets_of, histogram, statistic
from fablint.simulate.simulated_rows import SimulatedRow


class Store:
    """Arrays of a row while they are filled."""

    def __init__(self, row: SimulatedRow, partner: Codes, *, full: bool, slowest: float) -> None:
        n, rounds = partner.shape
        self._row, self._full = row, full
        shape = (1, n, n) if full else (n, rounds)
        sized = (*shape, len(row.sizes))
        self._arrays: dict[str, Any] = {
            f"time_{name}": np.full(sized, np.nan, dtype=np.float32) for name in row.statistics
        }
        self._arrays["count"] = np.zeros(sized, dtype=np.uint32)
        self._arrays["started"] = np.full(shape, np.nan)
        self._arrays["size"] = np.array(row.sizes, dtype=np.int64)
        if full:
            self._arrays["round"] = np.full(shape, -1, dtype=np.int32)
        else:
            self._arrays["dst"] = partner
        if row.histogram:
            self._arrays["bucket"] = buckets_of(row.kernel, row.sizes, slowest)
            self._arrays["histogram"] = np.zeros((*sized, self._arrays["bucket"].size), dtype=np.uint32)

    def _at(self, cells: Measurements) -> tuple[Any, ...]:
        return (0, cells.src, cells.dst) if self._full else (cells.src, cells.round)

    def put(self, name: str, cells: Measurements, values: np.ndarray, *size: int) -> None:
        """Write the (k,) values of k measurements to the array `name`.

        `size` is the index of the message size, of an array with that dimension.
        """
        at = self._at(cells)
        self._arrays[name][(*at, *size)] = values
        if name == "started":
            self._arrays["count"][at] = MESSAGES
            if self._full:
                self._arrays["round"][at] = cells.round

    def put_messages(self, cells: Measurements, messages: Values, size: int) -> None:
        """Store the statistics and the histogram of the cells' samples."""
        for name in self._row.statistics:
            self.put(f"time_{name}", cells, statistic(name, messages), size)
        if self._row.histogram:
            self.put("histogram", cells, histogram(messages, self._arrays["bucket"]), size)

    def finished(self) -> dict[str, Any]:
        """Return the arrays of the row by name."""
        return self._arrays
