"""Text of net_sanitizer, and of fablint's own table in its columns -> numbers.

The original prints MiB/s under `MB/s` and a latency that is ten times too small; this reader returns the printed
numbers and the two factors. Its host names may be printed without a space between them: such a line cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fablint.errors import UsageError
from fablint.store.importing.lines import INTEGER, NUMBER, Foreign, figure, numbered, second_of

_COUNTS = re.compile(r"#nservers=(.*)")
_COUNT = re.compile(rf"(\w+)=({INTEGER})(?![0-9])")
_HEADER = re.compile(r"(Dir )? *size\(B\)((?: +time\(s\) +bw\(MB/s\) +lat\(us\) +iops)+) *$")
_FIGURES = rf"((?: +(?:{NUMBER}|-))+) *$"
_SUMMARY = re.compile(rf" *(Und|Put|Get)? *({INTEGER}){_FIGURES}")
_CONNECTION = re.compile(rf" *(\S+) +(\S+) +(Und|Put|Get) +({INTEGER}){_FIGURES}")
_OURS = re.compile(r"# fablint .*MB/s is 10\^6 bytes/s")


@dataclass(frozen=True)
class Figures:
    """Figures of one rank, or over all: seconds, `MB/s`, `us` and operations/s; None if not a number."""

    time: float | None
    bandwidth: float | None
    latency: float | None
    iops: float | None


@dataclass(frozen=True)
class Counts:
    """The line `#nservers=...`: every number by its name."""

    line: int
    values: Mapping[str, int]


@dataclass(frozen=True)
class Summary:
    """One size over all ranks. Old releases print the sum alone."""

    line: int
    direction: str  # Und, Put, Get; '' if the text does not state it
    size: int
    sum: Figures
    min: Figures | None = None
    max: Figures | None = None


@dataclass(frozen=True)
class Connection:
    """One line of --verbose."""

    line: int
    src: str
    dest: str
    direction: str
    size: int
    figures: Figures


@dataclass(frozen=True)
class NetSanitizerText:
    """The whole text. A bandwidth times `megabyte` is bytes/s, a latency times `latency_factor` is us per operation."""

    counts: tuple[Counts, ...]
    summaries: tuple[Summary, ...]
    connections: tuple[Connection, ...]
    foreign: tuple[Foreign, ...]
    megabyte: int = 1 << 20
    latency_factor: int = 10


def parse_net_sanitizer(text: str) -> NetSanitizerText:
    """Read the output of net_sanitizer.

    Raises
    ------
    UsageError
        The text has neither its header nor a line of its figures, or those of two runs.
    """
    counts: list[Counts] = []
    summaries: list[Summary] = []
    connections: list[Connection] = []
    foreign: list[Foreign] = []
    given: set[tuple[str, ...]] = set()  # measurements
    is_fablint, blocks, pending = False, 0, text.rpartition("\n")[2]
    last = text.count("\n") + 1
    for number, line in numbered(text):
        cut = number == last and bool(pending.strip())  # no line end: the last figure may lack digits
        if match := _COUNTS.match(line):
            if summaries or connections:
                raise second_of("run of net_sanitizer", number)
            counts.append(Counts(number, {"nservers": 0} | {key: int(value) for key, value in _COUNT.findall(line)}))
        elif header := _HEADER.match(line.strip()):
            blocks = header[2].count("iops")
        elif not cut and (match := _CONNECTION.match(line)) and (row := _four(match[5])):
            _refuse_again(match.groups()[:4], given, number)
            connections.append(Connection(number, match[1], match[2], match[3], int(match[4]), row[0]))
        elif not cut and blocks and (match := _SUMMARY.match(line)) and len(row := _four(match[3])) == blocks:
            _refuse_again((match[1] or "", match[2]), given, number)
            summaries.append(Summary(number, match[1] or "", int(match[2]), *row))
        elif _OURS.match(line):
            is_fablint = True
        elif not _empty(line):
            foreign.append(Foreign(number, line))
    if not (counts or summaries or connections):
        raise UsageError("the text has no output of net_sanitizer", "give the output of net_sanitizer")
    factors = (10**6, 1) if is_fablint else (1 << 20, 10)
    return NetSanitizerText(tuple(counts), tuple(summaries), tuple(connections), tuple(foreign), *factors)


def _refuse_again(measurement: tuple[str, ...], given: set[tuple[str, ...]], number: int) -> None:
    """Raise UsageError for a measurement that an earlier line has: one run measures it once."""
    if measurement in given:
        raise second_of("run of net_sanitizer", number)
    given.add(measurement)


def _four(words: str) -> list[Figures]:
    """Figures in groups of four; [] if their number is not a multiple of four, or more than SUM, MIN and MAX."""
    values = [figure(word) for word in words.split()]
    if len(values) % 4 or len(values) > 12:
        return []
    return [Figures(*values[at : at + 4]) for at in range(0, len(values), 4)]


def _empty(line: str) -> bool:
    """Tell whether the line holds no figures: blank, heading, comment."""
    return not line.strip() or line.split() == ["SUM", "MIN", "MAX"] or line.startswith("#")
