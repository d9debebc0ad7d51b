"""Single messages: what some of them meet and others do not, and the statistics of a measurement made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fablint.simulate.faults import Condition, Floats
from fablint.simulate.messages.costs import SOFTWARE_S, CellLinks, Measurements, Nature
from fablint.simulate.simulated_fabric import LINK_BANDWIDTH, LINK_LATENCY_S, Index

Kernel = Literal["latency", "bandwidth", "bibandwidth", "exchange"]
Times = npt.NDArray[np.float32]

KERNELS: tuple[Kernel, ...] = ("latency", "bandwidth", "bibandwidth", "exchange")
AT_ONCE = frozenset({"bibandwidth", "exchange"})  # both ways at the same time
STATISTICS = ("min", "median", "mean", "p99", "max")

MESSAGES = 100  # of a measurement
GAP_S = 0.1e-6  # from one message of a stream to the next, however small
BUCKETS = 64  # per octave of a histogram
RAREST = 2e-3  # events that fewer messages meet belong to the background


@dataclass(frozen=True)
class Events:
    """What a share of the messages of some cells meets. Flat arrays of one length."""

    cell: Index
    share: Floats
    per_byte: Floats  # s, of the sick link crossed; 0: none
    added_s: Floats

    def only(self, place: Index) -> Events:
        """Those of the cells that have a place in 0.., -1 elsewhere."""
        at = place[self.cell]
        kept = at >= 0
        return Events(at[kept], self.share[kept], self.per_byte[kept], self.added_s[kept])


def times(
    kernel: Kernel, size: int, delay: Floats, per_byte: Floats, reverse: npt.NDArray[np.int64]
) -> npt.NDArray[np.floating]:
    """Seconds per message of cells, or of the single messages of cells (a second axis).

    A stream follows the slowest link, a latency the sum of the links. A round trip has both ways one after the
    other, `bibandwidth` and `exchange` at once: the slower one is what both ends see.
    """
    stream = kernel in ("bandwidth", "bibandwidth")
    there = np.maximum(per_byte * size, GAP_S) if stream else delay + per_byte * size
    if kernel == "latency":
        return np.asarray((there + there[reverse]) / 2)
    return np.asarray(np.maximum(there, there[reverse]) if kernel in AT_ONCE else there)


def events_of(nature: Nature, condition: Condition, cells: Measurements, ways: CellLinks, kernel: Kernel) -> Events:
    """What some messages of the cells meet: links that lose messages, and with adaptive routing the sick links.

    Of a latency with adaptive routing also the detours themselves.
    """
    found = [_retries(condition, cells, ways)]
    if nature.adaptive:
        found += _adaptive(nature, condition, cells, duplex=kernel in AT_ONCE)
        if kernel in ("latency", "exchange") and nature.detour_share:
            found.append(_longer(nature, cells))
    return Events(*(np.concatenate([getattr(one, name) for one in found]) for name in Events.__dataclass_fields__))


def _retries(condition: Condition, cells: Measurements, ways: CellLinks) -> Events:
    """Messages that cross a lossy link and are sent again."""
    width = condition.latency.shape[1]
    lossy = np.atleast_1d((condition.retry_share > 0).any(axis=0))
    cell, hop = np.nonzero(lossy[ways.links])
    place = condition.state[cells.round[cell]].astype(np.int64) * width + ways.links[cell, hop]
    share = condition.retry_share.ravel()[place]
    return Events(cell.astype(np.int32), share, np.zeros(cell.size), condition.retry_s.ravel()[place])


def _adaptive(nature: Nature, condition: Condition, cells: Measurements, *, duplex: bool) -> list[Events]:
    """Messages that happen to cross a sick link, on a shortest way or on a detour."""
    sick = condition.sick[: nature.fabric.switch_links]
    links = np.flatnonzero(sick)
    if not links.size:
        return []
    cell, link, share = nature.exposure(cells)
    kept = sick[link]
    cell, link, share = cell[kept], link[kept], share[kept]
    if nature.detour_share:
        out, back, row = nature.detours
        src, dst = (row[nature.port_switch[port]] for port in nature.ports(cells))
        detour = (out[:, links][src] + back[:, links][dst]) * np.float32(nature.detour_share)
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


def _longer(nature: Nature, cells: Measurements) -> Events:
    """Messages that take a detour meet more links."""
    out, back, row = nature.detours
    src, dst = (row[nature.port_switch[port]] for port in nature.ports(cells))
    cell = np.flatnonzero(src != dst).astype(np.int32)
    hops = out.sum(axis=1)[src] + back.sum(axis=1)[dst] - shortest_hops(nature, cells)
    added = np.maximum(hops[cell], 0.0) * np.float64(LINK_LATENCY_S)
    share = np.full(cell.size, nature.detour_share, dtype=np.float64)
    return Events(cell, share, np.zeros(cell.size), added)


def shortest_hops(nature: Nature, cells: Measurements) -> Floats:
    """(k,) links between switches on a shortest way, adaptive routing."""
    cell, _, share = nature.exposure(cells)
    minimal = nature.fabric.topology.routing.minimal_share
    return np.asarray(np.bincount(cell, weights=share, minlength=cells.src.size) / minimal, dtype=np.float64)


def meet(
    rng: np.random.Generator, events: Events, delay: Floats, per_byte: Floats
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(k, MESSAGES) delay and time per byte of single messages, some of which meet an event."""
    shape = (delay.size, MESSAGES)
    delays, rates = np.broadcast_to(delay[:, None], shape).copy(), np.broadcast_to(per_byte[:, None], shape).copy()
    order = np.argsort(events.cell, kind="stable")
    cell = events.cell[order]
    turn = np.arange(cell.size) - np.searchsorted(cell, cell)  # how many of the cell came before
    for number in range(int(turn.max(initial=-1)) + 1):  # no cell twice in a turn
        some = order[turn == number]
        at = events.cell[some]
        met = rng.random((some.size, MESSAGES), dtype=np.float32) < events.share[some, None]
        delays[at] += np.where(met, events.added_s[some, None], 0.0)
        rates[at] = np.maximum(rates[at], np.where(met, events.per_byte[some, None], 0.0))
    return delays, rates


