"""Outputs of HP2P -> numbers: its printed text, its HTML page and its binary file.

The text has MiB/s under `MB/s` with two decimals; the binary file has all digits, but no message size.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fablint.errors import UsageError
from fablint.model.arrays import Floats, Ints
from fablint.store.importing.cells import (
    EXCHANGE,
    Body,
    Imported,
    RankName,
    left_out,
    matrix_cells,
    ranks_named,
    refuse_hosts,
    world_body,
)
from fablint.store.importing.lines import INTEGER, PLAIN, Foreign, figures, marked, numbered, second_of, text_of

MARK = marked(rb" ?=== Benchmark configuration ===| ?Build couple algorithm ")
PAGE = re.compile(rb"// hostlist start[\s\S]*// msg_size start")
NAME_LENGTHS = (256, 128)  # MPI_MAX_PROCESSOR_NAME of Open MPI and of MPICH
MOST_RANKS = 1 << 20
LARGEST = 1 << 40  # bytes of a message; a larger value is an error

_MIB = 2.0**20
_FACT = re.compile(r" ?([A-Za-z_][\w ./]*?) +: ?(.*)$")
_SUMMARY = re.compile(rf" ?(Min|Max|Avg) latency +: ({PLAIN}) us$")
_AVERAGE = re.compile(rf" ?Avg (bandwidth|bisection bandwidth|bisection efficiency) +: ({PLAIN}) (?:MB/s|%)$")
_PART = r"// {0} start(.*?)// {0} end"


@dataclass
class Hp2pText:
    """Printed text: settings, times over all pairs in s, and the matrix of -f bin in bytes/s."""

    facts: dict[str, str] = field(default_factory=dict)
    latency: dict[str, float] = field(default_factory=dict)
    averages: dict[str, float] = field(default_factory=dict)  # as printed: MiB/s and %
    rows: list[list[float]] = field(default_factory=list)
    ended: bool = False
    foreign: list[Foreign] = field(default_factory=list)


@dataclass(frozen=True)
class Hp2pMatrix:
    """All pairs: s per exchange, number of samples of each, and the message size."""

    names: tuple[str, ...]
    seconds: Floats
    size: int
    count: Ints


def parse_hp2p(text: str) -> Hp2pText:
    """Read the printed text of HP2P.

    Raises
    ------
    UsageError
        The text has no line of HP2P, or is that of two runs.
    """
    parsed = Hp2pText()
    cut, last = not text.endswith("\n"), text.count("\n") + 1
    for number, line in numbered(text):
        if cut and number == last and line.strip():
            parsed.foreign.append(Foreign(number, line))
        elif _summary(parsed, number, line):
            continue
        elif "\t" in line and (row := figures(line.split())) is not None:
            parsed.rows.append([value * _MIB for value in row])
        elif "Writing final result... Done" in line:
            parsed.ended = True
        elif fact := _FACT.match(line):
            parsed.facts.setdefault(fact[1], fact[2].strip())
        elif line.strip() and "===" not in line and "Writing final result" not in line:
            parsed.foreign.append(Foreign(number, line))
    if "Message size" not in parsed.facts and not parsed.latency:
        raise UsageError("the text has no output of HP2P", "give the complete output of hp2p")
    return parsed


def _summary(parsed: Hp2pText, number: int, line: str) -> bool:
    """Read a line of the summary; return whether it is one."""
    if summary := _SUMMARY.match(line):
        if summary[1] in parsed.latency:
            raise second_of("run of HP2P", number)
        parsed.latency[summary[1]] = float(summary[2]) * 1e-6
    elif average := _AVERAGE.match(line):
        parsed.averages[average[1]] = float(average[2])
    else:
        return False
    return True


def read_hp2p(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import the printed text: the matrix, or if there is none, the figures over all pairs.

    Raises
    ------
    UsageError
        The text does not state the message size, or is not an output of hp2p.
    """
    parsed = parse_hp2p(text_of(data))
    size_text = parsed.facts.get("Message size", "")
    if not re.fullmatch(INTEGER, size_text) or int(size_text) == 0:
        raise UsageError(
            "the text does not state the message size", "give the complete output of hp2p, from its first line"
        )
    size, n = int(size_text), len(parsed.rows)
    square = n > 1 and all(len(row) == n for row in parsed.rows)
    if square:
        with np.errstate(divide="ignore"):
            seconds = size / np.array(parsed.rows)
        bodies: tuple[Body, ...] = (_exchanges(seconds, size, 1),)
    else:
        names = {"Min": "min", "Max": "max", "Avg": "mean"}
        summary = {names[word]: seconds for word, seconds in parsed.latency.items()}
        bodies = (world_body("exchange", EXCHANGE, [(size, summary)]),) if summary else ()
    return Imported(
        tool="hp2p",
        rank_names=ranks_named(n if square else len(hosts) or _ranks(parsed), hosts),
        bodies=bodies,
        left_out=left_out(parsed.foreign),
        missing="its end is missing" if square and not parsed.ended else "",
        not_judged="" if square else "figures of all pairs together only",
        remedy="" if square else "it has no figures of single pairs: give the .html or .bin file that hp2p wrote",
    )


