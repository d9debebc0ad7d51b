"""Plain CSV -> numbers: `src,dst,size` and one column of figures, whose name gives the quantity and the unit.

`round` and `started` hold the round and the start of a measurement, if the program that wrote the file records them.
"""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fablint.errors import UsageError
from fablint.model.arrays import Floats
from fablint.model.figures.percentiles import Statistic
from fablint.store.importing.cells import (
    BANDWIDTH,
    LATENCY,
    Body,
    Cells,
    Imported,
    LeftOut,
    Order,
    RankName,
    measurable,
    needed,
    refuse_hosts,
    times_before,
)
from fablint.store.importing.lines import INTEGER, figure, text_of

MARK = re.compile(
    rb"^(?:\xef\xbb\xbf)?(?:#[^\n]*\n|\s*\n)*(?=[^\n]*\bsrc\b)(?=[^\n]*\bdst\b)(?=[^\n]*\bsize\b)"
    rb"[\w \",/-]*\b(?:time|bandwidth)(?:_us)?\b[^\n]*"
)

# Column -> seconds per message of a figure and a size. A time is half a round trip, MB/s are 10^6 bytes/s.
FIGURES = ("time", "time_us", "bandwidth")
CUT = "without a line end it may be cut off"
NO_PAIR, SHORT, CUT_SHORT = "src and dst are not two hosts", "too few columns", "too few columns behind its pair"
_WHERE = ("src", "dst", "size")
_WHEN = ("round", "started")  # optional columns
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?::[^\s:,]*)?")
_SHOWN = 80  # characters of a line in a message


@dataclass
class CsvPairs:
    """In columns, an entry for each line that names a pair: index into `names`, bytes, seconds, round, s.

    Attributes
    ----------
    places
        Positions of src, dst, size and the figure in a line.
    when
        Positions of `round` and `started`, if the file has them.
    size
        -1 if it cannot be read.
    seconds
        NaN if the line has no figure.
    round
        -1 if it cannot be read; 0 in all lines without that column.
    """

    column: str
    places: tuple[int, ...] = ()
    when: dict[str, int] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    src: array[int] = field(default_factory=lambda: array("q"))
    dst: array[int] = field(default_factory=lambda: array("q"))
    size: array[int] = field(default_factory=lambda: array("q"))
    seconds: array[float] = field(default_factory=lambda: array("d"))
    round: array[int] = field(default_factory=lambda: array("q"))
    started: array[float] = field(default_factory=lambda: array("d"))
    left_out: list[LeftOut] = field(default_factory=list)
    pairless: int = 0


def parse_csv(text: str) -> CsvPairs:
    """Read pairs from CSV. Blank lines and lines that begin with # are skipped; further columns are ignored.

    Raises
    ------
    UsageError
        The first line does not name the columns.
    """
    cut, last = not text.endswith("\n"), text.count("\n") + 1
    parsed: CsvPairs | None = None
    for number, line in enumerate(text.split("\n"), 1):
        words = _words(line)
        if not any(words) or words[0].startswith("#"):
            continue
        if parsed is None:
            parsed = _header(words)
            continue
        if cut and number == last:  # a figure without its last digits is another figure
            parsed.left_out.append(LeftOut(number, ",".join(words)[:_SHOWN], CUT))
            _take(parsed, [*words[:-1], ""])  # its hosts, if they are complete
        elif why := _take(parsed, words):
            parsed.left_out.append(LeftOut(number, ",".join(words)[:_SHOWN], why))
            parsed.pairless += why in (NO_PAIR, SHORT)
    if parsed is None:
        raise UsageError("the text has no line of CSV", f"begin it with {','.join(_WHERE)},bandwidth")
    return parsed


def _words(line: str) -> list[str]:
    """Columns of a single line: a quotation mark that is never closed must not extend over the following lines."""
    try:
        return next(csv.reader([line.removesuffix("\r")], skipinitialspace=True), [])
    except csv.Error:
        return ["?"]


def _header(words: Sequence[str]) -> CsvPairs:
    names = [word.strip().lower() for word in words]
    figures = [name for name in FIGURES if name in names]
    lacking = [name for name in _WHERE if name not in names]
    if lacking or len(figures) != 1:
        problem = f"no column {lacking[0]}" if lacking else f"not one column of {', '.join(FIGURES)}"
        raise UsageError(
            f"the header '{','.join(words)[:_SHOWN]}' has {problem}",
            "name src, dst, size and one of time (s), time_us or bandwidth (MB/s)",
        )
    places = tuple(names.index(name) for name in (*_WHERE, figures[0]))
    return CsvPairs(figures[0], places, {name: names.index(name) for name in _WHEN if name in names})


