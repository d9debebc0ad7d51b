"""How long a message takes: capacities and latencies of all components, and two models of how they add up."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from held_out.fabrics import Fabric, switches_on

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Model = Literal["bottleneck", "product"]

HOST_RATE = 12.2e9  # bytes/s: what a message of 1 MiB reaches on a healthy host
END_LATENCY, SWITCH_LATENCY, CABLE_LATENCY = 0.36e-6, 0.11e-6, 0.02e-6  # s


class Network:
    """The components of a fabric in one numbering: tx and rx of hosts and NICs, host cables, switches, links.

    `bottleneck`: a message takes as long as on its thinnest component. `product`: each component stretches it by the
    ratio of its nominal capacity to the one it has, so that the losses of a path multiply. Latencies add up in both.

    Attributes:
        capacity: (C,) bytes/s.
        nominal: (C,) the same of the design, without spread and faults.
        latency: (C,) s.
    """

    def __init__(self, fabric: Fabric, model: Model = "bottleneck", uplink: float = 1.0) -> None:
        n, switches, links = fabric.n, len(fabric.switches), len(fabric.links)
        self.fabric, self.model = fabric, model
        self.none = 6 * n + switches + links  # pads paths that are shorter than the longest one
        self.capacity = np.full(self.none + 1, HOST_RATE)
        self.capacity[6 * n : 6 * n + switches] = np.inf
        self.capacity[6 * n + switches : self.none] = uplink * HOST_RATE
        self.capacity[self.none] = np.inf
        self.latency = np.full(self.none + 1, CABLE_LATENCY)
        self.latency[: 2 * n] = END_LATENCY
        self.latency[2 * n : 4 * n] = 0.0  # a NIC's latency is part of its host's
        self.latency[6 * n : 6 * n + switches] = SWITCH_LATENCY
        self.latency[self.none] = 0.0
        self.nominal = self.capacity.copy()
        self._table, self._choices = self._path_table()

    def hosts(self, hosts: Ints | list[int], *sides: str) -> Ints:
        """Components of hosts; sides: tx rx nic_tx nic_rx up down."""
        order = ("tx", "rx", "nic_tx", "nic_rx", "up", "down")
        return np.concatenate([np.asarray(hosts, np.int64) + order.index(side) * self.fabric.n for side in sides])

    def switches(self, *switches: int) -> Ints:
        """Components of switches."""
        return 6 * self.fabric.n + np.array(switches, np.int64)

    def links(self, *links: int) -> Ints:
        """Components of directed links."""
        return 6 * self.fabric.n + len(self.fabric.switches) + np.array(links, np.int64)

    def _path_table(self) -> tuple[Ints, Ints]:
        """(S, S, K, L) components between two switches, and how many of the K alternatives there are."""
        paths = self.fabric.paths
        size = 1 + int(self.fabric.host_switch.max())
        near = {ends: paths[ends] for ends in paths if max(ends) < size}
        most = max(len(alternatives) for alternatives in near.values())
        longest = max(1, max(2 * len(path) for alternatives in near.values() for path in alternatives))
        table = np.full((size, size, most, longest), self.none, np.int64)
        choices = np.ones((size, size), np.int64)
        for (a, b), alternatives in near.items():
            choices[a, b] = len(alternatives)
            for at, path in enumerate(alternatives):
                parts = [*self.links(*path), *self.switches(*switches_on(self.fabric, path))]
                table[a, b, at, : len(parts)] = parts
        return table, choices

    def crossed(self, src: Ints, dst: Ints) -> Ints:
        """(P, A, M) components that a message crosses on each of its A alternatives: 1 unless routing is adaptive."""
        n, near, far = self.fabric.n, self.fabric.host_switch[src], self.fabric.host_switch[dst]
        between = self._table[near, far]
        count = self._choices[near, far]
        if self.fabric.routing != "adaptive":
            key = dst if self.fabric.routing == "static" else _hash(src, dst)
            between = between[np.arange(src.size), key % count][:, None]
        else:  # fewer alternatives than the widest pair has: repeat them, so that the shares stay equal
            at = np.arange(between.shape[1])[None, :] % count[:, None]
            between = np.take_along_axis(between, at[:, :, None], axis=1)
        same = np.where(near == far, self.none, 6 * n + far)
        ends = [src, dst + n, src + 2 * n, dst + 3 * n, src + 4 * n, dst + 5 * n, 6 * n + near, same]
        fixed = np.stack(ends, axis=1)[:, None]
        return np.concatenate([np.broadcast_to(fixed, (src.size, between.shape[1], 8)), between], axis=2)

    def seconds(self, src: Ints, dst: Ints, quantity: str, size: int) -> Floats:
        """(P,) s: of a one-way stream's message (`bandwidth`), of half a round trip (`latency`)."""
        if quantity == "latency":
            return (self._one_direction(src, dst, size) + self._one_direction(dst, src, size)) / 2
        return self._one_direction(src, dst, size)

    def _one_direction(self, src: Ints, dst: Ints, size: int) -> Floats:
        crossed = self.crossed(src, dst)
        if self.model == "bottleneck":
            bytes_s = size / self.capacity[crossed].min(axis=2)
        else:
            with np.errstate(invalid="ignore"):
                ratio = np.where(np.isinf(self.nominal), 1.0, self.nominal / self.capacity)
            bytes_s = size / self.nominal[crossed].min(axis=2) * ratio[crossed].prod(axis=2)
        return np.asarray((bytes_s + self.latency[crossed].sum(axis=2)).mean(axis=1))


def _hash(src: Ints, dst: Ints) -> Ints:
    """A number that looks random and is the same for all messages of an ordered pair."""
    mixed = (src.astype(np.uint64) * np.uint64(0x9E3779B1) + dst.astype(np.uint64)) * np.uint64(0x85EBCA77)
    return ((mixed >> np.uint64(15)) & np.uint64(0x7FFF)).astype(np.int64)
