"""Rows of every kind of kernel and pattern, made of what simulated pairs would have measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from analyse_cases import in_rounds

from fablint.model import Row, Run
from fablint.model.registry import KERNELS
from fact_cases import with_facts

# A kernel of each kind: what it measures, the sender of the payload, and whether its target is passive.
KINDS = tuple(
    {
        (kernel.quantity, kernel.payload, kernel.is_one_sided): name
        for name, kernel in KERNELS.items()
        if "pairs" in kernel.groups
    }.values()
)


def only(run: Run, *rows: Row) -> Run:
    """A run of these rows and no others."""
    return replace(with_facts(run, rows=[row.name for row in rows]), rows=rows)


def with_kernel(run: Run, kernel: str) -> Row:
    """An all-pairs row of this kernel: the simulated stream or round trip, recorded by the leader."""
    quantity, payload = KERNELS[kernel].quantity, KERNELS[kernel].payload
    row = run.row(quantity)
    times = np.asarray(row.arrays["time_median"])
    if payload == "dst":  # the leader receives
        times = times.swapaxes(1, 2)
    if payload == "both" and quantity == "bandwidth":  # both directions at once: the slower one is waited for
        times = np.maximum(times, times.swapaxes(1, 2))
    attributes = {"kernel": kernel, "quantity": quantity, "payload": payload, "directions": "both"}
    return _row(row, kernel, attributes, times)


def one_direction(row: Row) -> Row:
    """A matrix row of which only the leader's cells were measured."""
    times = np.array(row.arrays["time_median"])
    n = times.shape[1]
    times[0, np.tril_indices(n)[0], np.tril_indices(n)[1]] = np.nan
    cells = row.facts.schedule.cells_per_round // 2
    return _row(row, row.name, {"directions": "single", "cells_per_round": cells}, times)


def one_direction_in_rounds(run: Run, row: Row, rounds: int, seed: int) -> Row:
    """The same in a few random rounds: the followers record nothing, not even their partner."""
    listed = in_rounds(only(run, row), rounds, seed).rows[0]
    times, dst = np.array(listed.arrays["time_median"]), np.array(listed.arrays["dst"])
    follows = dst < np.arange(run.ranks)[:, None]
    times[follows], dst[follows] = np.nan, -1
    arrays = {**listed.arrays, "time_median": times, "dst": dst, "count": _count(times)}
    return replace(with_facts(listed, directions="single"), arrays=arrays)


def clients_servers(run: Run, kernel: str, servers: int, *, unfair: float = 0.0, seed: int = 0) -> Row:
    """Clients in turn with every server. A server's clients share its link; `unfair`: by how much not evenly."""
    quantity, payload = KERNELS[kernel].quantity, KERNELS[kernel].payload
    pairs = np.asarray(run.row("bandwidth").arrays["time_median"])[0, :, :, 0]
    pairs = pairs.T if payload == "dst" else pairs  # [client, server]
    n = run.ranks
    clients = np.arange(servers, n)
    dst = np.full((n, servers), -1, dtype=np.int32)
    times = np.full((n, servers, 1), np.nan, dtype=np.float32)
    position = np.exp(unfair * np.random.default_rng(seed).normal(size=n))  # near ones get more, every time
    for number in range(servers):
        server = (clients - servers + number) % servers
        load = np.bincount(server, minlength=servers)[server]
        dst[clients, number] = server
        times[clients, number, 0] = pairs[clients, server] * load * position[clients]
    attributes = {"kernel": kernel, "quantity": quantity, "payload": payload, "directions": "one"}
    attributes |= {"pattern": "clients-servers", "rounds": servers, "cells_per_round": clients.size}
    return _listed(run.row("bandwidth"), kernel, attributes, times, dst)


def fan_in(run: Run) -> Row:
    """All others to rank 0 at once: each has its share of that link."""
    n = run.ranks
    dst = np.zeros((n, 1), dtype=np.int32)
    dst[0] = -1
    times = np.array(run.row("bandwidth").arrays["time_median"])[0, :, 0, 0][:, None, None] * (n - 1)
    attributes = {"pattern": "fan-in", "payload": "src", "directions": "one", "rounds": 1, "cells_per_round": n - 1}
    return _listed(run.row("bandwidth"), "fan-in", attributes, times, dst)


def world(run: Run, kernel: str, slow: int) -> Row:
    """A collective, for which `slow` takes far longer than the others."""
    times = np.full((run.ranks, 1, 1), 1e-5, dtype=np.float32)
    times[slow] *= 10
    dst = np.full((run.ranks, 1), -1, dtype=np.int32)
    attributes = {"kernel": kernel, "quantity": "latency", "payload": "both", "directions": "one", "pattern": "world"}
    attributes |= {"rounds": 1, "cells_per_round": run.ranks}
    return _listed(run.row("latency"), kernel, attributes, times, dst)


def victims(run: Run, pairs: int) -> Row:
    """Victim pairs alone in the even rounds, and beside aggressors in the odd ones, when the first two fare worst."""
    times = np.full((run.ranks, 8, 1), np.nan, dtype=np.float32)
    dst = np.full((run.ranks, 8), -1, dtype=np.int32)
    full = np.asarray(run.row("latency").arrays["time_median"])[0, :, :, 0]
    for a in range(0, 2 * pairs, 2):
        for rank, other in ((a, a + 1), (a + 1, a)):
            dst[rank] = other
            times[rank, 0::2, 0] = full[rank, other]
            times[rank, 1::2, 0] = full[rank, other] * (50 if a < 4 else 5)
    attributes = {"pattern": "victim-aggressor", "rounds": 8, "cells_per_round": 2 * pairs}
    return _listed(run.row("latency"), "victims", attributes, times, dst)


def retest(base: Row, pairs: list[tuple[int, int]], factor: float) -> Row:
    """These pairs of an all-pairs row measured again, one after the other; `factor`: of their first times."""
    first = np.asarray(base.arrays["time_median"])[0]
    n = first.shape[0]
    times = np.full((n, len(pairs), 1), np.nan, dtype=np.float32)
    dst = np.full((n, len(pairs)), -1, dtype=np.int32)
    for number, (a, b) in enumerate(pairs):
        dst[a, number], dst[b, number] = b, a
        times[a, number], times[b, number] = first[a, b] * factor, first[b, a] * factor
    attributes = {"pattern": "rounds", "order": "serial", "rounds": len(pairs), "retest_of": base.name}
    return _listed(base, f"{base.name}-retest", attributes, times, dst)


def _row(row: Row, name: str, attributes: dict[str, Any], times: np.ndarray) -> Row:
    arrays = {**row.arrays, "time_median": times, "count": _count(times)}
    return Row(name, with_facts(row, **attributes).facts, arrays)


def _listed(row: Row, name: str, attributes: dict[str, Any], times: np.ndarray, dst: np.ndarray) -> Row:
    arrays = {"time_median": times, "count": _count(times), "dst": dst, "size": row.arrays["size"]}
    return Row(name, with_facts(row, layout="list", **attributes).facts, arrays)


def _count(times: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(times), 0, 100).astype(np.uint32)
