"""Measure a simulated fabric: a complete run in memory, with the truth in its attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.simulate.fabric import Fabric, Hosts
from fablint.simulate.faults import Fault, broken
from fablint.simulate.noise import Noise
from fablint.version import __version__

Times = npt.NDArray[np.float32]

SOFTWARE_S = 0.5e-6  # what a message costs before and after the network
MEMORY_BANDWIDTH = 10e9  # bytes/s between two ranks of one host
ROUND_S = 1e-3  # how long a round is said to take
ROW_BLOCK = 256  # ranks simulated at a time; part of what a seed means


@dataclass(frozen=True)
class SimulatedRow:
    """An all-pairs row: each ordered pair measured once at each size."""

    kernel: Literal["latency", "bandwidth"]
    sizes: tuple[int, ...]


CHECK_ROWS = (SimulatedRow("latency", (8,)), SimulatedRow("bandwidth", (1 << 20,)))


def simulate(
    fabric: Fabric,
    *,
    rows: Sequence[SimulatedRow] = CHECK_ROWS,
    faults: Sequence[Fault] = (),
    noise: Noise | None = None,
    seed: int = 1,
    ranks_per_host: int = 1,
) -> Run:
    """A run on `fabric` with `faults` in it: same arguments, same numbers.

    Times follow the slowest-link model for streams (`size / min bandwidth`) and the sum of the links for latency;
    transfers do not disturb each other. Every cell is measured. Raises UsageError for a fault in a part that the
    fabric does not have, and for less than two ranks.
    """
    noise = noise or Noise()
    ranks = len(fabric.hosts) * ranks_per_host
    if ranks < 2:
        raise UsageError(f"simulate: {ranks} rank", "a pair needs two")
    sick = broken(fabric, faults)
    host = np.repeat(np.arange(len(fabric.hosts)), ranks_per_host)
    seeds = np.random.SeedSequence(seed).spawn(len(rows))
    made = tuple(
        Row(
            row.kernel,
            _row_attributes(row, ranks, seed),
            _arrays(sick, row, host, noise, np.random.default_rng(stream)),
        )
        for row, stream in zip(rows, seeds, strict=True)
    )
    names: dict[str, int] = {}
    renamed = []
    for row in made:
        names[row.name] = names.get(row.name, 0) + 1
        count = names[row.name]
        renamed.append(row if count == 1 else replace(row, name=f"{row.name}-{count}"))
    truth = {
        "topology": fabric.topology.source,
        "faults": [asdict(fault) for fault in faults],
        "noise": asdict(noise),
        "seed": seed,
    }
    return Run(None, _root_attributes(fabric, renamed, host, truth), tuple(renamed))


def _arrays(fabric: Fabric, row: SimulatedRow, host: Hosts, noise: Noise, rng: np.random.Generator) -> dict[str, Any]:
    """The arrays of a matrix row, docs/reference/run-format.md."""
    n, sizes = host.size, np.array(row.sizes, dtype=np.int64)
    sender, receiver = noise.hosts(rng, len(fabric.hosts))[host], noise.hosts(rng, len(fabric.hosts))[host]
    if row.kernel == "latency":  # a round trip: both ends send and receive
        sender = receiver = (sender + receiver) * np.float32(0.5)
    time = np.empty((1, n, n, sizes.size), dtype=np.float32)
    for first in range(0, n, ROW_BLOCK):
        block = slice(first, min(first + ROW_BLOCK, n))
        scatter = noise.pairs(rng, (block.stop - first, n))
        scatter += sender[block, None] + receiver[None, :]
        np.exp(scatter, out=scatter)
        clean = _clean_times(fabric, row.kernel, host[block, None], host[None, :], sizes)
        time[0, block] = clean * scatter[:, :, None]
    ranks = np.arange(n)
    time[0, ranks, ranks] = np.nan
    rounds = schedule(n)
    return {
        "time_median": time,
        "count": np.where(np.isnan(time), 0, 100).astype(np.uint32),
        "started": np.where(rounds < 0, np.nan, rounds * ROUND_S)[None],
        "round": rounds[None],
        "size": sizes,
    }


def _clean_times(fabric: Fabric, kernel: str, src: Hosts, dst: Hosts, sizes: npt.NDArray[np.int64]) -> Times:
    """Seconds per message of each pair and size, (src, dst, size), without noise."""
    delay, seconds_per_byte = _path(fabric, src, dst)
    if kernel == "bandwidth":
        return (seconds_per_byte[..., None] * sizes).astype(np.float32)
    there = delay[..., None] + seconds_per_byte[..., None] * sizes
    delay, seconds_per_byte = _path(fabric, dst, src)
    back = delay[..., None] + seconds_per_byte[..., None] * sizes
    return ((there + back) / 2).astype(np.float32)


def _path(fabric: Fabric, src: Hosts, dst: Hosts) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Delay (s) and time per byte (s) of each pair: the sum and the maximum over its links."""
    links = fabric.routes(src, dst)
    latency = np.append(fabric.latency, 0.0)  # index -1: no link
    per_byte = np.append(1 / fabric.bandwidth, 0.0)
    delay = np.full(links.shape[:-1], SOFTWARE_S)
    slowest = np.where(links[..., 0] < 0, 1 / MEMORY_BANDWIDTH, 0.0)
    for hop in range(links.shape[-1]):
        delay += latency[links[..., hop]]
        np.maximum(slowest, per_byte[links[..., hop]], out=slowest)
    return delay, slowest


