"""Plain CSV -> numbers: `src,dst,size` and one column of figures, whose name says what it is and in which unit."""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fablint.errors import UsageError
from fablint.store.importing.cells import (
    BANDWIDTH,
    LATENCY,
    Body,
    Cells,
    Imported,
    LeftOut,
    Seat,
    measurable,
    no_hosts_wanted,
    times_before,
    with_unmeasured,
)
from fablint.store.importing.lines import INTEGER, figure, text_of

MARK = re.compile(
    rb"^(?:\xef\xbb\xbf)?(?:#[^\n]*\n|\s*\n)*(?=[^\n]*\bsrc\b)(?=[^\n]*\bdst\b)(?=[^\n]*\bsize\b)"
    rb"[\w \",/-]*\b(?:time|bandwidth)(?:_us)?\b[^\n]*"
)

# Column -> seconds per message of a figure and a size. A time is half a round trip, MB/s are 10^6 bytes/s.
FIGURES = ("time", "time_us", "bandwidth")
CUT = "without a line end it may be cut off"
_WHERE = ("src", "dst", "size")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHOWN = 80  # characters of a line in a message


@dataclass
class CsvPairs:
    """In columns, an entry for each line that has a figure: index into `names`, bytes, seconds."""

    column: str
    names: dict[str, int] = field(default_factory=dict)
    src: array[int] = field(default_factory=lambda: array("q"))
    dst: array[int] = field(default_factory=lambda: array("q"))
    size: array[int] = field(default_factory=lambda: array("q"))
    seconds: array[float] = field(default_factory=lambda: array("d"))
    figureless: set[tuple[int, int]] = field(default_factory=set)  # pairs of lines that say nothing of them
    left_out: list[LeftOut] = field(default_factory=list)


def parse_csv(text: str) -> CsvPairs:
    """Read pairs from CSV. Blank lines and lines that begin with # are passed over; further columns are ignored.

    Raises:
        UsageError: the first line does not name the columns.
    """
    cut, last = not text.endswith("\n"), text.count("\n") + 1
    found: CsvPairs | None = None
    places: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        words = _words(line)
        if not any(words) or words[0].startswith("#"):
            continue
        if cut and number == last and found is not None:  # a figure without its last digits is another one
            found.left_out.append(LeftOut(number, ",".join(words)[:_SHOWN], CUT))
            _take(found, [*words[:-1], ""], places)  # its hosts, where these are whole
        elif found is None:
            found, places = _header(words)
        elif why := _take(found, words, places):
            found.left_out.append(LeftOut(number, ",".join(words)[:_SHOWN], why))
    if found is None:
        raise UsageError("no line of CSV in this text", f"begin it with {','.join(_WHERE)},bandwidth")
    return found


def _words(line: str) -> list[str]:
    """The columns of a line by itself: a quotation mark that is never closed must not swallow the lines behind it."""
    try:
        return next(csv.reader([line.removesuffix("\r")], skipinitialspace=True), [])
    except csv.Error:
        return ["?"]


def _header(words: Sequence[str]) -> tuple[CsvPairs, list[int]]:
    names = [word.strip().lower() for word in words]
    figures = [name for name in FIGURES if name in names]
    lacking = [name for name in _WHERE if name not in names]
    if lacking or len(figures) != 1:
        what = f"no column {lacking[0]}" if lacking else f"not one column of {', '.join(FIGURES)}"
        raise UsageError(
            f"the header '{','.join(words)[:_SHOWN]}' has {what}",
            "name src, dst, size and one of time (s), time_us or bandwidth (MB/s)",
        )
    return CsvPairs(figures[0]), [names.index(name) for name in (*_WHERE, figures[0])]


def _take(found: CsvPairs, words: Sequence[str], places: Sequence[int]) -> str:
    """Take the figures of a line; returns why it cannot be taken."""
    if len(words) <= max(places):
        return "too few columns"
    src, dst, size, value = (words[place].strip() for place in places)
    if not (_end(src) and _end(dst)) or src == dst:
        return "src and dst are not two hosts"
    ends = tuple(found.names.setdefault(name, len(found.names)) for name in (src, dst))
    seconds = _seconds(found.column, figure(value), int(size)) if re.fullmatch(INTEGER, size) else None
    if seconds is None or not measurable(seconds):
        found.figureless.add((ends[0], ends[1]))  # its hosts took part: what is missing of them is not judged
        sized = re.fullmatch(INTEGER, size)
        return f"{found.column} is no figure above 0" if sized else "size is no number of bytes"
    for end, column in zip(ends, (found.src, found.dst), strict=True):
        column.append(end)
    found.size.append(int(size))
    found.seconds.append(seconds)
    return ""


def _end(name: str) -> bool:
    return bool(_HOST.fullmatch(name.partition(":")[0]))


def _seconds(column: str, value: float | None, size: int) -> float | None:
    if value is None or value <= 0:
        return None
    if column == "bandwidth":
        return size / (value * 1e6)
    return value * (1e-6 if column == "time_us" else 1.0)


def read_csv(data: bytes, hosts: Sequence[str]) -> Imported:
    """A time is half a round trip (row `latency`), a bandwidth that of a one-way stream (row `bandwidth`).

    `host:3` is a rank of a host on which there are several. Which pairs ran at the same time is not known.
    """
    no_hosts_wanted(hosts)
    found = parse_csv(text_of(data))
    kernel = BANDWIDTH if found.column == "bandwidth" else LATENCY
    src, dst, size = (np.array(column, np.int64) for column in (found.src, found.dst, found.size))
    zeros = np.zeros(src.size, np.int64)
    measured = Cells(src, dst, size, zeros, zeros + 1, {"mean": np.array(found.seconds, float)})
    cells = with_unmeasured(measured, found.figureless)
    repeat = times_before(np.stack([cells.src, cells.dst, cells.size]))
    planned = int(np.unique(np.stack([cells.src, cells.dst, repeat]), axis=1).shape[1])
    return Imported(
        tool="csv",
        seats=tuple(_seat(name) for name in found.names),
        bodies=(Body(kernel.name, kernel, cells, [planned]),),
        left_out=tuple(found.left_out),
        missing="the last line is cut off" if any(one.why == CUT for one in found.left_out) else "",
    )


def _seat(name: str) -> Seat:
    host, _, rank = name.partition(":")
    return Seat(host, rank)
