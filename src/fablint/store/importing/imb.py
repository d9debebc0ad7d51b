"""Output of the Intel MPI Benchmarks 2 to 2021 -> numbers, in the units of its columns.

Mbytes/sec are of 10^6 bytes since 2018 and of 2^20 before; Msg/sec, where it is printed, shows which.

Supported are PingPong, PingPing, Sendrecv, Exchange, Uniband and Biband, also with -multi; tables of other benchmarks
are reported as skipped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fablint.errors import UsageError
from fablint.store.importing.captions import Captions, distinct_captions
from fablint.store.importing.cells import (
    BANDWIDTH,
    BIBANDWIDTH,
    EXCHANGE,
    LATENCY,
    Body,
    Damage,
    Imported,
    Kernel,
    LeftOut,
    cells_of,
    left_out,
    measurable,
    ranks_named,
    sharpest,
    with_unmeasured,
    world_body,
)
from fablint.store.importing.lines import INTEGER, Foreign, figures, marked, numbered, text_of

MARK = marked(rb"# +(?:Intel ?\(R\)|PALLAS) MPI Benchmark|# Benchmarking \S+")

MOST_RANKS = 1 << 20

_VERSION = re.compile(r"# +(?:Intel ?\(R\)|PALLAS) MPI Benchmark(?:s| Suite) V?([0-9][\w.]*)")
_BENCHMARK = re.compile(r"# Benchmarking (?:(Multi)-)?(\S+)")
_PROCESSES = re.compile(rf"# (?:\( )?#processes = ({INTEGER})")
_WAITING = re.compile(rf"# \( ({INTEGER}) additional process(?:es)? waiting")
_STOPPED = re.compile(rf" *(?:{INTEGER} +)?({INTEGER}) +(time-out|out-of-mem|int-overflow)\.?;")
_GROUP = re.compile(rf"# Group +({INTEGER}):")
_ORDER = "rank order (rowwise)"  # of -map
_RANKS = re.compile(rf"#(?: Group +{INTEGER}:)?((?: +(?:{INTEGER}|\.\.\.))+) *$")  # of 16 ranks a line
_CALLED = re.compile(r"# (MPI (?:Version|Thread Environment) *: .*\S|.*\bIMB-\w+ .*\S)")
_COMMAND = re.compile(r"\bIMB-\w+")
_BUFFERS = re.compile(r"-mem_alloc_type +(\w+)")
_ON_HOST = ("cpu", "host")  # values of this option; the default is device
_MODE = re.compile(r"# +MODE: (.*\S)")
_COLUMN = re.compile(r"Group|#bytes|#repetitions|t(?:_min|_max|_avg)?\[usec\]|Mbytes/sec|Msg/sec|defects")


@dataclass(frozen=True)
class ImbRow:
    """One line of figures, one per column."""

    line: int
    values: tuple[float, ...]


@dataclass
class ImbTable:
    """One benchmark. `groups`: ranks of each group of -multi."""

    name: str
    line: int
    multi: bool = False
    processes: int = 0
    waiting: int = 0  # processes that take no part
    stopped: list[LeftOut] = field(default_factory=list)  # sizes that were not measured
    groups: dict[int, list[int]] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)  # ranks of -map, in place of the first ones
    listed: list[int] | None = None  # of these lists, the one that the next lines continue
    mode: str = ""
    columns: tuple[str, ...] = ()
    unknown: str = ""  # a column that is not known
    rows: list[ImbRow] = field(default_factory=list)
    memory: str = ""  # of the buffers; '' for that of the host
    caption: str = ""  # headings and command line of a script above it, and how the program was called

    def value(self, row: ImbRow, *names: str) -> float | None:
        """Figure in the first of these columns that the table has; None if it has none of them."""
        return next((row.values[self.columns.index(name)] for name in names if name in self.columns), None)


@dataclass(frozen=True)
class ImbText:
    """All tables, and the lines that belong to no table."""

    version: str
    tables: tuple[ImbTable, ...]
    foreign: tuple[Foreign, ...]
    ended: bool


def parse_imb(text: str) -> ImbText:
    """Read the output of an IMB program.

    Raises
    ------
    UsageError
        The text has no heading of a benchmark.
    """
    tables: list[ImbTable] = []
    foreign: list[Foreign] = []
    captions, caption, called, memory = Captions(), "", "", ""
    version, ended = "", False
    cut, last = not text.endswith("\n"), text.count("\n") + 1
    for number, line in numbered(text):
        if match := _VERSION.match(line):
            version, called, memory = match[1], "", "device" if "(GPU)" in line else ""
        elif match := _BENCHMARK.match(line):
            tables.append(ImbTable(match[2], number, bool(match[1])))
            caption = captions.caption(caption)
            tables[-1].caption, tables[-1].memory = f"{caption} {called}", memory
        elif line.startswith("#") and not line.startswith("#bytes"):
            ended = ended or "All processes entering MPI_Finalize" in line
            if memory and (match := _BUFFERS.search(line)):
                memory = "" if match[1] in _ON_HOST else match[1]
            called += f" {match[1]}" if (match := _CALLED.match(line)) else ""
            _heading(tables[-1] if tables else None, line)
        elif not line.strip() or (tables and _columns(tables[-1], line)):
            continue
        elif tables and (stopped := _STOPPED.match(line)):
            why = f"{tables[-1].name} of {stopped[1]} bytes was not measured: {stopped[2]}"
            tables[-1].stopped.append(LeftOut(number, line, why))
        elif (cut and number == last) or not (tables and _row(tables[-1], number, line)):
            foreign.append(Foreign(number, line))
            captions.take(line, is_command=_COMMAND.search(line) is not None)
    if not tables:
        raise UsageError("the text has no benchmark of IMB", "give the complete output of IMB")
    return ImbText(version, tuple(tables), tuple(foreign), ended)


def _heading(table: ImbTable | None, line: str) -> None:
    if table is None:
        return
    if match := _GROUP.match(line):
        table.listed = table.groups.setdefault(int(match[1]), [])
    if table.listed is not None and (match := _RANKS.match(line)):
        table.listed += [int(word) for word in match[1].split() if word != "..."]
    elif match := _PROCESSES.match(line):
        table.processes = int(match[1])
        table.listed = table.order if _ORDER in line else None
    elif match := _WAITING.match(line):
        table.waiting = int(match[1])
    elif match := _MODE.match(line):
        table.mode = match[1]


def _columns(table: ImbTable, line: str) -> bool:
    names = line.split()
    if not names or not all(_COLUMN.fullmatch(name) for name in names):
        if names and names[0] == "#bytes":
            table.unknown = next(name for name in names if not _COLUMN.fullmatch(name))
        return False
    if not table.columns:
        table.columns = tuple(names)
    return table.columns == tuple(names)


def _row(table: ImbTable, number: int, line: str) -> bool:
    values = figures(line.split())
    if values is None or not table.columns or len(values) != len(table.columns):
        return False
    table.rows.append(ImbRow(number, tuple(values)))
    return True


@dataclass(frozen=True)
class _Benchmark:
    """Properties of a benchmark.

    `messages`: messages that a rank sends in the printed time; `directions`: number of times that bytes are counted.
    """

    kernel: Kernel
    messages: int = 1
    directions: int = 1


_KNOWN: Mapping[str, _Benchmark] = {
    "PingPong": _Benchmark(LATENCY),
    "PingPongSpecificSource": _Benchmark(LATENCY),
    "PingPongAnySource": _Benchmark(LATENCY),
    "PingPing": _Benchmark(EXCHANGE),
    "PingPingSpecificSource": _Benchmark(EXCHANGE),
    "PingPingAnySource": _Benchmark(EXCHANGE),
    "Sendrecv": _Benchmark(EXCHANGE, directions=2),
    "Exchange": _Benchmark(EXCHANGE, messages=2, directions=4),  # two neighbours, which are the same of two ranks
    "Uniband": _Benchmark(BANDWIDTH),
    "Biband": _Benchmark(BIBANDWIDTH, directions=2),
}
_HALF = 0.005  # of the last of two decimals


def read_imb(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import each benchmark as a row: of pairs if a line is of two ranks, else of all ranks together."""
    parsed = parse_imb(text_of(data))
    bodies: list[Body] = []
    skipped: list[LeftOut] = [*left_out(parsed.foreign)]
    ranks, started = 2, 0
    words = distinct_captions((table.name, table.caption) for table in parsed.tables)
    for table in parsed.tables:
        started = max(started, _ranks(table), table.processes + table.waiting)
        if table.name not in _KNOWN:
            skipped.append(LeftOut(table.line, f"Benchmarking {table.name}", "not a benchmark of pairs"))
            continue
        if table.unknown:
            problem = f"line {table.line}: the column '{table.unknown}' is not known"
            raise UsageError(problem, "run the benchmark without the option that prints it")
        ranks = max(ranks, _ranks(table))
        skipped += table.stopped
        bodies += _bodies(table, _KNOWN[table.name], skipped, words[table.name, table.caption])
    stopped = [line for table in parsed.tables for line in table.stopped if table.name in _KNOWN]
    return Imported(
        tool=f"imb {parsed.version}".strip(),
        rank_names=ranks_named(max(ranks, started if len(hosts) == started else 0), hosts) if bodies else (),
        bodies=tuple(bodies),
        left_out=tuple(sorted(skipped, key=lambda line: line.line)),
        missing="; ".join([*(line.why for line in stopped[:1]), *([] if parsed.ended else ["its end is missing"])]),
    )


