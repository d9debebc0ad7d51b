"""What every importer hands over, whatever the format: ranks, cells in columns, and the lines that it left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fablint.errors import UsageError
from fablint.store.importing.lines import Foreign

EVERYBODY = -1  # the partner in a collective, and of a figure that is one for all pairs together

SHORTEST, LONGEST = 1e-15, 1e9  # s; what is beyond was misprinted

Order = Literal["parallel", "serial", "unknown"]  # of an all-pairs row: do the pairs of a round run at once?
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, order=True)
class RankName:
    """A rank as a file names it; `number` tells several ranks of a host apart."""

    host: str
    number: str = ""


@dataclass(frozen=True)
class LeftOut:
    """A line that says nothing that fablint could use, and why."""

    line: int  # counted from 1; 0: the file as a whole
    text: str
    why: str = "not part of the output"


@dataclass(frozen=True)
class Kernel:
    """What was measured, in the words of docs/reference/run-format.md."""

    name: str
    quantity: Literal["latency", "bandwidth"]
    payload: Literal["src", "dst", "both", "none"]


LATENCY = Kernel("latency", "latency", "both")
BANDWIDTH = Kernel("bandwidth", "bandwidth", "src")
BIBANDWIDTH = Kernel("bibandwidth", "bandwidth", "both")
EXCHANGE = Kernel("exchange", "latency", "both")


@dataclass(frozen=True)
class Cells:
    """Columns of equal length, an entry for each cell: seconds per message from `src` to `dst`.

    A cell whose seconds are all NaN stands for a pair that was to be measured and has no figure.
    """

    src: Ints
    dst: Ints  # EVERYBODY where the figure belongs to no pair
    size: Ints
    round: Ints  # counted from 0; all 0 where the order is not known
    count: Ints  # samples behind the figure; 1 where the program does not say, 0 where there is no figure
    seconds: Mapping[str, Floats]  # by statistic: min, median, mean, p99, max
    started: Floats | None = None  # s since the start of the run, NaN where a cell has none; None: not known

    @property
    def measured(self) -> npt.NDArray[np.bool_]:
        """(K,) has the cell a figure?"""
        return np.asarray(np.logical_or.reduce([np.isfinite(one) for one in self.seconds.values()]), np.bool_)

    def chosen(self, mask: npt.NDArray[np.bool_]) -> Cells:
        """Some of them."""
        seconds = {name: one[mask] for name, one in self.seconds.items()}
        started = None if self.started is None else self.started[mask]
        src, dst, size, number, count = (one[mask] for one in (self.src, self.dst, self.size, self.round, self.count))
        return Cells(src, dst, size, number, count, seconds, started)

    def __len__(self) -> int:
        return int(self.src.size)


@dataclass(frozen=True)
class Body:
    """All cells that one program measured in one way: they become one row of a run."""

    name: str
    kernel: Kernel
    cells: Cells
    planned: Sequence[int]  # cells of each round
    order: Order = "unknown"  # `parallel` only where the rounds of the cells are known: contention is not invented
    pattern: str = "all-pairs"
    facts: Mapping[str, Any] = field(default_factory=dict)  # more attributes of the row

    @property
    def alike(self) -> tuple[Any, ...]:
        """Bodies that agree in this are one row."""
        return self.name, self.kernel, self.order, self.pattern, repr(sorted(self.facts.items()))


@dataclass(frozen=True)
class Imported:
    """One file."""

    tool: str  # with its version where the file says: `mpigraph 1.5`
    rank_names: tuple[RankName, ...]
    bodies: tuple[Body, ...]
    left_out: tuple[LeftOut, ...] = ()
    pairless: int = 0  # lines left out that were to measure a pair and do not say which
    missing: str = ""  # why the file is not whole; empty where it is
    launch: Literal["pair", "all"] = "all"  # `pair`: the program was started anew for every pair
    allocation: tuple[str, ...] = ()  # hosts in the order in which they appear, where they are those of one job


def measurable(seconds: float) -> bool:
    """Can a message take so long, and can a cell hold it? Cells are float32."""
    return SHORTEST <= seconds <= LONGEST


def left_out(foreign: Iterable[Foreign], why: str = LeftOut.why) -> tuple[LeftOut, ...]:
    return tuple(LeftOut(one.line, one.text, why) for one in foreign)


def cells_of(
    entries: Sequence[tuple[int, int, int, float]], rounds: Sequence[int] | None = None, count: int | Sequence[int] = 1
) -> Cells:
    """Cells of means, from (src, dst, size, seconds)."""
    columns = np.array([one[:3] for one in entries], np.int64).reshape(-1, 3)
    seconds = np.array([one[3] for one in entries], np.float64)
    number = np.zeros(len(entries), np.int64) if rounds is None else np.array(rounds, np.int64)
    counts = np.broadcast_to(np.array(count, np.int64), (len(entries),))
    return Cells(columns[:, 0], columns[:, 1], columns[:, 2], number, counts, {"mean": seconds})


def matrix_cells(seconds: Floats, size: int, rounds: Ints | None = None, count: Ints | int = 1) -> Cells:
    """Cells of a full matrix of means, (n, n); what is not measurable or on the diagonal is missing."""
    n = seconds.shape[0]
    with np.errstate(invalid="ignore"):
        known = (seconds >= SHORTEST) & (seconds <= LONGEST)
    np.fill_diagonal(known, False)
    src, dst = np.nonzero(known)
    number = np.zeros((n, n), np.int64) if rounds is None else rounds
    counts = np.broadcast_to(np.array(count, np.int64), (n, n))
    sizes = np.full(src.size, size, np.int64)
    return Cells(src, dst, sizes, number[known], counts[known], {"mean": seconds[known]})


def with_unmeasured(cells: Cells, pairs: Iterable[tuple[int, int]]) -> Cells:
    """The same, and a cell without a figure for each of `pairs` that has none; nothing where no pair has any."""
    lacking = sorted(set(pairs) - set(zip(cells.src.tolist(), cells.dst.tolist(), strict=True))) if len(cells) else []
    if not lacking:
        return cells
    ends, zeros = np.array(lacking, np.int64), np.zeros(len(lacking), np.int64)
    more = (ends[:, 0], ends[:, 1], zeros + cells.size[0], zeros, zeros)
    columns = (cells.src, cells.dst, cells.size, cells.round, cells.count)
    src, dst, size, number, count = (np.concatenate(both) for both in zip(columns, more, strict=True))
    seconds = {name: np.append(one, np.full(zeros.size, np.nan)) for name, one in cells.seconds.items()}
    started = None if cells.started is None else np.append(cells.started, np.full(zeros.size, np.nan))
    return Cells(src, dst, size, number, count, seconds, started)


def needed(cells: Cells) -> Cells:
    """Cells without a figure only of pairs that have none in any file, one each."""
    measured = cells.measured
    if measured.all():
        return cells
    pairs = np.unique(np.stack([cells.src, cells.dst]), axis=1, return_inverse=True)[1].reshape(-1)
    lacking = ~measured & ~np.isin(pairs, pairs[measured])
    first = np.zeros(lacking.size, bool)
    first[np.flatnonzero(lacking)[np.unique(pairs[lacking], return_index=True)[1]]] = True
    return cells.chosen(measured | first)


def times_before(keys: Ints) -> Ints:
    """(K,) how often each column of `keys` (rows, K) stood there before."""
    order = np.lexsort(keys[::-1])  # stable: equal ones stay in their order
    sorted_keys = keys[:, order]
    new = np.ones(order.size, bool)
    new[1:] = (sorted_keys[:, 1:] != sorted_keys[:, :-1]).any(axis=0)
    start = np.maximum.accumulate(np.where(new, np.arange(order.size), 0))
    before = np.empty(order.size, np.int64)
    before[order] = np.arange(order.size) - start
    return before


def world_body(name: str, kernel: Kernel, entries: Sequence[tuple[int, Mapping[str, float]]], **facts: Any) -> Body:
    """A row of figures that belong to no pair, from (size, seconds by statistic): kept in the cells of rank 0."""
    statistics = sorted({statistic for _, seconds in entries for statistic in seconds})
    sizes = np.array([size for size, _ in entries], np.int64)
    zeros = np.zeros(sizes.size, np.int64)
    seconds = {name: np.array([found.get(name, np.nan) for _, found in entries], float) for name in statistics}
    cells = Cells(zeros, zeros + EVERYBODY, sizes, zeros, zeros + 1, seconds)
    return Body(name, kernel, cells, [1], "parallel", "world", {"directions": "one", **facts})


def ranks_named(count: int, hosts: Sequence[str]) -> tuple[RankName, ...]:
    """Ranks of a file that names no hosts: those that the user gave, else `rank0`, `rank1`, ...

    Raises:
        UsageError: the user named more or fewer.
    """
    if not hosts:
        return tuple(RankName(f"rank{rank}") for rank in range(count))
    if len(hosts) != count:
        raise UsageError(f"--hosts names {len(hosts)} hosts for {count} ranks", "name the host of each rank, in order")
    return tuple(RankName(host) for host in hosts)


def no_hosts_wanted(hosts: Sequence[str]) -> None:
    """Raises UsageError where the user names hosts for a file that names its own."""
    if hosts:
        raise UsageError("the file names its hosts", "leave out --hosts")


def sharpest(*figures: tuple[float | None, float, float]) -> float | None:
    """The seconds of the figure that was printed with the most digits, of (printed, last digit, seconds).

    A program that prints the same time as MB/s, us and messages/s says it best in one of them: `0.0` MB/s of a byte
    says nothing at all.
    """
    known = [(digit / printed, seconds) for printed, digit, seconds in figures if printed is not None and printed > 0]
    usable = [one for one in known if measurable(one[1])]
    return min(usable)[1] if usable else None
