"""Measurements as a run directory, with the attributes and arrays that docs/reference/run-format.md names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fablint.model import Row, Run
from fablint.model.facts.json_objects import facts_of
from fablint.model.facts.row_attributes import RowFacts
from fablint.model.facts.run_attributes import RunFacts
from fablint.store.writing import write_run
from held_out.rank_runs.cell_samples import SAMPLES, WINDOW
from held_out.rank_runs.cluster import Cluster
from held_out.schedule import Schedule

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MeasuredRow:
    """A row before it is written.

    Attributes:
        schedule: (P,) pairs of ranks that were planned.
        measured: (P,) which of them have figures.
        statistics: (P,) s by name.
        histogram: edges of the buckets, and (P, buckets) counts; None without.
        begin: s from the start of the run to that of the row.
        matrix: were all pairs of ranks planned?
        serial: one pair after the other?
    """

    name: str
    quantity: str
    size: int
    schedule: Schedule
    measured: Bools
    statistics: Mapping[str, Floats]
    histogram: tuple[Floats, Ints] | None = None
    begin: float = 0.0
    matrix: bool = True
    serial: bool = False
    purpose: str = "measure"
    repeats: int = 1
    repeat: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # (P,) of a matrix

    @property
    def options(self) -> str:
        """The plan line."""
        pattern = "all-pairs" if self.matrix else f"rounds --rounds-file rounds/{self.name}.txt"
        order = "serial" if self.serial else "parallel"
        return (
            f"{self.quantity} --name {self.name} --pattern {pattern} --order {order} --repeats {self.repeats} "
            f"--sizes {self.size} --samples {SAMPLES} --purpose {self.purpose}"
        )


def write_rows(path: Path, cluster: Cluster, rows: Sequence[MeasuredRow]) -> Path:
    """Write a run directory; returns its path."""
    complete = all(row.measured.all() for row in rows)
    facts = facts_of(RunFacts, _root(cluster, rows, complete))
    run = Run(None, facts, tuple(_row(cluster, row) for row in rows))
    write_run(path, run)
    for row in rows:
        if not row.matrix:
            (path / "rounds").mkdir(exist_ok=True)
            (path / "rounds" / f"{row.name}.txt").write_text(_rounds_text(row.schedule))
    return path


def _rounds_text(schedule: Schedule) -> str:
    """A line for each round, with the pairs of ranks."""
    lines: list[list[str]] = [[] for _ in range(schedule.rounds)]
    for src, dst, number in zip(schedule.src.tolist(), schedule.dst.tolist(), schedule.round.tolist(), strict=True):
        if src < dst:
            lines[number].append(f"{src}-{dst}")
    return "\n".join(" ".join(line) for line in lines) + "\n"


def _root(cluster: Cluster, rows: Sequence[MeasuredRow], complete: bool) -> dict[str, Any]:
    """Attributes of the run."""
    numa = [1 if rail in cluster.far else 0 for rail in range(cluster.rails)]
    nics = {
        host: [
            {
                "name": cluster.nic(rail),
                "kind": "cxi",
                "state": "up",
                "speed_mbps": cluster.speed(number, rail),
                "mtu": 9000,
                "numa": numa[rail],
                "physical": True,
            }
            for rail in range(cluster.rails)
        ]
        for number, host in enumerate(cluster.hosts)
    }
    return {
        "format": 1,
        "state": "complete" if complete else "interrupted",
        "creator": "held-out generator",
        "started": "2026-11-02T08:00:00Z",
        "started_epoch_s": 1793606400.0,
        "rows": [row.name for row in rows],
        "plan": [row.options for row in rows],
        "ranks": cluster.ranks,
        "hosts": list(cluster.hosts),
        "rank_host": cluster.rank_host.tolist(),
        "rank_nic": [cluster.nic(rail) for rail in cluster.rank_rail.tolist()],
        "rank_numa": [0] * cluster.ranks,  # the launcher put all ranks at one socket
        "nics": nics,
    }


def _row(cluster: Cluster, row: MeasuredRow) -> Row:
    """Attributes and arrays of a row."""
    schedule = row.schedule
    attributes = {
        "kernel": row.quantity,
        "pattern": "all-pairs" if row.matrix else "rounds",
        "transport": "mpi",
        "memory": "host",
        "purpose": row.purpose,
        "order": "serial" if row.serial else "parallel",
        "options": row.options,
        "layout": "matrix" if row.matrix else "list",
        "state": "complete" if row.measured.all() else "interrupted",
        "rounds": schedule.rounds,
        "cells_per_round": np.bincount(schedule.round, minlength=schedule.rounds).tolist(),
        "repeats": row.repeats,
        "seed": 1,
        "quantity": row.quantity,
        "payload": "src" if row.quantity == "bandwidth" else "both",
        "directions": "both",
        "windows": [WINDOW if row.quantity == "bandwidth" else 1],
    }
    return Row(row.name, facts_of(RowFacts, attributes), _arrays(cluster.ranks, row))


def _arrays(ranks: int, row: MeasuredRow) -> dict[str, Any]:
    """Arrays of either layout."""
    schedule, keep = row.schedule, row.measured
    src, dst, number = (values[keep] for values in (schedule.src, schedule.dst, schedule.round))
    if row.matrix:
        shape: tuple[int, ...] = (row.repeats, ranks, ranks)
        repeat = row.repeat[keep] if row.repeat.size else np.zeros(src.size, np.int64)
        at: tuple[Any, ...] = (repeat, src, dst)
    else:
        shape, at = (ranks, schedule.rounds), (src, number)
    arrays: dict[str, Any] = {
        "size": np.array([row.size], np.int64),
        "count": np.zeros((*shape, 1), np.uint32),
        "started": np.full(shape, np.nan),
    }
    arrays["count"][(*at, 0)] = SAMPLES
    arrays["started"][at] = row.begin + schedule.started[keep]
    for name, values in row.statistics.items():
        arrays[f"time_{name}"] = np.full((*shape, 1), np.nan, np.float32)
        arrays[f"time_{name}"][(*at, 0)] = values[keep]
    name, values = ("round", number) if row.matrix else ("dst", dst)
    arrays[name] = np.full(shape, -1, np.int32)
    arrays[name][at] = values
    if row.histogram is not None:
        edges, counts = row.histogram
        arrays["bucket"] = edges
        arrays["histogram"] = np.zeros((*shape, 1, edges.size), np.uint32)
        arrays["histogram"][(*at, 0)] = counts[keep]
    return arrays
