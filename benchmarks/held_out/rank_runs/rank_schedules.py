"""Schedules of ranks: all pairs of ranks, or each rail with itself; and the same measurements as pairs of NICs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from held_out.network import Network
from held_out.rank_runs.cluster import Cluster
from held_out.schedule import ROUND_S, Schedule, few_rounds, full_matrix

Ints = npt.NDArray[np.int64]


def all_ranks(cluster: Cluster, rng: np.random.Generator, repeats: int = 1) -> Schedule:
    """All pairs of ranks on different hosts, in rounds in which each rank takes part once.

    Of the ranks that share a NIC some send and others receive at a time, and the partner of a rank may be on its own
    host: how many streams share a NIC varies.
    """
    schedule = full_matrix(cluster.ranks, rng, repeats)
    host = cluster.rank_host
    return schedule.chosen(host[schedule.src] != host[schedule.dst])


def by_rail(cluster: Cluster, rng: np.random.Generator, repeats: int = 1, rounds: int | None = None) -> Schedule:
    """All pairs of hosts: in a round all ranks of a host are measured with the same ranks of another host."""
    hosts = len(cluster.hosts)
    pairs = full_matrix(hosts, rng, repeats) if rounds is None else few_rounds(hosts, rounds, rng)
    each = np.arange(cluster.per_host)

    def ranks(ends: Ints) -> Ints:
        return np.asarray((ends[:, None] * cluster.per_host + each).reshape(-1))

    number, started = (np.repeat(values, each.size) for values in (pairs.round, pairs.started))
    return Schedule(ranks(pairs.src), ranks(pairs.dst), number, started, pairs.rounds)


def isolated(cluster: Cluster, host: int, partners: Ints, controls: Ints) -> Schedule:
    """A follow-up measurement: a host with some partners, then pairs of other hosts, one pair at a time."""
    ends = [(host, int(partner)) for partner in partners]
    ends += [(int(a), int(b)) for a, b in controls]
    low, high = np.array(ends).T * cluster.per_host
    number = np.arange(len(ends))
    both = np.repeat(number, 2)
    src, dst = (np.stack(pair, axis=1).reshape(-1) for pair in ((low, high), (high, low)))
    started = both * ROUND_S + np.tile([0.0, ROUND_S / 2], len(ends))
    return Schedule(src, dst, both, started, len(ends))


def of_endpoints(cluster: Cluster, schedule: Schedule) -> Schedule:
    """The same measurements as pairs of NICs."""
    nic = cluster.rank_endpoint
    return replace(schedule, src=nic[schedule.src], dst=nic[schedule.dst])


def repeat_of(schedule: Schedule) -> Ints:
    """(P,) which repeat of its pair a measurement is."""
    order = np.lexsort((schedule.round, schedule.dst, schedule.src))
    ends = np.stack([schedule.src[order], schedule.dst[order]])
    first = np.ones(len(schedule), bool)
    first[1:] = (ends[:, 1:] != ends[:, :-1]).any(axis=0)
    position = np.arange(len(schedule))
    repeat = np.empty(len(schedule), np.int64)
    repeat[order] = position - np.maximum.accumulate(np.where(first, position, 0))
    return repeat


def without_shared_links(cluster: Cluster, network: Network, schedule: Schedule) -> Schedule:
    """Each round in several, so that no two streams share a link between switches; for known paths only."""
    nics = of_endpoints(cluster, schedule)
    crossed = network.crossed(nics.src, nics.dst)[:, 0]
    between = (crossed >= network.none - len(cluster.fabric.links)) & (crossed < network.none)
    late = schedule.started - schedule.round * ROUND_S > ROUND_S / 4
    low, high = np.minimum(schedule.src, schedule.dst), np.maximum(schedule.src, schedule.dst)
    order = np.lexsort((late, high, low, schedule.round))  # the two directions of a pair follow each other
    number = np.empty(len(schedule), np.int64)
    busy: list[set[tuple[bool, int]]] = []
    offset, current = 0, -1
    for cells in order.reshape(-1, 2).tolist():
        if schedule.round[cells[0]] != current:
            offset, busy, current = offset + len(busy), [], schedule.round[cells[0]]
        taken = {(bool(late[cell]), link) for cell in cells for link in crossed[cell][between[cell]].tolist()}
        turn = next((at for at, links in enumerate(busy) if not links & taken), len(busy))
        if turn == len(busy):
            busy.append(set())
        busy[turn] |= taken
        number[cells] = offset + turn
    started = number * ROUND_S + np.where(late, ROUND_S / 2, 0.0)
    return Schedule(schedule.src, schedule.dst, number, started, offset + len(busy))