def schedule(n: int) -> npt.NDArray[np.int32]:
    """(n, n) round in which each pair meets, -1 on the diagonal: the circle method for round-robin tournaments.

    An even n takes n - 1 rounds, an odd n takes n with one rank idle in each.
    """
    players = n + n % 2
    cycle = players - 1
    index = np.arange(players, dtype=np.int32)
    rounds = (index[:, None] + index[None, :]) % cycle
    rounds[-1, :] = rounds[:, -1] = 2 * index % cycle  # the fixed player meets k in the round where k would meet itself
    np.fill_diagonal(rounds, -1)
    return rounds[:n, :n].astype(np.int32)


def _row_attributes(row: SimulatedRow, ranks: int, seed: int) -> dict[str, Any]:
    rounds = ranks - 1 + ranks % 2
    sizes = ",".join(str(size) for size in row.sizes)
    return {
        "kernel": row.kernel,
        "pattern": "all-pairs",
        "transport": "null",
        "memory": "host",
        "order": "parallel",
        "options": f"{row.kernel} --pattern all-pairs --sizes {sizes} --samples 100 --seed {seed} --transport null",
        "layout": "matrix",
        "state": "complete",
        "rounds": rounds,
        "cells_per_round": 2 * (ranks // 2),
        "repeats": 1,
        "seed": seed,
        "quantity": row.kernel,
        "payload": "src" if row.kernel == "bandwidth" else "both",
        "directions": "both",
        "windows": [64 if row.kernel == "bandwidth" else 1] * len(row.sizes),
        "warmup": 0,
        "warmups": [0] * len(row.sizes),
        "stop": {"samples": 100, "budget_s": None, "precision": None, "iterations": None},
        "validate": False,
        "measuring_s": rounds * ROUND_S,
        "wall_s": rounds * ROUND_S,
    }


def _root_attributes(fabric: Fabric, rows: Sequence[Row], host: Hosts, truth: dict[str, Any]) -> dict[str, Any]:
    ranks = host.size
    per_host = ranks // len(fabric.hosts)
    return {
        "format": 1,
        "state": "complete",
        "creator": f"fablint {__version__}",
        "command": ["fablint", "simulate"],
        "started": "1970-01-01T00:00:00Z",
        "started_epoch_s": 0.0,
        "rows": [row.name for row in rows],
        "ranks": ranks,
        "hosts": list(fabric.hosts),
        "rank_host": host.tolist(),
        "rank_cores": [str(rank % per_host) for rank in range(ranks)],
        "rank_numa": [0] * ranks,
        "rank_nic": ["nic0"] * ranks,
        "rank_pid": [rank + 1 for rank in range(ranks)],
        "nics": {
            name: [{"name": "nic0", "kind": "simulated", "state": "up", "speed_mbps": 200000, "mtu": 9000, "numa": 0}]
            for name in fabric.hosts
        },
        "counters": {"before": {}, "after": {}},
        "mpi": {"library": "none (simulated)", "standard": "0.0"},
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
