"""What a message meets on its way: the links it crosses, what they cost, and how many flows share them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fablint.model import Routing
from fablint.simulate.faults import Condition, Floats
from fablint.simulate.rounds import Partners
from fablint.simulate.simulated_fabric import Fabric, Index
from fablint.topology.routing import Routes

SOFTWARE_S = 0.5e-6  # what a message costs before and after the network
MEMORY_BANDWIDTH = 10e9  # bytes/s between two ranks of one host
MOST_VIAS = 64  # switches that stand for all those of a detour

Shares = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Measurements:
    """Directed measurements; the second half are those of the first half the other way round."""

    src: Index  # (k,) ranks
    dst: Index
    round: Index

    @property
    def reverse(self) -> npt.NDArray[np.int64]:
        """(k,) position of the same pair the other way round."""
        half = self.src.size // 2
        return (np.arange(self.src.size) + half) % max(1, self.src.size)

    def only(self, pairs: npt.NDArray[np.int64]) -> Measurements:
        """Those of some pairs of the first half."""
        both = np.concatenate([pairs, pairs + self.src.size // 2])
        return Measurements(self.src[both], self.dst[both], self.round[both])


def cells_of(partner: Partners, most: int) -> Iterator[Measurements]:
    """All cells of a table of partners, some rounds at a time, about `most` cells each."""
    ranks, rounds = partner.shape
    step = max(1, most // max(1, ranks))
    index = np.arange(ranks, dtype=np.int32)[:, None]
    for first in range(0, rounds, step):
        some = partner[:, first : first + step]
        number, low = np.nonzero((some > index).T)
        low, high = low.astype(np.int32), some[low, number].astype(np.int32)
        number = (number + first).astype(np.int32)
        yield Measurements(np.concatenate([low, high]), np.concatenate([high, low]), np.tile(number, 2))


@dataclass(frozen=True)
class CellLinks:
    """Links of each cell in order, the hosts' own included; with adaptive routing those of the hosts alone.

    `links` (k, H) holds `Fabric.links` for "no link".
    """

    links: Index
    loads: Floats | None = None  # (k, H) flows on each link at the same time, None: nobody else's


@dataclass(frozen=True)
class Nature:
    """What really happens in a fabric: it knows the ways that nobody else does."""

    fabric: Fabric
    port_of_rank: Index  # (ranks,)
    port_switch: Index  # (ports,) where each NIC really hangs
    seed: int

    @property
    def adaptive(self) -> bool:
        return self.fabric.topology.routing.kind == "adaptive"

    @cached_property
    def _hidden(self) -> Routes:
        """Routes on which every choice follows a number per message: that of d-mod-k, with another number."""
        return replace(self.fabric.routes, routing=Routing("d-mod-k"))

    def ports(self, cells: Measurements) -> tuple[Index, Index]:
        """NIC that each message leaves, and the one it enters: of the same rail."""
        rails = self.fabric.rails
        src, dst = self.port_of_rank[cells.src], self.port_of_rank[cells.dst]
        return src, dst - dst % rails + src % rails

    def ways(self, cells: Measurements) -> CellLinks:
        """The links of every cell. Ranks of one host meet no link."""
        fabric = self.fabric
        src, dst = self.ports(cells)
        between = self.hops(src, dst)
        ends = np.stack([fabric.switch_links + src, fabric.switch_links + fabric.ports + dst], axis=1)
        links = np.concatenate([ends[:, :1], between, ends[:, 1:]], axis=1).astype(np.int32)
        links[src // fabric.rails == dst // fabric.rails] = -1
        links[links < 0] = fabric.links
        return CellLinks(links)

    def hops(self, src: Index, dst: Index) -> Index:
        """(k, H) links between switches of messages from port to port, -1 behind the last."""
        if self.adaptive or not self.fabric.switch_links:
            return np.zeros((src.size, 0), dtype=np.int32)
        kind = self.fabric.topology.routing.kind
        here, there = self.port_switch[src], self.port_switch[dst]
        if kind in ("d-mod-k", "tables"):
            return self.fabric.routes.hops(here, there, dst // np.int32(self.fabric.rails))
        pair = (src, dst) if kind == "ecmp" else (here, there)
        return self._hidden.hops(here, there, mixed(*pair, self.seed))

    def exposure(self, cells: Measurements) -> tuple[Index, Index, Shares]:
        """Flat, adaptive routing only: cell, link between switches, and the share of its messages that cross it on a
        shortest way."""
        src, dst = (self.port_switch[port] for port in self.ports(cells))
        return self.fabric.routes.exposure(src, dst)

    @property
    def detour_share(self) -> float:
        """Of the messages between switches."""
        return 1.0 - self.fabric.topology.routing.minimal_share if self.adaptive else 0.0

    @cached_property
    def detours(self) -> tuple[Shares, Shares, Index]:
        """Of messages that pass through a switch chosen at random: shares of crossing each link on the way there,
        (leaf switches, links), and on the way back, with the position of each switch in these, (switches,)."""
        leaves = np.unique(self.port_switch).astype(np.int32)
        row = np.full(len(self.fabric.routes.switches), -1, dtype=np.int32)
        row[leaves] = np.arange(leaves.size)
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(8,)))
        vias = leaves if leaves.size <= MOST_VIAS else np.sort(rng.choice(leaves, MOST_VIAS, replace=False))
        grid = np.repeat(leaves, vias.size), np.tile(vias, leaves.size)
        links = self.fabric.switch_links
        scale = np.float32(1 / max(1e-9, vias.size * self.fabric.topology.routing.minimal_share))
        tables = []
        for here, there in (grid, grid[::-1]):
            query, link, share = self.fabric.routes.exposure(here, there)
            place = (query // vias.size).astype(np.int64) * links + link
            flat = np.bincount(place, weights=share, minlength=leaves.size * links)
            tables.append((flat.astype(np.float32) * scale).reshape(leaves.size, links))
        return tables[0], tables[1], row


def ports_of_ranks(fabric: Fabric, ranks_per_host: int) -> Index:
    """(ranks,) the NIC of each rank: those of a host take its NICs in turn."""
    rank = np.arange(len(fabric.hosts) * ranks_per_host)
    return (rank // ranks_per_host * fabric.rails + rank % ranks_per_host % fabric.rails).astype(np.int32)


def mixed(a: Index, b: Index, seed: int) -> Index:
    """(k,) numbers that look random and are always the same for the same (a, b, seed): splitmix64."""
    value = a.astype(np.uint64) << np.uint64(32) | b.astype(np.uint64)
    value += np.uint64((seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = (value ^ value >> np.uint64(shift)) * np.uint64(factor)
    return ((value ^ value >> np.uint64(31)) >> np.uint64(34)).astype(np.int32)


def costs(ways: CellLinks, condition: Condition, cells: Measurements, *, both_ways: bool) -> tuple[Floats, Floats]:
    """Delay (s) and time per byte (s) of each cell: the sum and the maximum over its links."""
    width = condition.latency.shape[1]
    row = condition.state[cells.round].astype(np.int64) * width
    latency, per_byte = condition.latency.ravel(), condition.per_byte.ravel()
    if both_ways:
        per_byte = per_byte * condition.duplex.ravel()
    delay, slowest = np.full(cells.src.size, SOFTWARE_S), np.zeros(cells.src.size)
    for hop in range(ways.links.shape[1]):
        place = row + ways.links[:, hop]
        delay += latency[place]
        rate = per_byte[place]
        np.maximum(slowest, rate if ways.loads is None else rate * ways.loads[:, hop], out=slowest)
    return delay, np.where(ways.links[:, 0] == width - 1, 1 / MEMORY_BANDWIDTH, slowest)
