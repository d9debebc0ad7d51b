"""Outputs of HP2P -> numbers: what it prints, its page and its binary file.

It prints MiB/s under `MB/s` and two digits behind the point; its binary file has all digits, but no message size.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fablint.errors import UsageError
from fablint.store.importing.cells import (
    EXCHANGE,
    Body,
    Floats,
    Imported,
    Ints,
    RankName,
    left_out,
    matrix_cells,
    no_hosts_wanted,
    ranks_named,
    world_body,
)
from fablint.store.importing.lines import INTEGER, PLAIN, Foreign, figures, marked, numbered, text_of

MARK = marked(rb" ?=== Benchmark configuration ===| Build couple algorithm ")
PAGE = re.compile(rb"// hostlist start[\s\S]*// msg_size start")
NAME_LENGTHS = (256, 128)  # MPI_MAX_PROCESSOR_NAME of Open MPI and of MPICH
LARGEST = 1 << 40  # bytes of a message; no more makes sense

_MIB = 2.0**20
_FACT = re.compile(r" ?([A-Za-z_][\w ./]*?) +: ?(.*)$")
_SUMMARY = re.compile(rf" (Min|Max|Avg) latency +: ({PLAIN}) us$")
_PART = r"// {0} start(.*?)// {0} end"


@dataclass
class Hp2pText:
    """What it printed: its settings, times over all pairs in s, and the matrix of -f bin in bytes/s."""

    facts: dict[str, str] = field(default_factory=dict)
    latency: dict[str, float] = field(default_factory=dict)
    rows: list[list[float]] = field(default_factory=list)
    ended: bool = False
    foreign: list[Foreign] = field(default_factory=list)


@dataclass(frozen=True)
class Hp2pMatrix:
    """All pairs: s per exchange, how often each was drawn, and the size of a message."""

    names: tuple[str, ...]
    seconds: Floats
    size: int
    count: Ints


def parse_hp2p(text: str) -> Hp2pText:
    """Read what HP2P printed.

    Raises:
        UsageError: there is no line of HP2P in the text.
    """
    found = Hp2pText()
    cut, last = not text.endswith("\n"), text.count("\n") + 1
    for number, line in numbered(text):
        if cut and number == last and line.strip():
            found.foreign.append(Foreign(number, line))
        elif summary := _SUMMARY.match(line):
            found.latency[summary[1]] = float(summary[2]) * 1e-6
        elif "\t" in line and (row := figures(line.split())) is not None:
            found.rows.append([value * _MIB for value in row])
        elif "Writing final result... Done" in line:
            found.ended = True
        elif fact := _FACT.match(line):
            found.facts.setdefault(fact[1], fact[2].strip())
        elif line.strip() and "===" not in line and "Writing final result" not in line:
            found.foreign.append(Foreign(number, line))
    if "Message size" not in found.facts and not found.latency:
        raise UsageError("no output of HP2P in this text", "give all that hp2p printed")
    return found


def read_hp2p(data: bytes, hosts: Sequence[str]) -> Imported:
    """What it printed: the matrix, or, where there is none, the figures over all pairs."""
    found = parse_hp2p(text_of(data))
    said = found.facts.get("Message size", "")
    if not re.fullmatch(INTEGER, said) or int(said) == 0:
        raise UsageError("the text does not say the message size", "give all that hp2p printed, from its first line")
    size, n = int(said), len(found.rows)
    square = n > 1 and all(len(row) == n for row in found.rows)
    if square:
        with np.errstate(divide="ignore"):
            seconds = size / np.array(found.rows)
        bodies: tuple[Body, ...] = (_exchanges(seconds, size, 1),)
    else:
        names = {"Min": "min", "Max": "max", "Avg": "mean"}
        summary = {names[word]: seconds for word, seconds in found.latency.items()}
        bodies = (world_body("exchange", EXCHANGE, [(size, summary)]),) if summary else ()
    return Imported(
        tool="hp2p",
        rank_names=ranks_named(n, hosts) if square else ranks_named(max(2, len(hosts)), hosts),
        bodies=bodies,
        left_out=left_out(found.foreign),
        missing=_lacking(found, square),
    )


def _lacking(found: Hp2pText, square: bool) -> str:
    if not square:
        return "it has no pairs, but figures over all of them: give the .html or .bin file that hp2p wrote"
    return "" if found.ended else "its end is missing"


def _exchanges(seconds: Floats, size: int, count: Ints | int) -> Body:
    """Pairs were drawn again and again and averaged: no pair has a round of its own."""
    n = seconds.shape[0]
    cells = matrix_cells(seconds, size, None, count)
    return Body("exchange", EXCHANGE, cells, [n * (n - 1)], facts={"directions": "both"})


def parse_hp2p_page(text: str) -> Hp2pMatrix:
    """The matrix of the page NAME.html.

    Raises:
        UsageError: a part of it is missing or has another shape.
    """
    parts = {name: re.search(_PART.format(name), text, re.DOTALL) for name in ("hostlist", "msg_size", "bandwidth")}
    if not all(parts.values()):
        raise UsageError("the page of HP2P has no matrix", "give the file NAME.html, and not NAME-monitoring.html")
    hosts, size, rows = (found[1] if found else "" for found in parts.values())
    names = tuple(re.findall(r'"([^"]+)"', hosts))
    number = re.search(rf"= *\s*({INTEGER})\s*;", size)
    matrix = [figures(row.replace(",", " ").split()) for row in re.findall(r"\[([^\[\]]+)\]", rows)]
    good = [row for row in matrix if row is not None and len(row) == len(names)]
    if not number or int(number[1]) == 0 or len(good) != len(names) or len(matrix) != len(good) or len(names) < 2:
        raise UsageError("the matrix in the page of HP2P is not whole", "give the file as hp2p wrote it")
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = int(number[1]) / (np.array(good) * _MIB)
    return Hp2pMatrix(names, seconds, int(number[1]), np.ones(seconds.shape, np.int64))


def parse_hp2p_bin(data: bytes) -> Hp2pMatrix:
    """The binary file of -f bin: i32 N, N host names, f64 bandwidth, f64 time and i32 count of all pairs.

    The message size is not in it: it is bandwidth times time.

    Raises:
        UsageError: the length of the file is not what N announces, or no message size fits the figures.
    """
    layout = bin_layout(data[:4], len(data))
    if layout is None:
        raise UsageError("no file of HP2P: its length does not fit its number of ranks", "give it as hp2p wrote it")
    n, width = layout
    names = [data[4 + at * width : 4 + (at + 1) * width].split(b"\0")[0] for at in range(n)]
    place = 4 + n * width
    rates, seconds = (np.frombuffer(data, "<f8", n * n, place + part * 8 * n * n).reshape(n, n) for part in (0, 1))
    count = np.frombuffer(data, "<i4", n * n, place + 16 * n * n).reshape(n, n).astype(np.int64)
    with np.errstate(all="ignore"):
        products = (rates * seconds)[(count > 0) & np.isfinite(rates) & np.isfinite(seconds) & (seconds > 0)]
    size = float(np.median(products)) if products.size else 0.0
    if not 0.5 <= size < LARGEST or abs(size - round(size)) > 1e-3 * size:
        raise UsageError("bandwidth times time of HP2P's file is no message size", "the file is damaged")
    return Hp2pMatrix(
        tuple(name.decode("utf-8", "replace") for name in names),
        np.where(count > 0, seconds, np.nan),
        round(size),
        np.maximum(count, 1),
    )


def bin_layout(head: bytes, length: int) -> tuple[int, int] | None:
    """Number of ranks and length of a name, where a binary file of this length begins so."""
    if len(head) < 4:
        return None
    (n,) = struct.unpack_from("<i", head)
    fits = [width for width in NAME_LENGTHS if n > 1 and length == 4 + n * width + 20 * n * n]
    return (n, fits[0]) if fits else None


def read_hp2p_page(data: bytes, hosts: Sequence[str]) -> Imported:
    return _matrix(parse_hp2p_page(text_of(data)), hosts)


def read_hp2p_bin(data: bytes, hosts: Sequence[str]) -> Imported:
    return _matrix(parse_hp2p_bin(data), hosts)


def _matrix(found: Hp2pMatrix, hosts: Sequence[str]) -> Imported:
    no_hosts_wanted(hosts)
    if len(set(found.names)) < len(found.names):
        raise UsageError("two ranks have the same name", "the file is damaged")
    rank_names = tuple(_rank_name(name) for name in found.names)
    return Imported("hp2p", rank_names, (_exchanges(found.seconds, found.size, found.count),))


def _rank_name(name: str) -> RankName:
    host, colon, rank = name.rpartition(":")
    return RankName(host, rank) if colon and host else RankName(name)