def _ranks(table: ImbTable) -> int:
    named = max((rank for group in (table.order, *table.groups.values()) for rank in group), default=1) + 1
    if max(named, table.processes) > MOST_RANKS:
        raise UsageError(f"line {table.line}: {max(named, table.processes)} ranks", "the text is damaged")
    return max(named, table.processes)


def _bodies(table: ImbTable, benchmark: _Benchmark, skipped: list[LeftOut], words: str) -> list[Body]:
    """Bodies of a table: lines of a group or of the only two ranks are of a pair, other lines are of all ranks.

    `words` are those of its caption that other tables of the benchmark do not have.
    """
    entries, fabric = [], []
    counts: list[int] = []
    figureless: list[tuple[int, int]] = []
    damage = [(_pair(table, row), row) for row in table.rows if (table.value(row, "defects") or 0) > 0]
    checked = "defects" in table.columns
    for row in table.rows:
        size, repetitions = table.value(row, "#bytes"), table.value(row, "#repetitions")
        times, pair = _times(table, benchmark, row), _pair(table, row)
        if size is None or not 0 <= size < 1 << 62 or "mean" not in times:
            skipped.append(LeftOut(row.line, " ".join(f"{value:g}" for value in row.values), "no time of a message"))
            figureless += [pair] if pair else []
            continue
        if pair is None:
            fabric.append((int(size), times))
        else:
            entries.append((*pair, int(size), times["mean"]))
            counts.append(int(min(max(repetitions or 1, 1), 1 << 31)))
    facts: dict[str, Any] = {"variant": " ".join(filter(None, [table.name, table.mode, words]))}
    facts |= {"memory": table.memory} if table.memory else {}
    bodies = []
    if entries:
        cells = with_unmeasured(cells_of(entries, count=counts), figureless)
        ends = len({*figureless, *(entry[:2] for entry in entries)})
        pattern = "pair" if ends == 1 else "pairs"
        # All groups of -multi run at once, and a single pair is a round.
        body = Body(benchmark.kernel.name, benchmark.kernel, cells, [ends], "parallel", pattern, facts)
        wrong = [
            Damage(int(table.value(row, "#bytes") or 0), *ends)
            for pair, row in damage
            if pair
            for ends in (pair, pair[::-1])
        ]
        bodies.append(replace(body, checked=checked, damage=tuple(wrong)))
    if fabric:
        body = world_body(benchmark.kernel.name, benchmark.kernel, fabric, **facts)
        wrong = [Damage(int(table.value(row, "#bytes") or 0)) for pair, row in damage if not pair]
        bodies.append(replace(body, checked=checked, damage=tuple(wrong)))
    return bodies


