"""Rates of streams that share components, and times of small messages, which wait for no other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from held_out.network import Network
from held_out.schedule import Schedule

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def stream_seconds(network: Network, schedule: Schedule, crossed: Ints, size: int) -> Floats:
    """(P,) s of a message of a stream: streams that start at the same time share what they cross.

    Rates are max-min fair: all grow until a component is full, then those that cross it keep theirs and the others
    grow on. A stream that spreads over A paths puts 1 / A of its rate on each of them.
    """
    rates = np.empty(len(schedule))
    order = np.argsort(schedule.started, kind="stable")
    moments = np.flatnonzero(np.diff(schedule.started[order], prepend=-1.0))
    for streams in np.split(order, moments[1:]):
        rates[streams] = _fair_rates(network, crossed[streams])
    latency = network.latency[crossed].sum(axis=2).mean(axis=1)
    return np.asarray(size / rates + latency)


def _fair_rates(network: Network, crossed: Ints) -> Floats:
    """(F,) bytes/s of streams that run together; `crossed` is (F, A, M)."""
    count, alternatives, _ = crossed.shape
    used, place = np.unique(crossed, return_inverse=True)
    weight = np.zeros((count, used.size))
    streams = np.broadcast_to(np.arange(count)[:, None, None], crossed.shape)
    np.add.at(weight, (streams.reshape(-1), place.reshape(-1)), 1 / alternatives)
    finite = np.isfinite(network.capacity[used])
    weight, room = weight[:, finite], network.capacity[used][finite]
    full = room.copy()
    rates, growing = np.zeros(count), np.ones(count, bool)
    while growing.any():
        load = weight[growing].sum(axis=0)
        step = float((room[load > 0] / load[load > 0]).min())
        rates[growing] += step
        room = room - step * load
        growing &= ~(weight[:, room < 1e-9 * full] > 0).any(axis=1)
    return rates


def message_seconds(network: Network, crossed: Ints, size: int) -> Floats:
    """(P, A) s of a small message on each path: it waits for no other."""
    return np.asarray(size / network.capacity[crossed].min(axis=2) + network.latency[crossed].sum(axis=2))
