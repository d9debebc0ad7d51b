"""Plain CSV -> numbers: `src,dst,size` and one column of figures, whose name says what it is and in which unit.

`round` and `started` say in which round and when a pair was measured, where the program that wrote the file knows.
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
    no_hosts_wanted,
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
_WHEN = ("round", "started")  # columns that may be left out
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?::[^\s:,]*)?")
_SHOWN = 80  # characters of a line in a message


@dataclass
class CsvPairs:
    """In columns, an entry for each line that names a pair: index into `names`, bytes, seconds, round, s.

    Attributes:
        places: of src, dst, size and the figure in a line.
        when: of `round` and `started`, where they are there.
        size: -1 where it cannot be read.
        seconds: NaN where the line has no figure.
        round: -1 where it cannot be read; 0 in all lines without that column.
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
    """Read pairs from CSV. Blank lines and lines that begin with # are passed over; further columns are ignored.

    Raises:
        UsageError: the first line does not name the columns.
    """
    cut, last = not text.endswith("\n"), text.count("\n") + 1
    found: CsvPairs | None = None
    for number, line in enumerate(text.split("\n"), 1):
        words = _words(line)
        if not any(words) or words[0].startswith("#"):
            continue
        if found is None:
            found = _header(words)
            continue
        if cut and number == last:  # a figure without its last digits is another one
            found.left_out.append(LeftOut(number, ",".join(words)[:_SHOWN], CUT))
            _take(found, [*words[:-1], ""])  # its hosts, where these are whole
        elif why := _take(found, words):
            found.left_out.append(LeftOut(number, ",".join(words)[:_SHOWN], why))
            found.pairless += why in (NO_PAIR, SHORT)
    if found is None:
        raise UsageError("no line of CSV in this text", f"begin it with {','.join(_WHERE)},bandwidth")
    return found


def _words(line: str) -> list[str]:
    """The columns of a line by itself: a quotation mark that is never closed must not swallow the lines behind it."""
    try:
        return next(csv.reader([line.removesuffix("\r")], skipinitialspace=True), [])
    except csv.Error:
        return ["?"]


def _header(words: Sequence[str]) -> CsvPairs:
    names = [word.strip().lower() for word in words]
    figures = [name for name in FIGURES if name in names]
    lacking = [name for name in _WHERE if name not in names]
    if lacking or len(figures) != 1:
        what = f"no column {lacking[0]}" if lacking else f"not one column of {', '.join(FIGURES)}"
        raise UsageError(
            f"the header '{','.join(words)[:_SHOWN]}' has {what}",
            "name src, dst, size and one of time (s), time_us or bandwidth (MB/s)",
        )
    places = tuple(names.index(name) for name in (*_WHERE, figures[0]))
    return CsvPairs(figures[0], places, {name: names.index(name) for name in _WHEN if name in names})


def _take(found: CsvPairs, words: Sequence[str]) -> str:
    """Take what a line says; returns why it has no figure that can be used.

    The hosts of such a line took part all the same: what is missing of them is not judged.
    """
    src, dst, size, value = (words[at].strip() if at < len(words) else "" for at in found.places)
    whole = len(words) > max(*found.places, *found.when.values())
    hosts = [name for name in (src, dst) if _HOST.fullmatch(name)]
    if whole or len(hosts) == 2:  # else a line of another program may be anything
        for name in hosts:
            found.names.setdefault(name, len(found.names))
    if len(hosts) < 2 or src == dst:
        return NO_PAIR if whole else SHORT
    bytes_ = int(size) if re.fullmatch(INTEGER, size) else -1
    seconds = _seconds(found.column, figure(value), bytes_) if bytes_ >= 0 else None
    number, started, when_wrong = _when(found, words)
    if bytes_ < 0:
        why = "size is no number of bytes" if whole else CUT_SHORT
    elif not whole:
        why = CUT_SHORT
    elif seconds is None or not measurable(seconds):
        why = f"{found.column} is no figure above 0"
    else:
        why = when_wrong
    row = (found.names[src], found.names[dst], bytes_, number)
    for one, column in zip(row, (found.src, found.dst, found.size, found.round), strict=True):
        column.append(one)
    found.seconds.append(math.nan if why or seconds is None else seconds)
    found.started.append(started)
    return why


def _when(found: CsvPairs, words: Sequence[str]) -> tuple[int, float, str]:
    """Round and start of a line, and what is wrong with them."""
    told = {name: words[at].strip() if at < len(words) else "" for name, at in found.when.items()}
    started = figure(told.get("started") or "nan")
    if "round" in told and not re.fullmatch(INTEGER, told["round"]):
        return -1, math.nan, "round is no number from 0"
    if told.get("started", "nan").lower() not in ("", "nan") and started is None:
        return int(told.get("round", 0)), math.nan, "started is no number of seconds"
    return int(told.get("round", 0)), math.nan if started is None else started, ""


def _seconds(column: str, value: float | None, size: int) -> float | None:
    if value is None or value <= 0:
        return None
    if column == "bandwidth":
        return size / (value * 1e6)
    return value * (1e-6 if column == "time_us" else 1.0)


def read_csv(data: bytes, hosts: Sequence[str]) -> Imported:
    """A time is half a round trip (row `latency`), a bandwidth that of a one-way stream (row `bandwidth`).

    `host:3` is a rank of a host on which there are several. Pairs of the same `round` ran at the same time; without
    that column it is not known which did.
    """
    no_hosts_wanted(hosts)
    found = parse_csv(text_of(data))
    kernel = BANDWIDTH if found.column == "bandwidth" else LATENCY
    cells, planned = _cells(found)
    return Imported(
        tool="csv",
        rank_names=tuple(_rank_name(name) for name in found.names),
        bodies=(Body(kernel.name, kernel, cells, planned, _order(cells) if "round" in found.when else "unknown"),),
        left_out=tuple(found.left_out),
        pairless=found.pairless,
        missing="the last line is cut off" if any(one.why == CUT for one in found.left_out) else "",
    )


def _order(cells: Cells) -> Order:
    """`serial` where no round has two pairs, in whichever direction."""
    pairs = np.stack([cells.round, np.minimum(cells.src, cells.dst), np.maximum(cells.src, cells.dst)])
    alone = np.unique(pairs, axis=1).shape[1] == np.unique(cells.round).size
    return "serial" if alone else "parallel"


def _cells(found: CsvPairs) -> tuple[Cells, list[int]]:
    """The cells, and how many each round should have."""
    src, dst, size, number = (np.array(column, np.int64) for column in (found.src, found.dst, found.size, found.round))
    size[size < 0] = max(found.size, default=0)
    number[number < 0] = max(found.round, default=0) + 1  # a round of their own
    number = np.unique(number, return_inverse=True)[1].reshape(-1)
    started = np.array(found.started, float) if "started" in found.when else None
    seconds = {"mean": np.array(found.seconds, float)}
    cells = Cells(src, dst, size, number, np.ones_like(src), seconds, started)
    # A pair that another line measures lacks nothing, unless the file says that this was another round.
    counted = cells if "round" in found.when else needed(cells)
    repeat = times_before(np.stack([counted.round, counted.src, counted.dst, counted.size]))
    pairs = np.unique(np.stack([counted.round, counted.src, counted.dst, repeat]), axis=1)  # at all sizes
    return replace(cells, count=np.where(cells.measured, 1, 0)), np.bincount(pairs[0]).tolist()


def _rank_name(name: str) -> RankName:
    host, _, rank = name.partition(":")
    return RankName(host, rank)
