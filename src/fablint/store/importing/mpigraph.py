"""Output of mpiGraph -> numbers, bytes/s. It prints MiB/s."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fablint.errors import UsageError
from fablint.store.importing.cells import (
    BANDWIDTH,
    Body,
    Floats,
    Imported,
    LeftOut,
    RankName,
    left_out,
    matrix_cells,
    no_hosts_wanted,
)
from fablint.store.importing.lines import INTEGER, Foreign, figures, marked, numbered, text_of

MARK = marked(rb"START mpiGraph v|(?:Send|Recv)\t\S+:[0-9]+\t")

SMALL = 1 << 20  # cells of a matrix that is made whatever the text lacks
FEWEST = 4  # a larger one has at most so many cells for each letter of the text: a 24th of it must be there

_MIB = 2.0**20
_FACT = re.compile(rf"(MsgSize|Times|Window|Procs)\t({INTEGER})$")
_START = re.compile(r"START mpiGraph v(\S+)")
_PASSED = re.compile(r"[0-9]+ of [0-9]+ \(.*%\)|Gathering results|(?:Send|Recv) (?:max|avg)\t.*|END mpiGraph")


@dataclass
class MpigraphText:
    """What was printed, bytes/s. `send[i, j]`: i says it sent to j so fast, `received[i, j]`: j says it got from i."""

    version: str = ""
    facts: dict[str, int] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    send: Floats | None = None
    received: Floats | None = None
    ended: bool = False
    foreign: list[Foreign] = field(default_factory=list)


def parse_mpigraph(text: str) -> MpigraphText:
    """Read what mpiGraph printed. Rows that are missing, or cut off, are NaN.

    Raises:
        UsageError: there is no matrix in the text.
    """
    found = MpigraphText()
    tables: dict[str, Floats] = {}
    word, cut = "", not text.endswith("\n")
    last = text.count("\n") + 1
    for number, line in numbered(text):
        if cut and number == last and line.strip():  # no line end: the last figure may lack digits
            found.foreign.append(Foreign(number, line))
        elif header := _header(line):
            word, names = header
            if found.names and names != found.names:
                raise UsageError(f"line {number}: the ranks are not those of the first matrix", "the file is damaged")
            found.names = names
            if len(names) ** 2 > max(SMALL, FEWEST * len(text)):
                raise UsageError(
                    f"line {number}: the matrix of {len(names)} ranks ends near its beginning", "run it again"
                )
            tables[word] = np.full((len(names), len(names)), np.nan)
        elif not (word and _row(tables[word], found.names, line)) and not _fact(found, line) and line.strip():
            found.foreign.append(Foreign(number, line))
    if not tables:
        raise UsageError("no matrix of mpiGraph in this text", "give all that mpiGraph printed")
    found.send = tables.get("Send")
    found.received = tables["Recv"].T if "Recv" in tables else None
    return found


def _header(line: str) -> tuple[str, tuple[str, ...]] | None:
    word, *names = line.rstrip("\t ").split("\t")
    alike = word in ("Send", "Recv") and names and all(re.fullmatch(r"\S+:[0-9]+", name) for name in names)
    return (word, tuple(names)) if alike and len(set(names)) == len(names) else None


def _row(table: Floats, names: Sequence[str], line: str) -> bool:
    """Put a row of the matrix into its place."""
    first, *words = line.rstrip("\t ").split("\t")
    name, _, direction = first.partition(" ")
    if direction not in ("to", "from") or name not in names or len(words) != len(names):
        return False
    values = figures(words)
    if values is None:
        return False
    table[names.index(name)] = np.array(values) * _MIB
    return True


def _fact(found: MpigraphText, line: str) -> bool:
    if fact := _FACT.match(line):
        found.facts[fact[1]] = int(fact[2])
    elif start := _START.match(line):
        found.version = start[1]
    elif line.startswith("END mpiGraph"):
        found.ended = True
    else:
        return bool(_PASSED.match(line))
    return True


def read_mpigraph(data: bytes, hosts: Sequence[str]) -> Imported:
    """One row of one-way streams.

    Rank i sends to i + D while it receives from i - D, and polls both: what an end reports of a stream contains what
    its other stream kept it waiting. A slow host thus spoils what its neighbours of that step report, but not what
    the other end of their streams does. So each cell is the shorter of the times of both ends: neither can have been
    faster than the network.
    """
    no_hosts_wanted(hosts)
    found = parse_mpigraph(text_of(data))
    size, n = found.facts.get("MsgSize", 0), len(found.names)
    if size <= 0:
        raise UsageError("the text does not say MsgSize", "give all that mpiGraph printed, from its first line")
    ends = [table for table in (found.send, found.received) if table is not None]
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = np.fmin.reduce([np.where(table > 0, size / table, np.nan) for table in ends])
    ranks = np.arange(n)
    distance = (ranks[None, :] - ranks[:, None]) % max(n, 1)
    cells = matrix_cells(seconds, size, np.maximum(distance - 1, 0), found.facts.get("Times", 1))
    window = {"window": found.facts["Window"]} if "Window" in found.facts else {}
    facts = {"directions": "both", **window}
    body = Body("bandwidth", BANDWIDTH, cells, [n] * (n - 1), "parallel", facts=facts)
    return Imported(
        tool=f"mpigraph {found.version}".strip(),
        rank_names=tuple(_rank_name(name) for name in found.names),
        bodies=(body,),
        left_out=(*left_out(found.foreign), *_half(found)),
        missing="" if found.ended else "its end is missing",
    )


def _half(found: MpigraphText) -> tuple[LeftOut, ...]:
    lacking = [word for word, table in (("Send", found.send), ("Recv", found.received)) if table is None]
    return tuple(LeftOut(0, word, "this matrix is missing: the other end alone is heard") for word in lacking)


def _rank_name(name: str) -> RankName:
    host, _, rank = name.rpartition(":")
    return RankName(host, rank)
