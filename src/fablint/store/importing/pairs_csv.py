"""Plain CSV -> numbers: pairs of hosts, sizes, and columns of figures whose names give the quantity and the unit.

`round` and `started` hold the round and the start of a measurement, if the program that wrote the file records them.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fablint.errors import UsageError
from fablint.model.arrays import Floats, Mask
from fablint.model.figures.percentiles import Statistic
from fablint.model.host_name import unified
from fablint.model.names import plural
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
from fablint.store.importing.csv_columns import (
    CsvFigure,
    columns_of,
    factor_of,
    heading_of,
    is_heading,
    is_preface,
    words_of,
)
from fablint.store.importing.csv_numbers import decimal_mark, plain_figure
from fablint.store.importing.lines import INTEGER, figure, text_of

CUT = "without a line end it may be cut off"
NO_PAIR, SHORT, CUT_SHORT = "src and dst are not two hosts", "too few columns", "too few columns behind its pair"
DIAGONAL, STATISTIC = "src and dst are the same", "a statistic and no pair"
_NOTHING = ("", "-", "nan", "-nan", "na", "n/a", "none", "null")  # in an empty cell; 0 is a figure that cannot be
_STATISTICS = ("average", "avg", "mean", "median", "min", "max", "total", "sum", "std", "stdev", "stddev")
_WHERE = ("src", "dst", "size")
_WHEN = ("round", "started")  # optional columns
_HOST = re.compile(
    r"(?P<host>[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::(?P<rank>[^\s:,]*))?"
    r"|[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*"  # an IPv6 address
)
_SIZE = re.compile(r"(?P<count>[0-9]{1,18}|[0-9]{1,3}(?:,[0-9]{3}){1,5})(?: ?(?P<prefix>[KMGkmg])(?:iB)?)?")
_WHOLE = re.compile(r"(?<=[0-9])\.0+$")  # of a size in a column of floats
_ROUNDED = 0.02  # relative difference of one figure in two units
_LONGEST_PREFACE = 1 << 16  # bytes of comments before the heading
_SHOWN = 80  # characters of a line in a message


@dataclass
class CsvPairs:
    """Columns with an entry for each line that names a pair: index into `names`, bytes, seconds, round, s.

    Attributes
    ----------
    figure
        The column of figures.
    places
        Positions of src, dst, size and the figure in a line.
    others
        Positions of the other columns of figures.
    separator
        Between columns.
    mark
        That of the decimals; '' if the file does not show it.
    unit
        Position of the unit of the figure, if the file has it.
    when
        Positions of `round` and `started`, if the file has them.
    size
        -1 if it cannot be read.
    seconds
        NaN if the line has no figure.
    elsewhere
        Whether another column of the line has a figure, and this one is empty.
    round
        -1 if it cannot be read; 0 in all lines without that column.
    diagonal
        Lines of a rank with itself: they are no pair, whatever their figure is.
    rows
        Other lines below the heading.
    digits
        Digits of all its figures.
    """

    figure: CsvFigure
    places: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    separator: str = ","
    mark: str = ""
    unit: int | None = None
    when: dict[str, int] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    src: array[int] = field(default_factory=lambda: array("q"))
    dst: array[int] = field(default_factory=lambda: array("q"))
    size: array[int] = field(default_factory=lambda: array("q"))
    seconds: array[float] = field(default_factory=lambda: array("d"))
    elsewhere: array[int] = field(default_factory=lambda: array("b"))
    round: array[int] = field(default_factory=lambda: array("q"))
    started: array[float] = field(default_factory=lambda: array("d"))
    left_out: list[LeftOut] = field(default_factory=list)
    pairless: int = 0
    diagonal: int = 0
    rows: int = 0
    digits: int = 0

    def plain(self, text: str) -> str:
        """Return a figure with a decimal point and without marks of groups."""
        return plain_figure(text, self.mark, between_commas=self.separator == ",")


def is_csv(head: bytes, _: int) -> bool:
    """Return whether a text begins with the heading of such a file."""
    return is_heading(heading_of(head[:_LONGEST_PREFACE].decode("utf-8-sig", errors="replace")))


def parse_csv(text: str) -> list[CsvPairs]:
    """Read pairs from CSV, for each column of figures. Blank lines and lines that begin with # are skipped.

    Raises
    ------
    UsageError
        The first line does not name the columns.
    """
    heading = heading_of(text)
    if not heading:
        raise UsageError("the text has no line of CSV", f"begin it with {','.join(_WHERE)},bandwidth")
    columns = columns_of(heading)
    when = {name: columns.places[name] for name in _WHEN if name in columns.places}
    where = tuple(columns.places[name] for name in _WHERE)
    unit, figures = columns.places.get("unit"), [at for at, _ in columns.figures]
    mark = decimal_mark(_written(text, columns.separator, figures))
    tables = [
        CsvPairs(column, (*where, at), tuple({*figures} - {at}), columns.separator, mark, unit, when)
        for at, column in columns.figures
    ]
    cut, last = not text.endswith("\n"), text.count("\n") + 1
    size, first = columns.places["size"], list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        words = words_of(line, columns.separator)
        if not any(words) or is_preface(line.strip()):
            continue
        if not first:
            first = words
            continue
        if words == first:  # of the next of several files in this
            continue
        if not "".join(words[size : size + 1])[:1].isdigit() and is_heading(line):
            raise UsageError(f"line {number}: another heading, '{line[:_SHOWN]}'", "give each table in its own file")
        for parsed in tables:
            _line(parsed, number, words, is_cut=cut and number == last)
    for parsed in tables:
        _merge_spellings(parsed)
    return _once(tables)


def _merge_spellings(parsed: CsvPairs) -> None:
    """Make one rank of the spellings of its host; lines of a rank with itself are of the diagonal."""
    ranks = [_rank_name(name) for name in parsed.names]
    spelled = unified(rank.host for rank in ranks)
    places: dict[RankName, int] = {}
    place = [places.setdefault(replace(rank, host=spelled[rank.host]), len(places)) for rank in ranks]
    if len(places) == len(ranks):
        return
    first: dict[int, str] = {}
    for name, at in zip(parsed.names, place, strict=True):
        first.setdefault(at, name)
    parsed.names = {name: at for at, name in first.items()}
    ends = [(place[src], place[dst]) for src, dst in zip(parsed.src, parsed.dst, strict=True)]
    kept = [at for at, (src, dst) in enumerate(ends) if src != dst]
    parsed.diagonal += len(ends) - len(kept)
    parsed.rows -= len(ends) - len(kept)
    parsed.src, parsed.dst = (array("q", (ends[at][end] for at in kept)) for end in (0, 1))
    for name in ("size", "seconds", "elsewhere", "round", "started"):
        column = getattr(parsed, name)
        setattr(parsed, name, array(column.typecode, (column[at] for at in kept)))


def _written(text: str, separator: str, places: Sequence[int]) -> Iterator[str]:
    """Yield the figures of a text as they are written; none where they cannot have a comma."""
    if separator != "," or '"' in text:
        for line in text.split("\n") if "," in text else ():
            words = words_of(line, separator)
            yield from (words[at] for at in places if at < len(words))


def _once(tables: Sequence[CsvPairs]) -> list[CsvPairs]:
    """Return the column with the most digits of those that state the same figures in other units.

    Raises
    ------
    UsageError
        Two columns of one quantity differ.
    """
    chosen: dict[str, CsvPairs] = {}
    for parsed in tables:
        other = chosen.setdefault(parsed.figure.quantity, parsed)
        if other is parsed:
            continue
        pairs = np.array([other.seconds, parsed.seconds])
        pairs = pairs[:, np.isfinite(pairs).all(axis=0)]
        if not np.allclose(pairs[0], pairs[1], rtol=_ROUNDED, atol=0):
            problem = f"the columns '{other.figure.name}' and '{parsed.figure.name}' have different figures"
            raise UsageError(problem, "give the file without one of them")
        if parsed.digits > other.digits:
            chosen[parsed.figure.quantity] = parsed
    return list(chosen.values())


def _line(parsed: CsvPairs, number: int, words: Sequence[str], *, is_cut: bool) -> None:
    """Add a line; one that is cut off has a figure without its last digits, which is another figure."""
    why = _take(parsed, [*words[:-1], ""] if is_cut else words)  # of a line that is cut off its hosts
    parsed.diagonal += why == DIAGONAL
    parsed.rows += why != DIAGONAL
    if is_cut or why not in ("", DIAGONAL):
        parsed.left_out.append(LeftOut(number, ",".join(words)[:_SHOWN], CUT if is_cut else why))
        parsed.pairless += not is_cut and why in (NO_PAIR, SHORT)


def _take(parsed: CsvPairs, words: Sequence[str]) -> str:
    """Add the pair of a line; return the reason why it has no usable figure, or ''.

    The hosts of such a line count as participants: their missing figures are reported as not judged.
    """
    src, dst, size, value = (words[at].strip() if at < len(words) else "" for at in parsed.places)
    whole = len(words) > max(*parsed.places, *parsed.when.values())
    hosts = [name for name in (src, dst) if _HOST.fullmatch(name)]
    if len(hosts) == 1 and hosts[0].lower() in _STATISTICS:
        return STATISTIC
    if whole or len(hosts) == 2:  # a line of another program may hold anything
        for name in hosts:
            parsed.names.setdefault(name, len(parsed.names))
    if len(hosts) < 2 or (src == dst and not whole):
        return NO_PAIR if whole else SHORT
    if src == dst:
        return DIAGONAL
    bytes_, value = _bytes(size), parsed.plain(value)
    parsed.digits += sum(map(str.isdigit, value))
    unit = words[parsed.unit].strip() if parsed.unit is not None and parsed.unit < len(words) else ""
    seconds = _seconds(parsed.figure, value, unit, bytes_) if bytes_ >= 0 else None
    number, started, when_wrong = _when(parsed, words)
    others = (parsed.plain(words[at]) for at in parsed.others if at < len(words))
    elsewhere = value.lower() in _NOTHING and any(map(_above_0, others))
    if bytes_ < 0:
        why = "size is not a number of bytes" if whole else CUT_SHORT
    elif not whole:
        why = CUT_SHORT
    elif elsewhere:
        why = when_wrong
    else:
        why = _why_unusable(parsed.figure, value, unit, seconds) or when_wrong
    row = (parsed.names[src], parsed.names[dst], bytes_, number)
    for entry, column in zip(row, (parsed.src, parsed.dst, parsed.size, parsed.round), strict=True):
        column.append(entry)
    parsed.seconds.append(math.nan if why or seconds is None else seconds)
    parsed.elsewhere.append(elsewhere and not why)
    parsed.started.append(started)
    return why


def _why_unusable(column: CsvFigure, value: str, unit: str, seconds: float | None) -> str:
    """Return why a cell has no usable figure, or ''."""
    if seconds is not None and measurable(seconds):
        return ""
    if _above_0(value) and column.factor is None and factor_of(unit, column.quantity) is None:
        return f"the unit of {column.name} is " + (f"not known: '{unit}'" if unit else "missing")
    return f"{column.name} is not a figure above 0" + (f" in '{unit}'" if unit else "")


def _when(parsed: CsvPairs, words: Sequence[str]) -> tuple[int, float, str]:
    """Round and start of a line, and the error in them or ''."""
    fields = {name: words[at].strip() if at < len(words) else "" for name, at in parsed.when.items()}
    started = figure(fields.get("started") or "nan")
    if "round" in fields and not re.fullmatch(INTEGER, fields["round"]):
        return -1, math.nan, "round is not a non-negative integer"
    if fields.get("started", "nan").lower() not in ("", "nan") and started is None:
        return int(fields.get("round", 0)), math.nan, "started is not a number of seconds"
    return int(fields.get("round", 0)), math.nan if started is None else started, ""


def _seconds(column: CsvFigure, text: str, unit: str, size: int) -> float | None:
    """Return the seconds of a message; None without a figure above 0 or with an unknown unit."""
    value = _above_0(text)
    factor = column.factor if column.factor is not None else factor_of(unit, column.quantity)
    if value is None or factor is None:
        return None
    return size / (value * factor) if column.quantity == "bandwidth" else value * factor


def _bytes(text: str) -> int:
    """Return the bytes of a size as `1048576`, `1,048,576`, `1M` or `1 MiB`; -1 if it is none of these."""
    size = _SIZE.fullmatch(_WHOLE.sub("", text))
    if size is None:
        return -1
    count = int(size["count"].replace(",", "")) << (10 * " KMG".index((size["prefix"] or " ").upper()))
    return count if count < 1 << 62 else -1


def _above_0(text: str) -> float | None:
    """Return the figure of a cell if it is above 0."""
    value = figure(text)
    return value if value is not None and value > 0 else None


def read_csv(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import pairs: a time is half a round trip (row `latency`), a bandwidth that of a one-way stream (row
    `bandwidth`).

    `host:3` is a rank of a host with several ranks. Pairs of the same `round` ran at the same time; without that column
    concurrency is not known.
    """
    refuse_hosts(hosts)
    tables = parse_csv(text_of(data))
    first = tables[0]
    diagonal = (LeftOut(0, plural(first.diagonal, "line"), DIAGONAL),) if first.diagonal else ()
    return Imported(
        tool="csv",
        rank_names=tuple(_rank_name(name) for name in first.names),
        bodies=tuple(map(_body, tables)),
        left_out=(*dict.fromkeys(line for parsed in tables for line in parsed.left_out), *diagonal),
        pairless=first.pairless,
        rows=first.rows,
        missing="the last line is cut off" if any(line.why == CUT for line in first.left_out) else "",
    )


