"""The columns of net_sanitizer, with right units; docs/reference/tables.md says how its own figures relate to these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fablint.model import Row, Run
from fablint.report.tables.cells import Cells, cells, central
from fablint.report.tables.pairs import slowest
from fablint.report.tables.table import Options, Rendered, TableKind, medium_words, program, right
from fablint.report.tables.traffic import messages, window
from fablint.text.units import significant

KERNELS = ("rpc_put", "rpc_get", "bandwidth")
PATTERNS = ("clients-servers", "all-pairs", "rounds", "random", "bisection", "pairs", "pair")
_DIRECTIONS = {"rpc_put": "Put", "rpc_get": "Get"}
_HEAD = f" {'time(s)':>10} {'bw(MB/s)':>10} {'lat(us)':>7} {'iops':>10}"
_BLOCKS = f"{'SUM':>37}{'MIN':>40}{'MAX':>41}"


@dataclass(frozen=True)
class Figures:
    """Seconds, bytes/s, seconds per operation, operations/s."""

    time: float
    rate: float
    latency: float
    iops: float

    def text(self) -> str:
        """Return the figures as net_sanitizer prints them: seconds, 10^6 bytes/s, us, operations per second."""
        figures = ((self.time, 11), (self.rate / 1e6, 11), (self.latency * 1e6, 8), (self.iops, 11))
        return "".join(right(significant(value), width) for value, width in figures)


def _parts(_: Run, rows: Sequence[Row]) -> list[list[Row]]:
    suitable_rows = [row for row in rows if row.kernel in KERNELS and row.pattern in PATTERNS and row.statistics]
    return [suitable_rows] if suitable_rows else []


# One table of all rows. Options: a line for each connection, or for so many of the slowest of each size.
net_sanitizer = TableKind[list[Row]](
    "net_sanitizer",
    options=("full", "slowest"),
    needs="a row of rpc_put, rpc_get or bandwidth",
    measure="measure one with fablint bench netsan_put",
    parts=_parts,
    section=lambda run, rows, options: _table(run, rows, options),
)


def _table(run: Run, rows: Sequence[Row], options: Options) -> Rendered:
    lines, facts, last = _comments(rows), [], ""
    for row in rows:
        head = _counts(run, row)
        lines += [head] if head != last else []
        last = head
        summaries = [(size, _summary(row, index)) for index, size in enumerate(row.sizes)]
        lines += [_BLOCKS, f"Dir size(B){_HEAD * 3}"]
        lines += [
            _start(row, size) + "".join(part.text() for part in three.values()) for size, three in summaries if three
        ]
        entry: dict[str, Any] = {"row": row.name, "direction": _direction(row), "head": head.removeprefix("#")}
        entry["sizes"] = [
            {"size": size, **{name.lower(): asdict(part) for name, part in three.items()}} for size, three in summaries
        ]
        if options.full or options.slowest is not None:
            shown = _connections(run, row, None if options.full and options.slowest is None else options.slowest)
            lines += _connection_lines(row, shown)
            entry["connections"] = shown
        facts.append(entry)
    return Rendered(tuple(lines), {"table": "net_sanitizer", "rows": facts})


def _comments(rows: Sequence[Row]) -> list[str]:
    at_least = not all(messages(row, index)[1] for row in rows for index in range(len(row.sizes)))
    more = "; niters and time(s) are the least that was done: the runs stopped when sure" if at_least else ""
    return [
        f"# {program()} in the columns of net_sanitizer; MB/s is 10^6 bytes/s; lat(us) is the time per operation{more}",
        "# a rank is a client or a sender; SUM adds time, bw and iops over the ranks, its lat is their mean",
        *(f"# {line}" for line in medium_words(*rows)),
    ]


def _counts(run: Run, row: Row) -> str:
    """The reference's header line."""
    servers = (row.facts.schedule.servers or 1) if row.pattern == "clients-servers" else 0
    count = min(messages(row, index)[0] for index in range(len(row.sizes)))
    flight = max(window(row, index) for index in range(len(row.sizes)))
    serial = int(row.facts.schedule.order == "serial")
    return (
        f"#nservers={servers} nclients={run.ranks - servers} niters={count} nflight={flight} sequential={serial}"
        f" ssize={min(row.sizes)}, esize={max(row.sizes)}"
    )


def _direction(row: Row) -> str:
    return _DIRECTIONS.get(row.kernel, "Und")


def _start(row: Row, size: int) -> str:
    return f"{_direction(row)} {size:7d}"


def _operations(row: Row, index: int, cells: Cells) -> np.ndarray:
    """Operations behind every cell."""
    count, exact = messages(row, index)
    return np.full(len(cells), float(count)) if exact else cells.count * window(row, index)


def _summary(row: Row, index: int) -> dict[str, Figures]:
    """SUM, MIN and MAX over the ranks that measured; empty where nothing was."""
    measured_cells = cells(row, index, [central(row)])
    if not len(measured_cells):
        return {}
    operations = _operations(row, index, measured_cells)
    rank_operations = np.bincount(measured_cells.src, operations)
    time = np.bincount(measured_cells.src, operations * measured_cells.times[central(row)])
    rank_operations, time = rank_operations[rank_operations > 0], time[rank_operations > 0]
    with np.errstate(divide="ignore"):
        iops = rank_operations / time
    each = (time, iops * row.sizes[index], time / rank_operations, iops)
    total = Figures(float(time.sum()), float(each[1].sum()), float(each[2].mean()), float(iops.sum()))
    return {"SUM": total, "MIN": _of_each(np.min, each), "MAX": _of_each(np.max, each)}


def _of_each(extreme: Callable[[np.ndarray], Any], each: Iterable[np.ndarray]) -> Figures:
    return Figures(*(float(extreme(values)) for values in each))


def _connections(run: Run, row: Row, count: int | None) -> list[dict[str, Any]]:
    """Every connection, or the `count` slowest of each size: `src` sent the payload and `dest` received it."""
    hosts, shown = run.rank_host, []
    for index, size in enumerate(row.sizes):
        slowest_cells = slowest(row, index, count)
        done = _operations(row, index, slowest_cells)
        for at, seconds in enumerate(slowest_cells.times[central(row)]):
            ends = (int(slowest_cells.src[at]), int(slowest_cells.dst[at]))
            src, dest = reversed(ends) if row.payload == "dst" else ends
            rate = 1 / seconds if seconds > 0 else float("inf")
            figures = Figures(float(done[at] * seconds), size * rate, float(seconds), rate)
            names = {"src": f"{hosts[src]}-{src}", "dest": f"{hosts[dest]}-{dest}"}
            shown.append({**names, "size": size, **asdict(figures)})
    return shown


def _connection_lines(row: Row, shown: list[dict[str, Any]]) -> list[str]:
    """The reference's table of --verbose, as wide as the longest name needs."""
    width = max([16, *(len(entry[end]) for entry in shown for end in ("src", "dest"))]) + 1
    lines = [f"#{'src':>{width - 1}}{'dest':>{width}} Dir size(B){_HEAD}"]
    for entry in shown:
        figures = Figures(*(entry[name] for name in ("time", "rate", "latency", "iops")))
        ends = f"{entry['src']:>{width}}{entry['dest']:>{width}}"
        lines.append(f"{ends} {_start(row, entry['size'])}{figures.text()}")
    return lines
