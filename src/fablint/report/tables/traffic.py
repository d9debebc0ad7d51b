"""What a cell moved, and how often: the words of the protocol in numbers."""

from __future__ import annotations

import numpy as np

from fablint.model import Row, Run
from fablint.model.registry import KERNELS, PATTERNS
from fablint.report.tables.cells import blocks

COLLECTIVES = frozenset(name for name, kernel in KERNELS.items() if kernel.is_collective)
STARS = frozenset(name for name, pattern in PATTERNS.items() if pattern.shape in ("stars", "servers"))
# Patterns of pairs in all rounds: of `victim-aggressor` the pairs are measured on their own and beside traffic.
PAIRS = frozenset(name for name, pattern in PATTERNS.items() if pattern.shape == "pairs") - {"victim-aggressor"}


def window(row: Row, index: int) -> int:
    """Messages in flight at size number `index`."""
    windows = row.facts.sampling.windows
    return windows[index] if index < len(windows) else 1


def repetitions(row: Row, index: int) -> tuple[int, bool]:
    """Timed repetitions behind every cell, and whether that is exact.

    Exact where the row was asked for so many; else the samples of the cell that has fewest, each of which is one
    repetition or a batch of several.
    """
    asked = row.facts.sampling.stop.iterations or ()
    if index < len(asked) and asked[index]:
        return asked[index], True
    counts = [float(part.count.min()) for part in blocks(row, index, ()) if len(part)]
    return (int(min(counts)) if counts else 0), False


def messages(row: Row, index: int) -> tuple[int, bool]:
    """Timed messages of every cell, and whether that is exact."""
    count, exact = repetitions(row, index)
    return count * window(row, index), exact


def warmups(row: Row, index: int) -> int:
    """Untimed messages before a cell."""
    each = row.facts.sampling.warmups
    count = each[index] if index < len(each) else row.facts.sampling.warmup
    return count * window(row, index)


def rates(size: int, seconds: np.ndarray | float) -> np.ndarray:
    """Bytes/s; infinite where no time passed (the null transport)."""
    with np.errstate(divide="ignore"):
        return np.asarray(size / np.asarray(seconds, dtype=np.float64))


def collective_ranks(run: Run, row: Row) -> int:
    """Return the number of ranks that take part in a collective of a row."""
    return row.facts.schedule.collective_ranks or run.ranks


def collective_bytes(kernel: str, size: int, ranks: int) -> int:
    """Size of a collective as nccl-tests counts it: the larger one of the buffers that a rank sends and receives."""
    return size * ranks if kernel in KERNELS and KERNELS[kernel].is_of_parts else size


def collective_rates(kernel: str, size: int, ranks: int, seconds: float) -> tuple[float, float]:
    """Algorithm bandwidth and bus bandwidth of a collective as nccl-tests defines them, bytes/s.

    The algorithm bandwidth is the size over the time. The bus bandwidth is that times the share of it that must cross
    a rank's link, which makes it comparable with the speed of the link: 2 (n - 1) / n for allreduce, 1 for bcast, else
    (n - 1) / n.
    """
    algorithm = float(rates(collective_bytes(kernel, size, ranks), seconds))
    share = KERNELS[kernel].bus_share(ranks) if kernel in KERNELS else (ranks - 1) / ranks
    return algorithm, algorithm * share


def flow_words(row: Row) -> str:
    """Direction of the payload, in words."""
    return {
        "src": "payload goes from src to dst",
        "dst": "payload goes from dst to src",
        "none": "no payload",
    }.get(row.payload, "payload goes both ways")