def _body(parsed: CsvPairs) -> Body:
    kernel = BANDWIDTH if parsed.figure.quantity == "bandwidth" else LATENCY
    cells, planned = _cells(parsed)
    order = order_of(cells) if "round" in parsed.when else "unknown"
    return Body(kernel.name, kernel, cells, planned, order, is_listed=True)


def order_of(cells: Cells) -> Order:
    """Return whether pairs of known rounds run at once: `serial` if no round has two pairs, in either direction."""
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
    cells = cells.chosen(_planned(cells, np.array(parsed.elsewhere, np.bool_)))
    # A pair that another line measures is complete, unless the file declares different rounds.
    counted = cells if "round" in parsed.when else needed(cells)
    repeat = times_before(np.stack([counted.round, counted.src, counted.dst, counted.size]))
    pairs = np.unique(np.stack([counted.round, counted.src, counted.dst, repeat]), axis=1)  # at all sizes
    return replace(cells, count=np.where(cells.measured, 1, 0)), np.bincount(pairs[0]).tolist()


def _planned(cells: Cells, elsewhere: Mask) -> Mask:
    """(K,) whether a cell is planned: an empty one beside another figure is if its column has its size in its round."""
    settings = np.unique(np.stack([cells.size, cells.round]), axis=1, return_inverse=True)[1].reshape(-1)
    return np.asarray(~elsewhere | np.isin(settings, settings[cells.measured]), np.bool_)


def _rank_name(name: str) -> RankName:
    """Return host and rank of `n1`, `n1:3`, `[2001:db8::1]:3` or `2001:db8::1`."""
    match = _HOST.fullmatch(name)
    host = match["host"] if match else None
    return RankName(host.strip("[]"), match["rank"] or "") if match and host else RankName(name)
