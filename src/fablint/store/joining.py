"""One run of several that measured a fabric in parts: the same hosts are the same ranks, rounds follow each other.

No job may have all hosts of a large system. Each of several jobs measures some of them; rows that measured the same
become one row, with the rounds of one allocation after those of another. The array `allocation` says which allocation
measured each round. Start times are those since the begin of the own allocation: what is compared over time was
measured by one launch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, overload

import numpy as np

from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.model.arrays import Codes
from fablint.model.facts.row_attributes import ResultFacts
from fablint.store.joined_facts import joined_facts, joined_results, joined_state
from fablint.store.layout import ARRAYS, COORDINATES

PLANNED = "measure"  # purpose of the rows that each run must have


class ChainedTexts(Sequence[str]):
    """Notes or damaged files of several runs, which grow while their arrays are read."""

    def __init__(self, texts: Sequence[Collection[str]]) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return sum(map(len, self._texts))

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._texts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return list(self)[index]


class JoinedArray:
    """An array over ranks and rounds of a joined row, put together when it is sliced.

    Attributes
    ----------
    shape, dtype, ndim
        As of a numpy array.
    """

    def __init__(self, name: str, arrays: Sequence[Any], ranks: Sequence[Codes], count: int) -> None:
        """Join `arrays` (src, round, ...) of runs whose rank i is `ranks[i]` of `count` ranks."""
        self._name, self._arrays, self._ranks = name, arrays, ranks
        self._places = [_places(of_run, count) for of_run in ranks]
        rounds = sum(array.shape[1] for array in arrays)
        self.shape: tuple[int, ...] = (count, rounds, *arrays[0].shape[2:])
        self.dtype: np.dtype[Any] = np.dtype(arrays[0].dtype)
        self.ndim = len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[...], dtype=dtype)

    def __getitem__(self, key: Any) -> Any:
        """Return the values at `key` as a new numpy array."""
        keys = key if isinstance(key, tuple) else (key,)
        whole = isinstance(keys[0], type(Ellipsis))
        first, rest = (slice(None), keys if whole else (slice(None), *keys[1:]))
        rows = np.arange(self.shape[0]) if whole else np.arange(self.shape[0])[keys[0]]
        joined = self._of_ranks(np.atleast_1d(rows))
        values = joined[(first, *rest[1:])] if not whole else joined[rest]
        return values if rows.ndim else values[0]

    def _of_ranks(self, rows: Codes) -> np.ndarray:
        """Return the (rows, round, ...) values of these ranks; missing where an allocation lacks the rank."""
        joined = np.full((rows.size, *self.shape[1:]), ARRAYS[self._name].fill, dtype=self.dtype)
        column = 0
        for array, places, ranks in zip(self._arrays, self._places, self._ranks, strict=True):
            columns = slice(column, column + array.shape[1])
            column = columns.stop
            at = places[rows]
            present = np.flatnonzero(at >= 0)
            if not present.size:
                continue
            low, high = int(at[present].min()), int(at[present].max()) + 1
            values = np.asarray(array[low:high])[at[present] - low]
            if self._name == "dst":
                values = np.where(values < 0, values, ranks[np.maximum(values, 0)])
            joined[present, columns] = values
        return joined


def join_runs(runs: Sequence[Run]) -> Run:
    """Return several runs as one. Hosts are identified by name: the caller has given equal hosts equal names.

    Raises
    ------
    UsageError
        The runs measured different things, or rows that are no lists of rounds.
    """
    first = runs[0]
    ranks, joined_ranks = _joined_ranks(runs)
    facts = joined_facts(runs, ranks, joined_ranks)
    groups = _equal_rows(runs)
    names = _names_of(groups)
    rows = tuple(_joined_row(name, group, ranks, len(joined_ranks)) for name, group in zip(names, groups, strict=True))
    plan_lines = {row.name: line for run in runs for row, line in zip(run.rows, run.facts.plan, strict=False)}
    plan = [plan_lines.get(next(iter(group.values())).name, "") for group in groups] if first.facts.plan else []
    return Run(
        None,
        replace(facts, rows=names, plan=plan),
        rows,
        ChainedTexts([run.notes for run in runs]),
        ChainedTexts([run.damaged for run in runs]),
        tuple(path for run in runs for path in ([run.path] if run.path else [])),
    )


def _joined_ranks(runs: Sequence[Run]) -> tuple[list[Codes], list[tuple[str, int]]]:
    """Return the joined rank of each rank of each run, and host and number on the host of each joined rank.

    The k-th rank of a host is the same rank in each run.
    """
    number: dict[tuple[str, int], int] = {}
    joined: list[Codes] = []
    for run in runs:
        on_host: dict[str, int] = defaultdict(int)
        ranks = []
        for host in run.rank_host:
            key = (host, on_host[host])
            on_host[host] += 1
            ranks.append(number.setdefault(key, len(number)))
        joined.append(np.array(ranks, dtype=np.int32))
    return joined, list(number)


def _places(ranks: Codes, count: int) -> Codes:
    """Return the (count,) rank in a run of each joined rank, -1 where the run lacks it."""
    places = np.full(count, -1, dtype=np.int32)
    places[ranks] = np.arange(ranks.size)
    return places


def _equal_rows(runs: Sequence[Run]) -> list[dict[int, Row]]:
    """Return rows that measured the same, by the number of their run, in the order of the first run that has them."""
    groups: dict[tuple[Any, ...], dict[int, Row]] = {}
    for number, run in enumerate(runs):
        of_run: dict[tuple[Any, ...], int] = defaultdict(int)
        for row in run.rows:
            _refuse_matrix(run, row)
            facts = row.facts.schedule
            kind = (row.workload, row.medium, row.purpose, facts.order, bool(facts.retest_of))
            key = (*kind, of_run[kind])
            of_run[kind] += 1
            groups.setdefault(key, {})[number] = row
    for group in groups.values():
        row = next(iter(group.values()))
        lacking = next((number for number in range(len(runs)) if number not in group), None)
        if row.purpose == PLANNED and not row.facts.schedule.retest_of and lacking is not None:
            having = runs[next(iter(group))]
            raise UsageError(
                f"{runs[lacking].path}: has no row like {row.name} of {having.path}, with the same sizes and options",
                "join runs of plans that fablint plan --split wrote together",
            )
    return list(groups.values())


def _refuse_matrix(run: Run, row: Row) -> None:
    if row.layout != "list":
        raise UsageError(
            f"{run.path}: row {row.name} is a matrix of all pairs, not a list of rounds",
            "join runs of plans that fablint plan --split wrote",
        )


def _names_of(groups: Sequence[Mapping[int, Row]]) -> list[str]:
    names: list[str] = []
    for group in groups:
        name = next(iter(group.values())).name
        names.append(next(one for one in chain([name], (f"{name}-{k}" for k in range(2, 10_000))) if one not in names))
    return names


def _joined_row(name: str, group: Mapping[int, Row], ranks: Sequence[Codes], count: int) -> Row:
    """Return the rows of a group, by the number of their run, as one row of `count` ranks."""
    rows, numbers = list(group.values()), list(group)
    first = rows[0]
    arrays: dict[str, Any] = {}
    for array in first.arrays:
        parts = [row.arrays[array] for row in rows if array in row.arrays]
        is_of_ranks = "src" in (ARRAYS[array].list or ())
        if array in COORDINATES:
            arrays[array] = parts[0][:]
        elif is_of_ranks and len(parts) == len(rows) and len({part.shape[2:] for part in parts}) == 1:
            of_runs = ([ranks[number] for number in numbers], count)
            arrays[array] = JoinedArray(array, parts, *of_runs)
    if len({tuple(row.arrays["bucket"][:]) for row in rows if "bucket" in row.arrays}) > 1:
        arrays["histogram"], arrays["bucket"] = _with_equal_buckets(rows, numbers, ranks, count)
    rounds = [row.facts.schedule.rounds for row in rows]
    arrays["allocation"] = np.repeat(np.array(numbers, dtype=np.int32), rounds)
    cells = [cell for row in rows for cell in row.facts.schedule.planned_cells]
    schedule = replace(first.facts.schedule, rounds=sum(rounds), cells_per_round=cells, pattern="rounds")
    states = [row.facts.state for row in rows]
    result: ResultFacts = joined_results(rows, [ranks[number] for number in numbers], count)
    return Row(name, replace(first.facts, schedule=schedule, state=joined_state(states), result=result), arrays)


def _with_equal_buckets(
    rows: Sequence[Row], numbers: Sequence[int], ranks: Sequence[Codes], count: int
) -> tuple[JoinedArray, np.ndarray]:
    """Return the histograms of the rows with the buckets of all of them: a row stores those that it needed only."""
    edges = np.unique(np.concatenate([np.asarray(row.arrays["bucket"][:]) for row in rows]))
    widened = []
    for row in rows:
        counts = np.asarray(row.arrays["histogram"][:])
        of_all = np.zeros((*counts.shape[:-1], edges.size), dtype=counts.dtype)
        of_all[..., np.searchsorted(edges, np.asarray(row.arrays["bucket"][:]))] = counts
        widened.append(of_all)
    of_runs = [ranks[number] for number in numbers]
    return JoinedArray("histogram", widened, of_runs, count), edges
