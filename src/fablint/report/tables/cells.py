"""The measured cells of a row at one size, flat, a bounded number of them at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fablint.errors import UsageError
from fablint.model import Row

BLOCK_CELLS = 4_000_000


@dataclass(frozen=True)
class Cells:
    """Measured cells, arrays of (k,): ranks, rounds, numbers of samples, and their statistics in seconds."""

    src: np.ndarray
    dst: np.ndarray  # -1: a collective, which has no partner
    round: np.ndarray
    count: np.ndarray
    times: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.src)

    def where(self, kept: np.ndarray) -> Cells:
        """Return those that a mask or a list of places keeps."""
        times = {name: values[kept] for name, values in self.times.items()}
        return Cells(self.src[kept], self.dst[kept], self.round[kept], self.count[kept], times)

    def by_pair(self, ranks: int) -> Cells:
        """One cell per ordered pair, in the order of src and dst: what several repeats measured taken together.

        Means are weighted with the samples; of minima the smallest, of all else the largest stands for the pair.
        """
        keys, first, place = np.unique(
            self.src.astype(np.int64) * (ranks + 1) + self.dst, return_index=True, return_inverse=True
        )
        if len(keys) == len(self):
            return self.where(first)
        count = np.bincount(place, self.count)
        times = {}
        for name, values in self.times.items():
            if name == "mean":
                times[name] = np.bincount(place, values * self.count) / count
            else:
                merge, start = (np.minimum, np.inf) if name == "min" else (np.maximum, -np.inf)
                times[name] = np.full(len(keys), start)
                merge.at(times[name], place, values)
        return Cells(self.src[first], self.dst[first], self.round[first], count, times)


def central(row: Row) -> str:
    """The statistic that stands for a cell: the mean, else what the row has. Raises UsageError where it has none."""
    name = "mean" if "mean" in row.statistics else row.statistic
    if not name:
        raise UsageError(f"row {row.name} has no times", "measure it again")
    return name


def blocks(row: Row, index: int, statistics: Sequence[str]) -> Iterator[Cells]:
    """The measured cells of size number `index`, some source ranks at a time; all cells of a rank together."""
    counts = row.arrays["count"]
    repeats, ranks, across = (1, *counts.shape[:2]) if row.layout == "list" else counts.shape[:3]
    step = max(1, BLOCK_CELLS // max(1, repeats * across))
    for start in range(0, ranks, step):
        sources = slice(start, min(start + step, ranks))
        part = (sources,) if row.layout == "list" else (slice(None), sources)
        count = np.asarray(counts[(*part, slice(None), index)])
        at = np.nonzero(count)
        if row.layout == "list":
            dst, number = np.asarray(row.arrays["dst"][sources])[at], at[1]
        else:
            dst, number = at[2], np.asarray(row.arrays["round"][part])[at]
        times = {
            name: np.asarray(row.arrays[f"time_{name}"][(*part, slice(None), index)], dtype=np.float64)[at]
            for name in statistics
        }
        yield Cells(at[-2] + start, dst, number, count[at].astype(np.float64), times)


def cells(row: Row, index: int, statistics: Sequence[str]) -> Cells:
    """All of them at once."""
    return joined(list(blocks(row, index, statistics)))


def joined(parts: Sequence[Cells]) -> Cells:
    """Several as one."""
    times = {name: np.concatenate([part.times[name] for part in parts]) for name in parts[0].times}
    whole = (np.concatenate([getattr(part, name) for part in parts]) for name in ("src", "dst", "round", "count"))
    src, dst, number, count = whole
    return Cells(src, dst, number, count, times)


def ranks(row: Row) -> int:
    """Number of ranks of a row."""
    return int(row.arrays["count"].shape[0 if row.layout == "list" else 1])
