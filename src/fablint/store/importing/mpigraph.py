"""Output of mpiGraph -> numbers, bytes/s. It prints MiB/s; a fork that pads its columns prints MB/s of 10^6 bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fablint.errors import UsageError
from fablint.model.arrays import Floats
from fablint.store.importing.cells import (
    BANDWIDTH,
    Body,
    Imported,
    LeftOut,
    RankName,
    left_out,
    matrix_cells,
    refuse_hosts,
)
from fablint.store.importing.lines import INTEGER, Foreign, figures, marked, numbered, second_of, text_of

MARK = marked(rb"START mpiGraph v|(?:Send|Recv)[ \t]+\S+:[0-9]+[ \t]")

SMALL = 1 << 20  # cells of a matrix that is allocated however incomplete the text is
FEWEST = 4  # a larger matrix has at most so many cells per character of the text: a 24th of it must be present

_MIB = 2.0**20
_FACT = re.compile(rf"(MsgSize|Times|Window|Procs)\s+({INTEGER})$")
_FACT_OF_FORK = re.compile(rf"(Msg Size|Iterations|Window Size): ({INTEGER})(?: Bytes)?$")
_NAME_OF_FORK = {"Msg Size": "MsgSize", "Iterations": "Times", "Window Size": "Window"}
_START = re.compile(r"START mpiGraph v(\S+)")
_PASSED = re.compile(
    r"[0-9]+ of [0-9]+ \(.*%\)|Gathering results|(?:Send|Recv) (?:max|avg|min)(?:\s|: ).*|Procs: [0-9]+|END mpiGraph"
)


@dataclass
class MpigraphText:
    """Printed rates, bytes/s: `send[i, j]` reported by the sender i to j, `received[i, j]` by the receiver i from j."""

    version: str = ""
    facts: dict[str, int] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    send: Floats | None = None
    received: Floats | None = None
    ended: bool = False
    is_fork: bool = False
    foreign: list[Foreign] = field(default_factory=list)


def parse_mpigraph(text: str) -> MpigraphText:
    """Read the output of mpiGraph. Rows that are missing or cut off are NaN.

    Raises
    ------
    UsageError
        The text has no matrix.
    """
    parsed = MpigraphText()
    tables: dict[str, Floats] = {}
    word, cut = "", not text.endswith("\n")
    last = text.count("\n") + 1
    for number, line in numbered(text):
        if cut and number == last and line.strip():  # no line end: the last figure may lack digits
            parsed.foreign.append(Foreign(number, line))
        elif header := _header(line):
            word, names = header
            if word in tables:
                raise second_of(f"matrix '{word}'", number)
            if parsed.names and names != parsed.names:
                raise UsageError(f"line {number}: the ranks are not those of the first matrix", "the file is damaged")
            parsed.names = names
            if len(names) ** 2 > max(SMALL, FEWEST * len(text)):
                raise UsageError(
                    f"line {number}: the matrix of {len(names)} ranks ends near its beginning", "run it again"
                )
            tables[word] = np.full((len(names), len(names)), np.nan)
        elif not (word and _row(tables[word], parsed.names, line)) and not _fact(parsed, line) and line.strip():
            parsed.foreign.append(Foreign(number, line))
    if not tables:
        raise UsageError("the text has no matrix of mpiGraph", "give the complete output of mpiGraph")
    unit = 1e6 if parsed.is_fork else _MIB
    parsed.send = tables["Send"] * unit if "Send" in tables else None
    parsed.received = tables["Recv"].T * unit if "Recv" in tables else None
    return parsed


def _header(line: str) -> tuple[str, tuple[str, ...]] | None:
    word, *names = _columns(line) or [""]
    is_header = word in ("Send", "Recv") and names and all(re.fullmatch(r"\S+:[0-9]+", name) for name in names)
    return (word, tuple(names)) if is_header and len(set(names)) == len(names) else None


def _row(table: Floats, names: Sequence[str], line: str) -> bool:
    """Write a row of the matrix to `table`; return whether the line is such a row."""
    first, *words = _columns(line) or [""]
    name, _, direction = first.partition(" ")
    direction = direction.strip()
    if direction not in ("to", "from") or name not in names or len(words) != len(names):
        return False
    values = figures(words)
    if values is None:
        return False
    table[names.index(name)] = values
    return True


def _columns(line: str) -> list[str]:
    """Return the columns of a line; a terminal prints blanks for tabs."""
    words = line.split()
    return [" ".join(words[:2]), *words[2:]] if words[1:2] in (["to"], ["from"]) else words


def _fact(parsed: MpigraphText, line: str) -> bool:
    if fact := _FACT.match(line):
        parsed.facts[fact[1]] = int(fact[2])
    elif fact := _FACT_OF_FORK.match(line):
        parsed.facts[_NAME_OF_FORK[fact[1]]], parsed.is_fork = int(fact[2]), True
    elif start := _START.match(line):
        parsed.version = start[1]
    elif line.startswith("END mpiGraph"):
        parsed.ended = True
    else:
        return bool(_PASSED.match(line))
    return True


def read_mpigraph(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import the output as one row of one-way streams.

    Rank i sends to i + D while it receives from i - D, and polls both: the time that an end reports for a stream
    includes waiting for its other stream. A slow host thus affects the times that its neighbours of that step report,
    but not the times at the other ends of their streams. So each cell is the shorter of the times of both ends: neither
    can be shorter than the network allows.

    Raises
    ------
    UsageError
        The text does not state the message size, or is not an output of mpiGraph; or `hosts` is given.
    """
    refuse_hosts(hosts)
    parsed = parse_mpigraph(text_of(data))
    size, n = parsed.facts.get("MsgSize", 0), len(parsed.names)
    if size <= 0:
        raise UsageError("the text does not state MsgSize", "give the complete output of mpiGraph, from its first line")
    ends = [table for table in (parsed.send, parsed.received) if table is not None]
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = np.fmin.reduce([np.where(table > 0, size / table, np.nan) for table in ends])
    ranks = np.arange(n)
    distance = (ranks[None, :] - ranks[:, None]) % max(n, 1)
    cells = matrix_cells(seconds, size, np.maximum(distance - 1, 0), parsed.facts.get("Times", 1))
    window = {"window": parsed.facts["Window"]} if "Window" in parsed.facts else {}
    facts = {"directions": "both", **window}
    body = Body("bandwidth", BANDWIDTH, cells, [n] * (n - 1), "parallel", facts=facts)
    return Imported(
        tool=f"mpigraph {parsed.version}".strip(),
        rank_names=tuple(_rank_name(name) for name in parsed.names),
        bodies=(body,),
        left_out=(*left_out(parsed.foreign), *_half(parsed)),
        missing="" if parsed.ended else "its end is missing",
    )


def _half(parsed: MpigraphText) -> tuple[LeftOut, ...]:
    lacking = [word for word, table in (("Send", parsed.send), ("Recv", parsed.received)) if table is None]
    return tuple(LeftOut(0, word, "this matrix is missing: only the other end is known") for word in lacking)


def _rank_name(name: str) -> RankName:
    host, _, rank = name.rpartition(":")
    return RankName(host, rank)
