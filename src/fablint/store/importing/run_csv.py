"""CSV that `fablint export --to csv` wrote -> numbers: the rows of a run, with ranks, rounds, times and statistics.

Attributes of the run and of its rows (memory, transport, plan) are not in such a file, nor are pairs without a
measurement. Histograms are not read.
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fablint.errors import UsageError
from fablint.model.arrays import Floats
from fablint.model.figures.percentiles import Statistic
from fablint.model.registry import KERNELS
from fablint.store.importing.cells import (
    EVERYBODY,
    Body,
    Cells,
    Imported,
    Kernel,
    LeftOut,
    RankName,
    measurable,
    refuse_hosts,
)
from fablint.store.importing.csv_columns import heading_of
from fablint.store.importing.lines import text_of
from fablint.store.importing.pairs_csv import CUT, order_of
from fablint.store.layout import EXPORTED, STATISTICS

_PERCENTILE = re.compile(r"time_p([0-9]{1,2}(?:\.[0-9]{1,6})?)")
_MOST_RANKS = 1 << 24
_SHOWN = 80  # characters of a line in a message
_Line = tuple[int, int, int, int, float, int, tuple[float, ...]]  # src, dst, size, round, started, count, times


def is_run_csv(head: bytes, _: int) -> bool:
    """Return whether a text begins with the heading of an exported run."""
    return is_exported(heading_of(head.decode("utf-8-sig", errors="replace")))


def is_exported(heading: str) -> bool:
    """Return whether a heading has the columns of an exported run, in any order."""
    return {*EXPORTED} <= {*heading.split(",")}


def read_run_csv(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import the rows of an exported run. Ranks without a line are `rank5`."""
    refuse_hosts(hosts)
    text = text_of(data)
    whole = text.rfind("\n") + 1
    reader = csv.reader(io.StringIO(text[:whole]))
    try:
        imported = _imported(reader)
    except csv.Error as error:
        raise UsageError(f"line {reader.line_num}: {error}", "give the file that fablint export wrote") from None
    if not text[whole:]:
        return imported
    last = LeftOut(reader.line_num + 1, text[whole:][:_SHOWN], CUT)
    return replace(imported, left_out=(*imported.left_out, last), missing="the last line is cut off")


def _imported(reader: Any) -> Imported:
    heading: list[str] = next((words for words in reader if is_exported(",".join(words))), [])
    at = {name: place for place, name in enumerate(heading)}
    statistics = {name: place for name, place in ((_statistic(name), at[name]) for name in heading) if name is not None}
    rows: dict[tuple[str, str], list[_Line]] = defaultdict(list)
    host_of_rank: dict[int, str] = {}
    left_out = []
    for words in reader:
        if not words or words == heading:
            continue
        try:
            if len(words) != len(heading):
                raise ValueError("another number of columns")
            line = _line(words, at, statistics, host_of_rank)
            rows[words[at["row"]], words[at["kernel"]]].append(line)
        except ValueError as error:
            left_out.append(LeftOut(reader.line_num, ",".join(words)[:_SHOWN], str(error)))
    ranks = max(host_of_rank, default=-1) + 1
    return Imported(
        tool="csv",
        rank_names=tuple(RankName(host_of_rank.get(rank, f"rank{rank}"), str(rank)) for rank in range(ranks)),
        bodies=tuple(_body(name, kernel, lines, [*statistics]) for (name, kernel), lines in rows.items()),
        left_out=tuple(left_out),
        rows=sum(map(len, rows.values())) + len(left_out),
    )


def _statistic(column: str) -> Statistic | None:
    """Return the statistic that a column has: `median`, or a percentile such as 99.9; None for another column."""
    name = column.removeprefix("time_")
    if name != column and name in STATISTICS:
        return name
    percentile = _PERCENTILE.fullmatch(column)
    return float(percentile[1]) if percentile else None


def _line(
    words: Sequence[str], at: Mapping[str, int], statistics: Mapping[Statistic, int], host_of_rank: dict[int, str]
) -> _Line:
    """Return the numbers of a line, and put the hosts of its ranks. Raises ValueError: the reason."""
    src, size, number, count = (int(words[at[name]]) for name in ("src", "size", "round", "count"))
    dst = int(words[at["dst"]]) if words[at["dst"]] else EVERYBODY
    if not (0 <= src < _MOST_RANKS and EVERYBODY <= dst < _MOST_RANKS and min(size, number) >= 0 and count > 0):
        raise ValueError("a rank, size, round or count is out of range")
    times = tuple(float(words[place] or "nan") for place in statistics.values())
    if not any(map(measurable, times)):
        raise ValueError("no time is a figure above 0")
    for rank, name in ((src, "src_host"), (dst, "dst_host")):
        host = words[at[name]]
        if rank != EVERYBODY and host_of_rank.setdefault(rank, host) != host:
            raise ValueError(f"rank {rank} is on {host_of_rank[rank]} in another line")
    return src, dst, size, number, float(words[at["started"]] or "nan"), count, times


def _body(name: str, kernel: str, lines: Sequence[_Line], statistics: Sequence[Statistic]) -> Body:
    if kernel not in KERNELS:
        raise UsageError(f"the kernel '{kernel}' of row {name} is not known", "export the run with this version")
    info = KERNELS[kernel]
    src, dst, size, number, count = (np.array([line[at] for line in lines], np.int64) for at in (0, 1, 2, 3, 5))
    number = np.unique(number, return_inverse=True)[1].reshape(-1)
    times = np.array([line[6] for line in lines], np.float64)
    seconds: dict[Statistic, Floats] = {
        statistic: times[:, at] for at, statistic in enumerate(statistics) if np.isfinite(times[:, at]).any()
    }
    started = np.array([line[4] for line in lines], np.float64)
    cells = Cells(src, dst, size, number, count, seconds, started if np.isfinite(started).any() else None)
    planned = np.bincount(np.unique(np.stack([number, src, dst]), axis=1)[0]).tolist()
    made = Kernel(info.name, info.quantity, info.payload)
    if (dst == EVERYBODY).all():
        return Body(name, made, cells, planned, "parallel", "world", {"directions": "one"})
    pattern = "rounds" if _is_sample(cells, planned) else "all-pairs"
    return Body(name, made, cells, planned, order_of(cells), pattern, is_listed=True)


def _is_sample(cells: Cells, planned: Sequence[int]) -> bool:
    """Tell whether rounds have some pairs by their plan: all rounds are whole, and lack pairs. Failures leave gaps."""
    pairs = np.unique(np.stack([cells.src, cells.dst]), axis=1)
    ranks = np.unique(pairs).size
    is_one_way = bool((pairs[0] < pairs[1]).all())
    return len({*planned}) == 1 and pairs.shape[1] < ranks * (ranks - 1) // (2 if is_one_way else 1)