def _ranks(parsed: Hp2pText) -> int:
    """Return the number of ranks, which the text does not state: the bisection is the sum over half of them.

    Its efficiency is the bisection divided by that number of mean bandwidths. 2 where the figures are not printed.
    """
    names = ("bisection bandwidth", "bisection efficiency", "bandwidth")
    total, share, mean = (parsed.averages.get(name, 0.0) for name in names)
    half = total / (0.01 * share * mean) if share * mean > 0 else 0.0
    return 2 * round(half) if 0.9 < half < MOST_RANKS and abs(half - round(half)) <= 0.01 * half else 2


def _exchanges(seconds: Floats, size: int, count: Ints | int) -> Body:
    """All pairs as one row; pairs are sampled at random and averaged, so that no pair has a round."""
    n = seconds.shape[0]
    cells = matrix_cells(seconds, size, None, count)
    return Body("exchange", EXCHANGE, cells, [n * (n - 1)], facts={"directions": "both"})


def parse_hp2p_page(text: str) -> Hp2pMatrix:
    """Matrix of the page NAME.html.

    Raises
    ------
    UsageError
        A part of it is missing or has another shape.
    """
    parts = {name: re.search(_PART.format(name), text, re.DOTALL) for name in ("hostlist", "msg_size", "bandwidth")}
    if not all(parts.values()):
        raise UsageError("the page of HP2P has no matrix", "give the file NAME.html, and not NAME-monitoring.html")
    hosts, size, rows = (match[1] if match else "" for match in parts.values())
    names = tuple(re.findall(r'"([^"]+)"', hosts))
    number = re.search(rf"= *\s*({INTEGER})\s*;", size)
    matrix = [figures(row.replace(",", " ").split()) for row in re.findall(r"\[([^\[\]]+)\]", rows)]
    good = [row for row in matrix if row is not None and len(row) == len(names)]
    if not number or int(number[1]) == 0 or len(good) != len(names) or len(matrix) != len(good) or len(names) < 2:
        raise UsageError("the matrix in the page of HP2P is incomplete", "give the file as hp2p wrote it")
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = int(number[1]) / (np.array(good) * _MIB)
    return Hp2pMatrix(names, seconds, int(number[1]), np.ones(seconds.shape, np.int64))


def parse_hp2p_bin(data: bytes) -> Hp2pMatrix:
    """The binary file of -f bin: i32 N, N host names, f64 bandwidth, f64 time and i32 count of all pairs.

    The file does not hold the message size, which is bandwidth times time.

    Raises
    ------
    UsageError
        The length of the file does not match N, or no message size fits the figures.
    """
    layout = bin_layout(data[:4], len(data))
    if layout is None:
        raise UsageError("not a file of HP2P: its length does not fit its number of ranks", "give it as hp2p wrote it")
    n, width = layout
    names = [data[4 + at * width : 4 + (at + 1) * width].split(b"\0")[0] for at in range(n)]
    place = 4 + n * width
    rates, seconds = (np.frombuffer(data, "<f8", n * n, place + part * 8 * n * n).reshape(n, n) for part in (0, 1))
    count = np.frombuffer(data, "<i4", n * n, place + 16 * n * n).reshape(n, n).astype(np.int64)
    with np.errstate(all="ignore"):
        products = (rates * seconds)[(count > 0) & np.isfinite(rates) & np.isfinite(seconds) & (seconds > 0)]
    size = float(np.median(products)) if products.size else 0.0
    if not 0.5 <= size < LARGEST or abs(size - round(size)) > 1e-3 * size:
        raise UsageError("bandwidth times time in HP2P's file is not a message size", "the file is damaged")
    return Hp2pMatrix(
        tuple(name.decode("utf-8", "replace") for name in names),
        np.where(count > 0, seconds, np.nan),
        round(size),
        np.maximum(count, 1),
    )


def bin_layout(head: bytes, length: int) -> tuple[int, int] | None:
    """Number of ranks and length of a name, if a binary file of this length begins like this; else None."""
    if len(head) < 4:
        return None
    (n,) = struct.unpack_from("<i", head)
    fits = [width for width in NAME_LENGTHS if n > 1 and length == 4 + n * width + 20 * n * n]
    return (n, fits[0]) if fits else None


def read_hp2p_page(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import the HTML page of hp2p."""
    return _matrix(parse_hp2p_page(text_of(data)), hosts)


def read_hp2p_bin(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import the binary output of hp2p."""
    return _matrix(parse_hp2p_bin(data), hosts)


def _matrix(matrix: Hp2pMatrix, hosts: Sequence[str]) -> Imported:
    refuse_hosts(hosts)
    if len(set(matrix.names)) < len(matrix.names):
        raise UsageError("two ranks have the same name", "the file is damaged")
    rank_names = tuple(_rank_name(name) for name in matrix.names)
    return Imported("hp2p", rank_names, (_exchanges(matrix.seconds, matrix.size, matrix.count),))


def _rank_name(name: str) -> RankName:
    host, colon, rank = name.rpartition(":")
    return RankName(host, rank) if colon and host else RankName(name)
