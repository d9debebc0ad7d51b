"""Single messages: events that delay some of them, and the statistics of their measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fablint.model.arrays import Codes, Floats, Ints, Values
from fablint.simulate.faults import Condition
from fablint.simulate.messages.costs import SOFTWARE_S, ActualRouting, CellLinks, Measurements
from fablint.simulate.simulated_fabric import LINK_BANDWIDTH, LINK_LATENCY_S

Kernel = Literal["latency", "bandwidth", "bibandwidth", "exchange"]

KERNELS: tuple[Kernel, ...] = ("latency", "bandwidth", "bibandwidth", "exchange")
AT_ONCE = frozenset({"bibandwidth", "exchange"})  # both directions at the same time
STATISTICS = ("min", "median", "mean", "p99", "max")

MESSAGES = 100  # per measurement
GAP_S = 0.1e-6  # between the messages of a stream, however small
BUCKETS = 64  # per octave of a histogram
RAREST = 2e-3  # events that affect a smaller share of messages belong to the background


@dataclass(frozen=True)
class Events:
    """Events that delay a share of the messages of some cells. Flat arrays of one length."""

    cell: Codes
    share: Floats
    per_byte: Floats  # s, of the faulty link crossed; 0: none
    added_s: Floats

    def only(self, place: Codes) -> Events:
        """Events of the cells that have a place in 0.., -1 elsewhere."""
        at = place[self.cell]
        is_kept = at >= 0
        return Events(at[is_kept], self.share[is_kept], self.per_byte[is_kept], self.added_s[is_kept])


def times(kernel: Kernel, size: int, delay: Floats, per_byte: Floats, reverse: Codes) -> Floats | Values:
    """Seconds per message of cells, or of the single messages of cells (a second axis).

    The slowest link limits a stream, a latency is the sum of the links. A round trip has both directions one after the
    other, `bibandwidth` and `exchange` at once: both ends measure the slower direction.
    """
    stream = kernel in ("bandwidth", "bibandwidth")
    outward = np.maximum(per_byte * size, GAP_S) if stream else delay + per_byte * size
    if kernel == "latency":
        return np.asarray((outward + outward[reverse]) / 2)
    return np.asarray(np.maximum(outward, outward[reverse]) if kernel in AT_ONCE else outward)


def events_of(
    actual: ActualRouting, condition: Condition, cells: Measurements, paths: CellLinks, kernel: Kernel
) -> Events:
    """Return what delays a share of the messages of each cell: lossy links, and with adaptive routing faulty links.

    For the kernel `latency` with adaptive routing detours are events as well. `paths` are the links of the cells.
    """
    events = [_retries(condition, cells, paths)]
    if actual.adaptive:
        events += _adaptive(actual, condition, cells, duplex=kernel in AT_ONCE)
        if kernel in ("latency", "exchange") and actual.detour_share:
            events.append(_longer(actual, cells))
    return Events(*(np.concatenate([getattr(part, name) for part in events]) for name in Events.__dataclass_fields__))


def _retries(condition: Condition, cells: Measurements, paths: CellLinks) -> Events:
    """Events of messages that cross a lossy link and are retransmitted."""
    width = condition.latency.shape[1]
    lossy = np.atleast_1d((condition.retry_share > 0).any(axis=0))
    cell, hop = np.nonzero(lossy[paths.links])
    place = condition.state[cells.round[cell]].astype(np.int64) * width + paths.links[cell, hop]
    share = condition.retry_share.ravel()[place]
    return Events(cell.astype(np.int32), share, np.zeros(cell.size), condition.retry_s.ravel()[place])


def _adaptive(actual: ActualRouting, condition: Condition, cells: Measurements, *, duplex: bool) -> list[Events]:
    """Events of messages that cross a faulty link, on a shortest path or on a detour."""
    faulty = condition.faulty[: actual.fabric.switch_links]
    links = np.flatnonzero(faulty)
    if not links.size:
        return []
    cell, link, share = actual.exposure(cells)
    is_faulty = faulty[link]
    cell, link, share = cell[is_faulty], link[is_faulty], share[is_faulty]
    if actual.detour_share:
        out, back, row = actual.detours
        src, dst = (row[actual.port_switch[port]] for port in actual.ports(cells))
        detour = (out[:, links][src] + back[:, links][dst]) * np.float32(actual.detour_share)
        detour[src == dst] = 0
        more, column = np.nonzero(detour > RAREST)
        cell = np.concatenate([cell, more.astype(np.int32)])
        link = np.concatenate([link, links[column].astype(np.int32)])
        share = np.concatenate([share, detour[more, column]])
    place = condition.state[cells.round[cell]].astype(np.int64) * condition.latency.shape[1] + link
    per_byte = condition.per_byte.ravel()[place] * (condition.duplex.ravel()[place] if duplex else 1.0)
    added = np.maximum(condition.latency.ravel()[place] - LINK_LATENCY_S, 0.0)
    chance: Floats = share.astype(np.float64)
    again = condition.retry_share.ravel()[place]
    lossy = again > 0
    retried = Events(
        cell[lossy], (chance * again)[lossy], np.zeros(lossy.sum()), condition.retry_s.ravel()[place][lossy]
    )
    return [Events(cell, chance, per_byte, added), retried]


def _longer(actual: ActualRouting, cells: Measurements) -> Events:
    """Events of messages on detours, which cross more links."""
    out, back, row = actual.detours
    src, dst = (row[actual.port_switch[port]] for port in actual.ports(cells))
    cell = np.flatnonzero(src != dst).astype(np.int32)
    hops = out.sum(axis=1)[src] + back.sum(axis=1)[dst] - shortest_hops(actual, cells)
    added = np.maximum(hops[cell], 0.0) * np.float64(LINK_LATENCY_S)
    share = np.full(cell.size, actual.detour_share, dtype=np.float64)
    return Events(cell, share, np.zeros(cell.size), added)


def shortest_hops(actual: ActualRouting, cells: Measurements) -> Floats:
    """(k,) links between switches on a shortest path, adaptive routing."""
    cell, _, share = actual.exposure(cells)
    minimal = actual.fabric.topology.routing.minimal_share
    return np.asarray(np.bincount(cell, weights=share, minlength=cells.src.size) / minimal, dtype=np.float64)


def meet(rng: np.random.Generator, events: Events, delay: Floats, per_byte: Floats) -> tuple[Floats, Floats]:
    """(k, MESSAGES) delay and time per byte of single messages, some of which are delayed by an event."""
    shape = (delay.size, MESSAGES)
    delays, rates = np.broadcast_to(delay[:, None], shape).copy(), np.broadcast_to(per_byte[:, None], shape).copy()
    order = np.argsort(events.cell, kind="stable")
    cell = events.cell[order]
    turn = np.arange(cell.size) - np.searchsorted(cell, cell)  # number of earlier events of the cell
    for number in range(int(turn.max(initial=-1)) + 1):  # each cell at most once in a turn
        batch = order[turn == number]
        at = events.cell[batch]
        met = rng.random((batch.size, MESSAGES), dtype=np.float32) < events.share[batch, None]
        delays[at] += np.where(met, events.added_s[batch, None], 0.0)
        rates[at] = np.maximum(rates[at], np.where(met, events.per_byte[batch, None], 0.0))
    return delays, rates


def statistic(name: str, messages: Values) -> Values:
    """(k,) statistic of (k, MESSAGES) times."""
    match name:
        case "median":
            return np.asarray(np.median(messages, axis=1))
        case "mean":
            return np.asarray(messages.mean(axis=1))
        case "p99":
            return np.asarray(np.quantile(messages, 0.99, axis=1).astype(np.float32))
        case "min":
            return np.asarray(messages.min(axis=1))
    return np.asarray(messages.max(axis=1))


def buckets_of(kernel: Kernel, sizes: tuple[int, ...], slowest: float) -> Floats:
    """Lower edges (s) of the buckets of a histogram, from well below healthy times to `slowest` times above.

    Times outside count in the first and last bucket.
    """
    none = np.zeros(1, dtype=np.int64)
    hops = [np.array([SOFTWARE_S + links * LINK_LATENCY_S]) for links in (2, 8)]
    rate = np.array([1 / LINK_BANDWIDTH])
    fast = min(times(kernel, size, hops[0], rate, none)[0] for size in sizes)
    slow = max(times(kernel, size, hops[1], rate, none)[0] for size in sizes)
    first = int(np.floor(np.log2(0.6 * fast) * BUCKETS))
    last = int(np.ceil(np.log2(slowest * slow) * BUCKETS))
    return np.asarray(np.exp2(np.arange(first, last + 1) / BUCKETS))


def histogram(messages: Values, buckets: Floats) -> Ints:
    """(k, buckets) messages in each bucket."""
    first = np.float32(np.log2(buckets[0]) * BUCKETS)
    place = np.log2(messages)
    place *= np.float32(BUCKETS)
    place -= first
    index = np.clip(place, 0, buckets.size - 1).astype(np.int64)
    index += np.arange(messages.shape[0])[:, None] * buckets.size
    counts = np.bincount(index.ravel(), minlength=messages.shape[0] * buckets.size)
    return counts.reshape(-1, buckets.size).astype(np.uint32)
