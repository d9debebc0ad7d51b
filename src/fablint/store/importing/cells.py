"""Result of every importer, whatever the format: ranks, cells in columns, and the skipped lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from fablint.errors import UsageError
from fablint.model.arrays import Floats, Ints, Mask
from fablint.model.figures.percentiles import Statistic
from fablint.model.registry import Quantity
from fablint.store.importing.job_maps import JobHosts
from fablint.store.importing.lines import Foreign
from fablint.store.layout import LONGEST_S, SHORTEST_S

EVERYBODY = -1  # the partner in a collective, and of a figure for all pairs together

Order = Literal["parallel", "serial", "unknown"]  # of an all-pairs row: whether the pairs of a round run at once
Figures = Mapping[Statistic, float] | Mapping[str, float]  # of one size


@dataclass(frozen=True, order=True)
class RankName:
    """A rank as a file names it; `number` distinguishes the ranks of a host."""

    host: str
    number: str = ""
    gpu: str = ""  # of the host, for copies between GPUs


@dataclass(frozen=True)
class LeftOut:
    """A line without usable figures, and the reason."""

    line: int  # counted from 1; 0: the whole file
    text: str
    why: str = "not part of the output"

    @property
    def is_foreign(self) -> bool:
        """True if another program printed it, or nothing of it can be read."""
        return self.why == LeftOut.why


@dataclass(frozen=True)
class Kernel:
    """The kernel that was measured, in the terms of docs/reference/run-format.md."""

    name: str
    quantity: Quantity
    payload: Literal["src", "dst", "both", "none"]


LATENCY = Kernel("latency", "latency", "both")
BANDWIDTH = Kernel("bandwidth", "bandwidth", "src")
BIBANDWIDTH = Kernel("bibandwidth", "bandwidth", "both")
EXCHANGE = Kernel("exchange", "latency", "both")


@dataclass(frozen=True)
class Cells:
    """Columns of equal length, an entry for each cell: seconds per message from `src` to `dst`.

    A cell whose seconds are all NaN is a pair that was planned and has no figure.
    """

    src: Ints
    dst: Ints  # EVERYBODY if the figure is not of one pair
    size: Ints
    round: Ints  # counted from 0; all 0 if the order is not known
    count: Ints  # samples per figure; 1 if the program does not print it, 0 without a figure
    seconds: Mapping[Statistic, Floats]
    started: Floats | None = None  # s since the start of the run, NaN where a cell has none; None: not known

    @property
    def measured(self) -> Mask:
        """(K,) whether the cell has a figure."""
        return np.asarray(np.logical_or.reduce([np.isfinite(values) for values in self.seconds.values()]), np.bool_)

    @property
    def have_one_direction(self) -> bool:
        """True if no round has both directions of a pair: the other one is not missing."""
        backward = self.src > self.dst
        there, back = (
            np.stack([self.round, np.minimum(self.src, self.dst), np.maximum(self.src, self.dst)])[:, chosen]
            for chosen in (~backward, backward)
        )
        both = np.concatenate([np.unique(there, axis=1), np.unique(back, axis=1)], axis=1)
        return bool(backward.any() and np.unique(both, axis=1).shape[1] == both.shape[1])

    def chosen(self, mask: Mask) -> Cells:
        """Return the cells that a (K,) mask selects."""
        seconds = {name: values[mask] for name, values in self.seconds.items()}
        started = None if self.started is None else self.started[mask]
        src, dst, size, number, count = (
            values[mask] for values in (self.src, self.dst, self.size, self.round, self.count)
        )
        return Cells(src, dst, size, number, count, seconds, started)

    def __len__(self) -> int:
        return int(self.src.size)


@dataclass(frozen=True)
class Damage:
    """A size at which a program found payloads that arrived changed, or wrong results."""

    size: int
    src: int = EVERYBODY  # sender; EVERYBODY: several ranks contribute to the result
    dst: int = EVERYBODY  # receiver; EVERYBODY: the program does not say which rank has it


@dataclass(frozen=True)
class Body:
    """All cells that one program measured with the same settings: they become one row of a run."""

    name: str
    kernel: Kernel
    cells: Cells
    planned: Sequence[int]  # cells of each round
    order: Order = "unknown"  # `parallel` only if the rounds of the cells are known: contention is not guessed
    pattern: str = "all-pairs"
    facts: Mapping[str, Any] = field(default_factory=dict)  # more attributes of the row
    is_listed: bool = False  # whether the plan is known from its cells only: nothing else states which pairs it has
    checked: bool = False  # whether the program checked payloads
    damage: tuple[Damage, ...] = ()  # what it found

    @property
    def row_key(self) -> tuple[Any, ...]:
        """Key of the row: bodies with equal keys become one row."""
        return self.name, self.kernel, self.order, self.pattern, repr(sorted(self.facts.items()))


@dataclass(frozen=True)
class Imported:
    """Contents of one file."""

    tool: str  # with its version if the file has it: `mpigraph 1.5`
    rank_names: tuple[RankName, ...]
    bodies: tuple[Body, ...]
    left_out: tuple[LeftOut, ...] = ()
    pairless: int = 0  # skipped lines that measured a pair but do not name it
    rows: int = 0  # lines of pairs, of a file that is a table only; 0: all lines count
    missing: str = ""  # why the file is incomplete; '' if it is complete
    not_judged: str = ""  # why a complete file allows no judgement of a host; '' if it allows one
    remedy: str = ""  # what to give in place of such a file
    launch: Literal["pair", "all"] = "all"  # `pair`: the program was started anew for every pair
    allocation: tuple[str, ...] = ()  # hosts in the order in which they appear, if they are the hosts of one job


def measurable(seconds: float) -> bool:
    """Tell whether a message can take this time, and a cell (float32) can hold it."""
    return SHORTEST_S <= seconds <= LONGEST_S


def left_out(foreign: Iterable[Foreign], why: str = LeftOut.why) -> tuple[LeftOut, ...]:
    """Return the lines of a file that were not imported, with the reason."""
    return tuple(LeftOut(line.line, line.text, why) for line in foreign)


def cells_of(
    entries: Sequence[tuple[int, int, int, float]], rounds: Sequence[int] | None = None, count: int | Sequence[int] = 1
) -> Cells:
    """Cells of means.

    Parameters
    ----------
    entries
        (src, dst, size, seconds) of each cell.
    rounds
        Round of each cell; None: not known.
    count
        Samples of each cell.
    """
    columns = np.array([entry[:3] for entry in entries], np.int64).reshape(-1, 3)
    seconds = np.array([entry[3] for entry in entries], np.float64)
    number = np.zeros(len(entries), np.int64) if rounds is None else np.array(rounds, np.int64)
    counts = np.broadcast_to(np.array(count, np.int64), (len(entries),))
    return Cells(columns[:, 0], columns[:, 1], columns[:, 2], number, counts, {"mean": seconds})


def matrix_cells(seconds: Floats, size: int, rounds: Ints | None = None, count: Ints | int = 1) -> Cells:
    """Cells of a full (n, n) matrix of means in seconds; values that are not measurable or on the diagonal are
    missing.
    """
    n = seconds.shape[0]
    with np.errstate(invalid="ignore"):
        measured = (seconds >= SHORTEST_S) & (seconds <= LONGEST_S)
    np.fill_diagonal(measured, False)
    src, dst = np.nonzero(measured)
    number = np.zeros((n, n), np.int64) if rounds is None else rounds
    counts = np.broadcast_to(np.array(count, np.int64), (n, n))
    sizes = np.full(src.size, size, np.int64)
    return Cells(src, dst, sizes, number[measured], counts[measured], {"mean": seconds[measured]})


def with_unmeasured(cells: Cells, pairs: Iterable[tuple[int, int]]) -> Cells:
    """The cells, and a cell without a figure for each of `pairs` that has none; unchanged if no pair has a figure."""
    lacking = sorted(set(pairs) - set(zip(cells.src.tolist(), cells.dst.tolist(), strict=True))) if len(cells) else []
    if not lacking:
        return cells
    ends, zeros = np.array(lacking, np.int64), np.zeros(len(lacking), np.int64)
    more = (ends[:, 0], ends[:, 1], zeros + cells.size[0], zeros, zeros)
    columns = (cells.src, cells.dst, cells.size, cells.round, cells.count)
    src, dst, size, number, count = (np.concatenate(parts) for parts in zip(columns, more, strict=True))
    seconds = {name: np.append(values, np.full(zeros.size, np.nan)) for name, values in cells.seconds.items()}
    started = None if cells.started is None else np.append(cells.started, np.full(zeros.size, np.nan))
    return Cells(src, dst, size, number, count, seconds, started)


def needed(cells: Cells) -> Cells:
    """The cells, with cells without a figure only for pairs that have a figure in no file, one cell each."""
    measured = cells.measured
    if measured.all():
        return cells
    pairs = np.unique(np.stack([cells.src, cells.dst]), axis=1, return_inverse=True)[1].reshape(-1)
    lacking = ~measured & ~np.isin(pairs, pairs[measured])
    first = np.zeros(lacking.size, bool)
    first[np.flatnonzero(lacking)[np.unique(pairs[lacking], return_index=True)[1]]] = True
    return cells.chosen(measured | first)


def times_before(keys: Ints) -> Ints:
    """(K,) number of earlier columns of `keys` (rows, K) that are equal to each column."""
    order = np.lexsort(keys[::-1])  # stable: equal columns keep their order
    sorted_keys = keys[:, order]
    new = np.ones(order.size, bool)
    new[1:] = (sorted_keys[:, 1:] != sorted_keys[:, :-1]).any(axis=0)
    start = np.maximum.accumulate(np.where(new, np.arange(order.size), 0))
    before = np.empty(order.size, np.int64)
    before[order] = np.arange(order.size) - start
    return before


def world_body(name: str, kernel: Kernel, entries: Sequence[tuple[int, Figures]], **facts: Any) -> Body:
    """A row of figures that belong to no pair, from (size, seconds by statistic): kept in the cells of rank 0."""
    figures: list[dict[Statistic, float]] = [{key: time for key, time in times.items()} for _, times in entries]
    sizes = np.array([size for size, _ in entries], np.int64)
    zeros = np.zeros(sizes.size, np.int64)
    statistics = dict.fromkeys(key for times in figures for key in times)
    seconds: dict[Statistic, Floats] = {
        key: np.array([times.get(key, np.nan) for times in figures], np.float64) for key in statistics
    }
    cells = Cells(zeros, zeros + EVERYBODY, sizes, zeros, zeros + 1, seconds)
    return Body(name, kernel, cells, [1], "parallel", "world", {"directions": "one", **facts})


def ranks_named(count: int, hosts: Sequence[str]) -> tuple[RankName, ...]:
    """Names of the ranks of a file without host names: the hosts that the user or the launcher named, else `rank0`, ...

    A launcher may name more ranks than have figures.

    Raises
    ------
    UsageError
        The user gave more or fewer hosts than ranks.
    """
    if not hosts:
        return tuple(RankName(f"rank{rank}") for rank in range(count))
    if isinstance(hosts, JobHosts) and len(hosts) < count:
        return tuple(RankName(f"rank{rank}") for rank in range(count))  # those of another launch
    if len(hosts) != count and not isinstance(hosts, JobHosts):
        raise UsageError(f"--hosts names {len(hosts)} hosts for {count} ranks", "name the host of each rank, in order")
    shared = {host for host, ranks in Counter(hosts).items() if ranks > 1}
    return tuple(RankName(host, str(rank) if host in shared else "") for rank, host in enumerate(hosts))


def refuse_hosts(hosts: Sequence[str]) -> None:
    """Raise UsageError if the user gave hosts for a file that names its own."""
    if hosts and not isinstance(hosts, JobHosts):
        raise UsageError("the file names its hosts", "omit --hosts")


def sharpest(*figures: tuple[float | None, float, float]) -> float | None:
    """Seconds of the figure with the most printed digits; None if no figure is usable.

    A program may print the same time as MB/s, us and messages/s; `0.0` MB/s of a byte carries no information.

    Parameters
    ----------
    figures
        (printed number, its last digit, seconds) of each form.
    """
    candidates = [
        (digit / printed, seconds) for printed, digit, seconds in figures if printed is not None and printed > 0
    ]
    usable = [candidate for candidate in candidates if measurable(candidate[1])]
    return min(usable)[1] if usable else None
