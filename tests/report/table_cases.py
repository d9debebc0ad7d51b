"""Small runs whose every cell is given, so that a table's figures can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fablint.model import Row, Run
from fablint.model.registry import KERNELS
from fablint.store import read_run, write_run
from fact_cases import row_facts, run_facts

Cell = tuple[int, int, int]  # src, dst (-1: a collective), round
EDGES = 1e-7 * 2 ** (np.arange(128 * 14) / 128)

# What the other statistics are, as multiples of the mean.
STATISTICS = {"min": 0.9, "median": 1.0, "mean": 1.0, "p99": 1.5, "max": 2.0}


def row(  # noqa: PLR0913
    kernel: str,
    pattern: str,
    cells: Mapping[Cell, Sequence[float]],
    *,
    ranks: int = 2,
    sizes: Sequence[int] = (8,),
    rounds: int = 1,
    count: int | Mapping[Cell, int] = 100,
    samples: Mapping[Cell, Sequence[float]] | None = None,
    **attributes: Any,
) -> Row:
    """A row with the mean time in s of every cell and size; NaN where it was not measured.

    `samples` gives the histogram of a cell of a list row (the same at all its sizes), which then is stored.
    """
    matrix = pattern in ("all-pairs", "bisection")
    shape = (1, ranks, ranks) if matrix else (ranks, rounds)
    times = np.full((*shape, len(sizes)), np.nan)
    counts, started = np.zeros((*shape, len(sizes)), np.uint32), np.full(shape, np.nan)
    partner = np.full(shape, -1, np.int32)  # of a matrix: the round
    histogram = np.zeros((*shape, len(sizes), len(EDGES)), np.uint32)
    for (src, dst, number), seconds in cells.items():
        at = (0, src, dst) if matrix else (src, number)
        times[at] = seconds
        counts[at] = np.where(np.isnan(times[at]), 0, count if isinstance(count, int) else count[src, dst, number])
        started[at] = number * 1e-3
        partner[at] = number if matrix else dst
        if samples:
            histogram[at], _ = np.histogram(samples[src, dst, number], bins=np.append(EDGES, np.inf))
    per_round = [sum(key[2] == number for key in cells) for number in range(rounds)]
    arrays: dict[str, Any] = {f"time_{name}": (times * scale).astype(np.float32) for name, scale in STATISTICS.items()}
    for (src, _, number), values in (samples or {}).items():
        arrays["time_min"][src, number], arrays["time_max"][src, number] = min(values), max(values)
    arrays |= {"count": counts, "started": started, "size": np.array(sizes, np.int64)}
    arrays["round" if matrix else "dst"] = partner
    if samples:
        arrays |= {"histogram": histogram, "bucket": EDGES}
    info = KERNELS[kernel]
    known = {
        "kernel": kernel,
        "pattern": pattern,
        "transport": "mpi",
        "memory": "host",
        "order": "parallel",
        "options": f"{kernel} --pattern {pattern}",
        "layout": "matrix" if matrix else "list",
        "state": "complete",
        "rounds": rounds,
        "cells_per_round": per_round,
        "repeats": 1,
        "windows": [1] * len(sizes),
        "warmup": 10,
        "validate": False,
        "quantity": info.quantity,
        "payload": info.payload,
        "directions": "both",
    }
    name = attributes.pop("name", kernel)
    if "iterations" in attributes:
        attributes["stop"] = {"iterations": attributes.pop("iterations")}
    return Row(name, row_facts(known | attributes), arrays)


def both_ways(times: Mapping[tuple[int, int], Sequence[float]], rounds: Mapping[tuple[int, int], int] | None = None):
    """Cells from ordered pairs, all in round 0 unless `rounds` (by unordered pair, lower rank first) says otherwise."""
    return {(src, dst, (rounds or {}).get((min(src, dst), max(src, dst)), 0)): t for (src, dst), t in times.items()}


def run_of(*rows: Row, hosts: Sequence[str] | None = None, **attributes: Any) -> Run:
    """A run with one rank per host, or on the host that `hosts` names for each rank."""
    ranks = rows[0].arrays["count"].shape[0 if rows[0].layout == "list" else 1]
    where = list(hosts or [f"n{rank}" for rank in range(ranks)])
    names = list(dict.fromkeys(where))
    known = {
        "format": 1,
        "state": "complete",
        "creator": "test",
        "ranks": ranks,
        "hosts": names,
        "rank_host": [names.index(host) for host in where],
    }
    return Run(None, run_facts(known | attributes), rows)


def stored(run: Run, tmp_path: Path) -> Run:
    """The run as it comes back from a run directory."""
    path = tmp_path / "case.run"
    write_run(path, run)
    return read_run(path)
