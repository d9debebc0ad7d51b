"""The heading of a CSV file: its separator, and which columns hold pairs, sizes, figures and their units."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fablint.errors import UsageError
from fablint.model.registry import Quantity

SEPARATORS = ",;\t|"
BLANKS = " "  # between columns, where a heading has no separator
_PREFACE = re.compile(r"#|sep=.$|\([0-9]+ rows?\)$")  # comments; for Excel; what a database client prints behind
_SHOWN = 80  # characters of a heading in a message
_NAMES = {
    "src": ("src", "source", "sender", "from", "host1", "node1", "hosta", "nodea", "srchost", "sourcehost", "client"),
    "dst": (
        *("dst", "dest", "destination", "receiver", "to", "host2", "node2", "hostb", "nodeb", "dsthost", "desthost"),
        *("destinationhost", "server", "target"),
    ),
    "size": (*(f"{n}size{u}" for n in ("", "message", "msg") for u in ("", "bytes", "byte", "b")), "bytes", "nbytes"),
    "round": ("round",),
    "started": ("started",),
    "unit": ("unit", "units"),
}
_DEFAULTS = {"time": 1.0, "bandwidth": 1e6}  # of a heading without a unit
_MEANS = ("avg", "average", "mean")


def _with_means(*names: str) -> Sequence[str]:
    return [*names, *(word for name in names for mean in _MEANS for word in (mean + name, name + mean))]


_QUANTITIES: Mapping[Quantity, Sequence[str]] = {
    "bandwidth": _with_means("bandwidth", "bw", "throughput"),
    "latency": _with_means("time", "latency", "lat"),
}
_TIMES = {
    **dict.fromkeys(("s", "sec", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("us", "usec", "µs", "μs", "\ufffds", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nanoseconds"), 1e-9),
}
_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12} | {
    f"{letter}i": 1024.0**power for power, letter in enumerate("KMGT", 1)
}
_RATE = re.compile(r"(?P<prefix>[kKMGT]i?|)(?P<unit>B|Bytes?|bytes?|b|bits?|bit)(?:/s|/sec|ps|_per_s|_s)")
_BITS_PER_SECOND = re.compile(r"(?P<prefix>[kmgt])(?:bps|bits?/s|bits?ps)")  # lower case: always of bits
_LIKE_UNIT = re.compile(r"[kmgt]i?b(?:it|yte)?s?(?:[/_]s(?:ec)?|ps)?", re.IGNORECASE)
_ENGLISH = re.compile(r"(?P<name>.*?)[ _]*[(\[](?P<unit>[^)\]]*)[)\]] *")


@dataclass(frozen=True)
class CsvFigure:
    """A column of figures.

    Attributes
    ----------
    name
        Its heading.
    quantity
        What it measures: half a round trip, or a stream from `src` to `dst`.
    factor
        Seconds, or bytes/s, of one unit; None: a column of units says it line by line.
    """

    name: str
    quantity: Quantity
    factor: float | None


@dataclass(frozen=True)
class CsvColumns:
    """The columns of a file: `places` are those of `src`, `dst`, `size` and, where they exist, `round`, `started`."""

    separator: str
    places: Mapping[str, int]
    figures: tuple[tuple[int, CsvFigure], ...]


def words_of(line: str, separator: str) -> list[str]:
    """Return the columns of a single line: a quotation mark that is never closed does not extend over others."""
    if separator == BLANKS:
        return line.split()
    try:
        words = next(csv.reader([line.removesuffix("\r")], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:
        return ["?"]
    return [word.strip() for word in words]


def heading_of(text: str) -> str:
    """Return the first line that is not blank and no preface; '' if there is none."""
    lines = (match[0].strip() for match in re.finditer(r"[^\n]+", text))  # the text may be long: not split here
    return next((line for line in lines if line and not is_preface(line)), "")


def is_preface(line: str) -> bool:
    """Return whether a line does not belong to the table: a comment, a line for Excel, or a rule."""
    is_rule = ("--" in line or "==" in line) and not line.strip("-+|:= \t")
    return is_rule or _PREFACE.match(line) is not None


def is_heading(line: str) -> bool:
    """Return whether a line names the columns of two hosts: the heading of such a file."""
    separator = _separator(line)
    words = list(map(_key, words_of(line, separator)))
    is_short = len(line) < 1000 and "" not in words[1:-1]  # the first may be an index, the last is often empty
    if separator != BLANKS:
        return is_short and all({*words} & {*_NAMES[end]} for end in ("src", "dst"))
    try:
        columns = columns_of(line)  # a sentence may have any words
    except UsageError:
        return False
    return is_short and len(words) == len(columns.places) + len(columns.figures)


def columns_of(line: str) -> CsvColumns:
    """Return the columns that a heading names.

    Raises
    ------
    UsageError
        A column is missing, or the unit of a figure is not known; the message names the column.
    """
    separator = _separator(line)
    words = words_of(line, separator)
    keys = [_key(word) for word in words]
    places = {name: at for name, names in _NAMES.items() for at in [_first(keys, names)] if at is not None}
    heading = f"the heading '{line[:_SHOWN]}'"
    hint = "name src, dst, size and time (s), time_us, bandwidth (MB/s) or such a name with its unit, as bandwidth_gbps"
    for name in ("src", "dst", "size"):
        if name not in places:
            raise UsageError(f"{heading} has no column {name}", hint)
    columns = [_figure(word, "unit" in places) for word in words]
    figures = tuple((at, column) for at, column in enumerate(columns) if isinstance(column, CsvFigure))
    if not figures:
        problems = [column for column in columns if isinstance(column, str)]
        raise UsageError(f"{heading}: {problems[0]}" if problems else f"{heading} has no column of figures", hint)
    return CsvColumns(separator, places, figures)


def factor_of(unit: str, quantity: Quantity) -> float | None:
    """Return the seconds or bytes/s of a unit; None if it is not one of the quantity, or if its letters are unclear."""
    unit = unit.strip()
    if quantity == "latency":
        return _TIMES.get(unit) or _TIMES.get(unit.lower())
    if bits := _BITS_PER_SECOND.fullmatch(unit):
        return _PREFIXES[bits["prefix"].upper()] / 8
    rate = _RATE.fullmatch(unit)
    if rate is None:
        return None
    is_byte = rate["unit"].startswith("B") or rate["unit"].startswith("byte")
    return _PREFIXES[rate["prefix"]] / (1 if is_byte else 8)


def _separator(line: str) -> str:
    separator = max(SEPARATORS, key=line.count)
    return separator if separator in line else BLANKS


def _key(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())


def _first(keys: Sequence[str], names: Sequence[str]) -> int | None:
    return next((keys.index(name) for name in names if name in keys), None)


def _figure(word: str, is_stated: bool) -> CsvFigure | str | None:
    """Return the column of figures with this heading, or why it cannot be read; None if it is no such column."""
    english = _ENGLISH.fullmatch(word)
    if english:
        candidates = [(english["name"], english["unit"])]
    else:
        candidates = [(word, ""), *((word[: at.start()], word[at.end() :]) for at in re.finditer(r"[_ ]", word))]
    problem = None
    for quantity, names in _QUANTITIES.items():
        for name, unit in candidates:
            if _key(name) not in names:
                continue
            factor = factor_of(unit, quantity) if unit else _DEFAULTS.get(_key(name))
            if is_stated and not unit:
                return CsvFigure(word, quantity, None)
            if factor is not None:
                return CsvFigure(word, quantity, factor)
            stated = "states no unit that is known" if unit else "states no unit"
            problem = problem or f"the column '{word}' {stated}"
    return problem


def unit_in(key: str, quantity: Quantity) -> float | None:
    """Return the seconds or bytes/s of the unit in a name such as `bandwidth_gbps` or `Latency (us)`; None if it has
    none.

    Raises
    ------
    UsageError
        The name has a unit that is not known, or is none of the quantity.
    """
    english = _ENGLISH.fullmatch(key)
    units = [english["unit"]] if english else [key[at.end() :] for at in re.finditer(r"[_ ]", key)]
    factor = next((factor for unit in units if (factor := factor_of(unit, quantity)) is not None), None)
    if factor is None and (english or any(map(_LIKE_UNIT.fullmatch, units))):
        problem = f"the unit '{units[-1][:_SHOWN]}' of {key[:_SHOWN]} is not known"
        raise UsageError(problem, "state it as GB/s, Gb/s or us")
    return factor