def _pair(table: ImbTable, row: ImbRow) -> tuple[int, int] | None:
    """Pair of a figure; None if the figure is of several pairs."""
    group = table.value(row, "Group")
    groups = list(table.groups.values())
    if group is not None:
        ranks = table.groups.get(int(group), []) if group == group else []
    elif table.multi:
        ranks = groups[0] if len(groups) == 1 else []
    else:
        ranks = (table.order or [0, 1]) if table.processes == 2 else []
    return (ranks[0], ranks[1]) if len(ranks) == 2 and ranks[0] != ranks[1] else None


def _times(table: ImbTable, benchmark: _Benchmark, row: ImbRow) -> dict[str, float]:
    """Seconds per message, by statistic. A time has a resolution of 10 ns; a rate has more digits for long messages."""
    size = table.value(row, "#bytes") or 0.0
    if benchmark.kernel.quantity == "bandwidth" and size == 0:
        return {}  # a stream of empty messages has no bandwidth
    time, rate = table.value(row, "t[usec]", "t_avg[usec]"), table.value(row, "Mbytes/sec")
    messages = table.value(row, "Msg/sec")
    pairs = max(1, table.processes // 2) if not table.multi else 1
    streams = benchmark.directions * pairs
    seconds: dict[str, float | None] = {}
    if benchmark.kernel.quantity == "latency":
        scale = 1e-6 / benchmark.messages
        seconds["mean"] = None if time is None else time * scale
        for name, column in (("min", "t_min[usec]"), ("max", "t_max[usec]")):
            value = table.value(row, column)
            seconds[name] = None if value is None else value * scale
    else:
        unit = _unit(rate, messages, size)
        seconds["mean"] = sharpest(
            (rate, _HALF, size * streams / (rate * unit) if rate else 0.0),
            (messages, 0.5, streams / messages if messages else 0.0),
        )
    return {name: value for name, value in seconds.items() if value is not None and measurable(value)}


def _unit(rate: float | None, messages: float | None, size: float) -> float:
    """Bytes of an Mbyte: those with which the rate is nearest to that of the messages; 10^6 where it is not printed."""
    if not rate or not messages or not size:
        return 1e6
    return min((1e6, 2.0**20), key=lambda unit: abs(math.log(rate * unit / (messages * size))))
