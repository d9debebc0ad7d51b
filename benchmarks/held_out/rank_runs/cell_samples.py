"""Samples of every measurement, message by message, and the statistics that the engine stores of them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import numpy.typing as npt

from held_out.network import Network
from held_out.rank_runs.cluster import Cluster
from held_out.rank_runs.component_faults import ComponentFault
from held_out.rank_runs.concurrency import message_seconds, stream_seconds
from held_out.schedule import Schedule

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SAMPLES, WINDOW = 100, 64  # samples of a measurement; messages of a stream's sample
WITHIN = {"latency": 0.02, "bandwidth": 0.004}  # sigma of log time from sample to sample of a measurement
PER_OCTAVE = 128  # buckets of a histogram


def with_faults(cluster: Cluster, network: Network, faults: Sequence[ComponentFault]) -> Network:
    """The network with these faults."""
    slow = deepcopy(network)
    for fault in faults:
        fault.apply(cluster, slow)
    return slow


def samples(
    cluster: Cluster,
    network: Network,
    faults: Sequence[ComponentFault],
    schedule: Schedule,
    quantity: str,
    size: int,
    rng: np.random.Generator,
) -> Floats:
    """(P, SAMPLES) s of a message, without noise that samples share; `schedule` is one of NICs."""
    steady = with_faults(cluster, network, [fault for fault in faults if fault.incidence is None])
    measure = _round_trips if quantity == "latency" else _streams
    seconds = measure(steady, schedule, size, rng)
    for fault in faults:
        if fault.incidence is not None:
            crossed = fault.crossed_by(cluster, network, schedule.src, schedule.dst)
            share = fault.incidence(schedule, crossed, rng)
            slow = with_faults(cluster, steady, [fault])
            seconds = seconds + measure(steady, schedule, size, rng, (slow, share))
    return np.asarray(seconds * np.exp(WITHIN[quantity] * rng.standard_normal(seconds.shape)))


def _streams(
    steady: Network,
    schedule: Schedule,
    size: int,
    rng: np.random.Generator,
    slow: tuple[Network, Floats] | None = None,
) -> Floats:
    """(P, SAMPLES) s per message of a window: the messages take all paths in equal shares.

    With `slow`, a network and shares: what it adds; the share of messages that it slows is drawn for every window.
    """
    crossed = steady.crossed(schedule.src, schedule.dst)
    seconds = stream_seconds(steady, schedule, crossed, size)[:, None]
    if slow is None:
        return np.repeat(seconds, SAMPLES, axis=1)
    network, share = slow
    added = stream_seconds(network, schedule, crossed, size)[:, None] - seconds
    hits = rng.binomial(WINDOW, np.broadcast_to(share[:, None], (share.size, SAMPLES))) / WINDOW
    return np.asarray(added * hits)


def _round_trips(
    steady: Network,
    schedule: Schedule,
    size: int,
    rng: np.random.Generator,
    slow: tuple[Network, Floats] | None = None,
) -> Floats:
    """(P, SAMPLES) s of half a round trip, each message on one of its paths; or what a slow network adds to them."""
    total = np.zeros((len(schedule), SAMPLES))
    for src, dst in ((schedule.src, schedule.dst), (schedule.dst, schedule.src)):
        crossed = steady.crossed(src, dst)
        seconds = message_seconds(steady, crossed, size)
        hits = np.ones_like(total)
        if slow is not None:
            network, share = slow
            seconds = message_seconds(network, crossed, size) - seconds
            hits = (rng.random(total.shape) < share[:, None]).astype(float)
        path = rng.integers(seconds.shape[1], size=total.shape)
        total += np.take_along_axis(seconds, path, axis=1) * hits
    return total / 2


def statistics(seconds: Floats) -> dict[str, Floats]:
    """(P,) of each statistic."""
    ordered = np.sort(seconds, axis=1)
    return {
        "min": ordered[:, 0],
        "median": np.median(ordered, axis=1),
        "mean": ordered.mean(axis=1),
        "p99": ordered[:, int(0.99 * ordered.shape[1]) - 1],
        "max": ordered[:, -1],
    }


def histogram(seconds: Floats) -> tuple[Floats, Ints]:
    """Lower edges of the buckets, and (P, buckets) samples in each."""
    position = np.floor(np.log2(seconds) * PER_OCTAVE).astype(np.int64)
    first, last = int(position.min()), int(position.max())
    buckets = last - first + 1
    place = np.arange(len(seconds))[:, None] * buckets + position - first
    counts = np.bincount(place.reshape(-1), minlength=len(seconds) * buckets).reshape(-1, buckets)
    return np.exp2((first + np.arange(buckets)) / PER_OCTAVE), counts