def statistic(name: str, messages: Times) -> Times:
    """(k,) of (k, MESSAGES)."""
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
    """Lower edges (s) of the buckets of a histogram, from well below what is healthy to `slowest` times above.

    What lies outside counts in the end buckets.
    """
    none = np.zeros(1, dtype=np.int64)
    hops = [np.array([SOFTWARE_S + links * LINK_LATENCY_S]) for links in (2, 8)]
    rate = np.array([1 / LINK_BANDWIDTH])
    fast = min(times(kernel, size, hops[0], rate, none)[0] for size in sizes)
    slow = max(times(kernel, size, hops[1], rate, none)[0] for size in sizes)
    first = int(np.floor(np.log2(0.6 * fast) * BUCKETS))
    last = int(np.ceil(np.log2(slowest * slow) * BUCKETS))
    return np.asarray(np.exp2(np.arange(first, last + 1) / BUCKETS))


def histogram(messages: Times, buckets: Floats) -> npt.NDArray[np.uint32]:
    """(k, buckets) messages in each bucket."""
    first = np.float32(np.log2(buckets[0]) * BUCKETS)
    place = np.log2(messages)
    place *= np.float32(BUCKETS)
    place -= first
    index = np.clip(place, 0, buckets.size - 1).astype(np.int64)
    index += np.arange(messages.shape[0])[:, None] * buckets.size
    counts = np.bincount(index.ravel(), minlength=messages.shape[0] * buckets.size)
    return counts.reshape(-1, buckets.size).astype(np.uint32)