def _take(parsed: CsvPairs, words: Sequence[str]) -> str:
    """Add the pair of a line; return the reason why it has no usable figure, or ''.

    The hosts of such a line count as participants: their missing figures are reported as not judged.
    """
    src, dst, size, value = (words[at].strip() if at < len(words) else "" for at in parsed.places)
    whole = len(words) > max(*parsed.places, *parsed.when.values())
    hosts = [name for name in (src, dst) if _HOST.fullmatch(name)]
    if whole or len(hosts) == 2:  # a line of another program may hold anything
        for name in hosts:
            parsed.names.setdefault(name, len(parsed.names))
    if len(hosts) < 2 or src == dst:
        return NO_PAIR if whole else SHORT
    bytes_ = int(size) if re.fullmatch(INTEGER, size) else -1
    seconds = _seconds(parsed.column, figure(value), bytes_) if bytes_ >= 0 else None
    number, started, when_wrong = _when(parsed, words)
    if bytes_ < 0:
        why = "size is not a number of bytes" if whole else CUT_SHORT
    elif not whole:
        why = CUT_SHORT
    elif seconds is None or not measurable(seconds):
        why = f"{parsed.column} is not a figure above 0"
    else:
        why = when_wrong
    row = (parsed.names[src], parsed.names[dst], bytes_, number)
    for entry, column in zip(row, (parsed.src, parsed.dst, parsed.size, parsed.round), strict=True):
        column.append(entry)
    parsed.seconds.append(math.nan if why or seconds is None else seconds)
    parsed.started.append(started)
    return why


def _when(parsed: CsvPairs, words: Sequence[str]) -> tuple[int, float, str]:
    """Round and start of a line, and the error in them or ''."""
    fields = {name: words[at].strip() if at < len(words) else "" for name, at in parsed.when.items()}
    started = figure(fields.get("started") or "nan")
    if "round" in fields and not re.fullmatch(INTEGER, fields["round"]):
        return -1, math.nan, "round is not a non-negative integer"
    if fields.get("started", "nan").lower() not in ("", "nan") and started is None:
        return int(fields.get("round", 0)), math.nan, "started is not a number of seconds"
    return int(fields.get("round", 0)), math.nan if started is None else started, ""


def _seconds(column: str, value: float | None, size: int) -> float | None:
    if value is None or value <= 0:
        return None
    if column == "bandwidth":
        return size / (value * 1e6)
    return value * (1e-6 if column == "time_us" else 1.0)


def read_csv(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import pairs: a time is half a round trip (row `latency`), a bandwidth that of a one-way stream (row
    `bandwidth`).

    `host:3` is a rank of a host with several ranks. Pairs of the same `round` ran at the same time; without that column
    concurrency is not known.
    """
    refuse_hosts(hosts)
    parsed = parse_csv(text_of(data))
    kernel = BANDWIDTH if parsed.column == "bandwidth" else LATENCY
    cells, planned = _cells(parsed)
    order = _order(cells) if "round" in parsed.when else "unknown"
    return Imported(
        tool="csv",
        rank_names=tuple(_rank_name(name) for name in parsed.names),
        bodies=(Body(kernel.name, kernel, cells, planned, order, is_listed=True),),
        left_out=tuple(parsed.left_out),
        pairless=parsed.pairless,
        missing="the last line is cut off" if any(line.why == CUT for line in parsed.left_out) else "",
    )


def _order(cells: Cells) -> Order:
    """`serial` if no round has two pairs, in either direction."""
    pairs = np.stack([cells.round, np.minimum(cells.src, cells.dst), np.maximum(cells.src, cells.dst)])
    alone = np.unique(pairs, axis=1).shape[1] == np.unique(cells.round).size
    return "serial" if alone else "parallel"


def _cells(parsed: CsvPairs) -> tuple[Cells, list[int]]:
    """Cells, and the planned number of cells of each round."""
    src, dst, size, number = (
        np.array(column, np.int64) for column in (parsed.src, parsed.dst, parsed.size, parsed.round)
    )
    size[size < 0] = max(parsed.size, default=0)
    number[number < 0] = max(parsed.round, default=0) + 1  # a separate round
    number = np.unique(number, return_inverse=True)[1].reshape(-1)
    started = np.array(parsed.started, float) if "started" in parsed.when else None
    seconds: dict[Statistic, Floats] = {"mean": np.array(parsed.seconds, float)}
    cells = Cells(src, dst, size, number, np.ones_like(src), seconds, started)
    # A pair that another line measures is complete, unless the file declares different rounds.
    counted = cells if "round" in parsed.when else needed(cells)
    repeat = times_before(np.stack([counted.round, counted.src, counted.dst, counted.size]))
    pairs = np.unique(np.stack([counted.round, counted.src, counted.dst, repeat]), axis=1)  # at all sizes
    return replace(cells, count=np.where(cells.measured, 1, 0)), np.bincount(pairs[0]).tolist()


def _rank_name(name: str) -> RankName:
    host, _, rank = name.partition(":")
    return RankName(host, rank)
