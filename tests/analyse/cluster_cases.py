"""Small clusters measured round by round, made by hand: 2 groups x 2 switches x 4 hosts, one rank each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations, permutations

import numpy as np

from fablint.discover.assumed_cables import add_assumed_cables
from fablint.model import Row, Run, Switch, Topology
from fact_cases import row_facts, run_facts

HOSTS = [f"h{number:02}" for number in range(16)]
SWITCHES = ("s0", "s1", "s2", "s3")
FABRIC = add_assumed_cables(
    Topology(
        switches={name: Switch(name, f"g{index // 2}") for index, name in enumerate(SWITCHES)},
        host_switch={host: SWITCHES[index // 4] for index, host in enumerate(HOSTS)},
    )
)
ALL = list(combinations(range(16), 2))
Time = Callable[[int, int], float]  # of a message from one rank to another, s


def switch_of(rank: int) -> int:
    return rank // 4


def list_row(
    name: str, pairs: Iterable[tuple[int, int]], time: Time, *, order: str = "parallel", mean: Time | None = None
) -> Row:
    """Every pair in a round of its own, both ways; noise of 1 %."""
    pairs = list(pairs)
    random = np.random.default_rng(len(pairs))
    dst = np.full((16, len(pairs)), -1, np.int32)
    times = {kind: np.full((16, len(pairs), 1), np.nan, np.float32) for kind in ("median", "mean")}
    for number, (a, b) in enumerate(pairs):
        for src, to in ((a, b), (b, a)):
            dst[src, number] = to
            typical = time(src, to) * (1 + 0.01 * random.standard_normal())
            times["median"][src, number] = typical
            times["mean"][src, number] = mean(src, to) if mean else typical
    arrays = {
        "dst": dst,
        "count": (dst[..., None] >= 0).astype(np.uint32) * 3,
        **{f"time_{kind}": values for kind, values in times.items()},
    }
    shape = {"pattern": "rounds", "layout": "list", "rounds": len(pairs), "cells_per_round": 2, "repeats": 1}
    return _row(name, arrays, order=order, **shape)


def matrix_row(name: str, time: Time, *, repeats: int = 1, mean: Time | None = None) -> Row:
    """Every ordered pair in each repeat; noise of 1 %."""
    random = np.random.default_rng(repeats)
    times = {kind: np.full((repeats, 16, 16, 1), np.nan, np.float32) for kind in ("median", "mean")}
    for repeat in range(repeats):
        for src, dst in permutations(range(16), 2):
            typical = time(src, dst) * (1 + 0.01 * random.standard_normal())
            times["median"][repeat, src, dst] = typical
            times["mean"][repeat, src, dst] = mean(src, dst) if mean else typical
    arrays = {
        "count": np.where(np.isnan(times["median"]), 0, 3).astype(np.uint32),
        **{f"time_{kind}": values for kind, values in times.items()},
    }
    shape = {"pattern": "all-pairs", "layout": "matrix", "rounds": 15 * repeats, "cells_per_round": 16}
    return _row(name, arrays, order="serial", repeats=repeats, **shape)


def _row(name: str, arrays: dict[str, np.ndarray], **more: object) -> Row:
    stream = "bandwidth" in name
    attributes = {
        "kernel": "bandwidth" if stream else "latency",
        "transport": "mpi",
        "memory": "host",
        "options": f"x --name {name}",
        "state": "complete",
        "seed": 1,
        "windows": [8 if stream else 1],
        "payload": "src" if stream else "both",
        "quantity": "bandwidth" if stream else "latency",
        "directions": "both",
        **more,
    }
    return Row(name, row_facts(attributes), {"size": np.array([65536 if stream else 8]), **arrays})


def run_of(*rows: Row, **more: object) -> Run:
    attributes = {
        "format": 1,
        "state": "complete",
        "rows": [row.name for row in rows],
        "ranks": 16,
        "hosts": HOSTS,
        "rank_host": list(range(16)),
        **more,
    }
    return Run(None, run_facts(attributes), rows)
