"""Rows of a simulated run and their attributes, docs/reference/run-format.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fablint.model.arrays import Codes, Floats, Ints
from fablint.simulate.messages.times import AT_ONCE, MESSAGES, Kernel
from fablint.simulate.simulated_fabric import Fabric
from fablint.version import __version__

ROUND_S = 1e-3  # recorded duration of a pair, and of a round in which all pairs are measured at once
WINDOW = 64
STREAMS = frozenset({"bandwidth", "bibandwidth"})


@dataclass(frozen=True)
class SimulatedRow:
    """Measurement of every pair, in both directions.

    `histogram` stores every pair's messages in buckets; `statistics` are those of `min median mean p99 max` to store.
    `serial` measures one pair at a time, so that no pair shares a link with another.
    """

    kernel: Kernel
    sizes: tuple[int, ...]
    order: Literal["parallel", "serial"] = "parallel"
    histogram: bool = False
    statistics: tuple[str, ...] = ("median",)

    @property
    def simple(self) -> bool:
        """Whether only the median is requested."""
        return not self.histogram and self.statistics == ("median",)


CHECK_ROWS = (SimulatedRow("latency", (8,)), SimulatedRow("bandwidth", (1 << 20,)))


def seconds_of(row: SimulatedRow, pairs: Codes) -> float:
    """Recorded duration of the rounds of a row; `pairs` (rounds,)."""
    return float(pairs.sum() if row.order == "serial" else pairs.size) * ROUND_S


def row_attributes(row: SimulatedRow, layout: Literal["matrix", "list"], pairs: Codes, seed: int) -> dict[str, Any]:
    """Attributes of a row of `pairs` (rounds,) pairs in each round."""
    sizes, pattern = ",".join(map(str, row.sizes)), "all-pairs" if layout == "matrix" else "rounds"
    stream = row.kernel in STREAMS
    quantity = "bandwidth" if stream else "latency"
    cells = (2 * pairs).tolist()
    words = [row.kernel, "--pattern", pattern, "--sizes", sizes, "--order", row.order, "--samples", str(MESSAGES)]
    words += ["--histogram"] if row.histogram else []
    return {
        "kernel": row.kernel,
        "purpose": "measure",
        "pattern": pattern,
        "transport": "null",
        "memory": "host",
        "order": row.order,
        "options": " ".join([*words, "--seed", str(seed), "--transport", "null"]),
        "layout": layout,
        "state": "complete",
        "rounds": int(pairs.size),
        "cells_per_round": cells[0] if len(set(cells)) == 1 else cells,
        "repeats": 1,
        "seed": seed,
        "quantity": quantity,
        "payload": "src" if row.kernel == "bandwidth" else "both",
        "directions": "both",
        **({"buffers": "distinct"} if stream else {}),
        "barrier": "start",
        "mean": "samples",
        "windows": [WINDOW if stream else 1] * len(row.sizes),
        "warmup": 0,
        "warmups": [0] * len(row.sizes),
        "stop": {"samples": MESSAGES, "budget_s": None, "precision": None, "iterations": None},
        "validate": False,
        "measuring_s": seconds_of(row, pairs),
        "wall_s": seconds_of(row, pairs),
    }


def started(row: SimulatedRow, src: Ints, dst: Ints, number: Ints, turn: Ints) -> Floats:
    """Start of each cell, s since the begin of the row.

    Parameters
    ----------
    row
        Parallel or serial.
    src, dst
        Ranks; the lower one leads first in even rounds, as in the engine.
    number
        Round of each cell.
    turn
        Position of the pair among all of the row; used for serial rows.
    """
    second = 0.0 if row.kernel in AT_ONCE else ((src < dst) != (number % 2 == 0)) / 2
    return np.asarray(((turn if row.order == "serial" else number) + second) * ROUND_S)


def root_attributes(fabric: Fabric, names: list[str], ranks_per_host: int, truth: dict[str, Any]) -> dict[str, Any]:
    """Attributes of the run."""
    hosts, rails = len(fabric.hosts), fabric.rails
    ranks = hosts * ranks_per_host
    nics = [
        {"name": name, "kind": "simulated", "state": "up", "speed_mbps": 200000, "mtu": 9000, "numa": 0}
        for name in fabric.nics
    ]
    return {
        "format": 1,
        "state": "complete",
        "creator": f"fablint {__version__}",
        "command": ["fablint", "simulate"],
        "started": "1970-01-01T00:00:00Z",
        "started_epoch_s": 0.0,
        "rows": names,
        "ranks": ranks,
        "hosts": list(fabric.hosts),
        "rank_host": np.repeat(np.arange(hosts), ranks_per_host).tolist(),
        "rank_cores": [str(rank % ranks_per_host) for rank in range(ranks)],
        "rank_numa": [0] * ranks,
        "rank_nic": [fabric.nics[rank % ranks_per_host % rails] for rank in range(ranks)],
        "rank_pid": [rank + 1 for rank in range(ranks)],
        "nics": dict.fromkeys(fabric.hosts, nics),
        "counters": {"before": {}, "after": {}},
        "mpi": {"library": "none (simulated)", "standard": "0.0", "thread_level": "single"},
        "environment": {},
        "instrument": {
            "clock": "simulated",
            "resolution_s": 1e-9,
            "overhead_s": 0.0,
            "empty_kernel_s": 0.0,
            "barrier_skew_s": 0.0,
            "clock_sync_s": 0.0,
            "oversubscribed": False,
        },
        "shared_files": True,
        "simulated": truth,
    }
