"""Every pair of a row by itself: what multi-pair benchmarks add up and throw away."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from fablint.model import Row, Run
from fablint.report.conditions import conditions
from fablint.report.tables.cells import Cells, blocks, central, joined, ranks
from fablint.report.tables.table import Rendered, TableKind, fixed, medium_words, program
from fablint.report.tables.traffic import flow_words, rates
from fablint.text import units

_SHOWN = ("min", "p99", "max")


# A section for each row: a line per ordered pair and size. Option: so many of the slowest of each size.
pairs = TableKind[Row](
    "pairs",
    options=("slowest",),
    needs="a row with times",
    measure="measure one",
    parts=lambda _, rows: [part for row in rows for part in conditions(row) if row.statistics],
    section=lambda run, row, options: _section(run, row, options.slowest),
)


def slowest(
    row: Row,
    index: int,
    count: int | None,
    statistics: Sequence[str] = (),
    also: Collection[tuple[int, int]] = (),
) -> Cells:
    """The `count` slowest ordered pairs at a size, slowest first, and those in `also`, wherever they rank.

    All pairs in the order of their ranks for a count of None.
    """
    name = central(row)
    cellses: list[Cells] = []
    for block in blocks(row, index, list(dict.fromkeys([name, *statistics]))):
        merged = block.by_pair(ranks(row))
        cellses.append(merged if count is None else _worst(merged, name, count, also))
    return joined(cellses) if count is None else _worst(joined(cellses), name, count, also)


def _worst(cells: Cells, name: str, count: int, also: Collection[tuple[int, int]]) -> Cells:
    order = np.argsort(-cells.times[name], kind="stable")
    named = (
        [pair in also for pair in zip(cells.src[order].tolist(), cells.dst[order].tolist(), strict=True)]
        if also
        else []
    )
    return cells.where(order[np.array(named, dtype=bool) | (np.arange(len(order)) < count)] if also else order[:count])


def _section(run: Run, row: Row, count: int | None) -> Rendered:
    name, others = central(row), [other for other in _SHOWN if other in row.statistics]
    rate, hosts = row.quantity == "bandwidth", run.rank_host
    head = ["src", "host", "dst", "host", "size", f"{name} (us)", *([] if not rate else ["MB/s"])]
    head += [f"{other} (us)" for other in others if other != name] + ["samples"]
    lines, facts = [], []
    for index, size in enumerate(row.sizes):
        shown = slowest(row, index, count, others)
        for at in range(len(shown)):
            src, dst = int(shown.src[at]), int(shown.dst[at])
            times = {what: float(values[at]) for what, values in shown.times.items()}
            speed = float(rates(row.counted_bytes(size), times[name]))
            partner = ["all", "-"] if dst < 0 else [str(dst), hosts[dst]]
            cells = [str(src), hosts[src], *partner, str(size), fixed(times[name] * 1e6)]
            cells += [fixed(speed / 1e6)] if rate else []
            cells += [fixed(times[what] * 1e6) for what in others if what != name] + [f"{shown.count[at]:.0f}"]
            lines.append(cells)
            entry: dict[str, Any] = {"src": src, "src_host": hosts[src], "dst": None, "dst_host": None, "size": size}
            entry |= {} if dst < 0 else {"dst": dst, "dst_host": hosts[dst]}
            entry |= {"seconds": times, "samples": int(shown.count[at])}
            facts.append(entry | ({"bytes_per_s": speed} if rate else {}))
    order = "in the order of the ranks" if count is None else f"the {count} slowest of every size, slowest first"
    both = ", both directions counted" if rate and row.counted_bytes(1) > 1 else ""
    comments = [
        f"# {program()}: ordered pairs of row {row.name}, {order}",
        f"# kernel {row.kernel}, pattern {row.pattern}; {flow_words(row)}; MB/s is 10^6 bytes/s{both}",
    ]
    comments += [f"# {line}" for line in medium_words(row)]
    table = units.columns([[f"# {head[0]}", *head[1:]], *lines], left=0)
    what = {"table": "pairs", "row": row.name, "kernel": row.kernel, "pattern": row.pattern, "payload": row.payload}
    return Rendered((*comments, *table), {**what, "statistic": name, "pairs": facts})
