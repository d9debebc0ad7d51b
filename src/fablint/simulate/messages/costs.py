"""Path of a message: the links that it crosses, their costs, and the flows that share them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fablint.model import Routing
from fablint.model.arrays import Codes, Floats, Values
from fablint.simulate.faults import Condition
from fablint.simulate.simulated_fabric import Fabric
from fablint.topology.routing import Routes

SOFTWARE_S = 0.5e-6  # cost of a message before and after the network
MEMORY_BANDWIDTH = 10e9  # bytes/s between two ranks of one host
MOST_VIAS = 64  # switches that represent all intermediate switches of detours


@dataclass(frozen=True)
class Measurements:
    """Directed measurements; the second half has the pairs of the first half in the reverse direction."""

    src: Codes  # (k,) ranks
    dst: Codes
    round: Codes

    @property
    def reverse(self) -> Codes:
        """(k,) position of the same pair in the reverse direction."""
        half = self.src.size // 2
        return (np.arange(self.src.size) + half) % max(1, self.src.size)

    def only(self, pairs: Codes) -> Measurements:
        """Measurements of some pairs of the first half."""
        positions = np.concatenate([pairs, pairs + self.src.size // 2])
        return Measurements(self.src[positions], self.dst[positions], self.round[positions])


def cells_of(partner: Codes, most: int) -> Iterator[Measurements]:
    """Yield all cells of a table of partners in blocks of rounds, about `most` cells each."""
    ranks, rounds = partner.shape
    step = max(1, most // max(1, ranks))
    index = np.arange(ranks, dtype=np.int32)[:, None]
    for first in range(0, rounds, step):
        block = partner[:, first : first + step]
        number, low = np.nonzero((block > index).T)
        low, high = low.astype(np.int32), block[low, number].astype(np.int32)
        number = (number + first).astype(np.int32)
        yield Measurements(np.concatenate([low, high]), np.concatenate([high, low]), np.tile(number, 2))


@dataclass(frozen=True)
class CellLinks:
    """Links of each cell in order, including those of hosts; with adaptive routing only those of hosts.

    `links` (k, H) holds `Fabric.links` for "no link".
    """

    links: Codes
    loads: Floats | None = None  # (k, H) flows on each link at the same time, None: only the cell's own


@dataclass(frozen=True)
class ActualRouting:
    """Actual routing of a fabric, including choices that no topology shows."""

    fabric: Fabric
    port_of_rank: Codes  # (ranks,)
    port_switch: Codes  # (ports,) actual switch of each NIC
    seed: int

    @property
    def adaptive(self) -> bool:
        """True if the fabric routes each message anew."""
        return self.fabric.topology.routing.kind == "adaptive"

    @cached_property
    def _hidden(self) -> Routes:
        """Routes on which every choice follows a number per message, as in d-mod-k, with a different number."""
        return replace(self.fabric.routes, routing=Routing("d-mod-k"))

    def ports(self, cells: Measurements) -> tuple[Codes, Codes]:
        """NIC that each message leaves, and NIC that it enters: of the same rail."""
        rails = self.fabric.rails
        src, dst = self.port_of_rank[cells.src], self.port_of_rank[cells.dst]
        return src, dst - dst % rails + src % rails

    def paths(self, cells: Measurements) -> CellLinks:
        """Links of every cell. Between ranks of one host there are none."""
        fabric = self.fabric
        src, dst = self.ports(cells)
        between = self.hops(src, dst)
        ends = np.stack([fabric.switch_links + src, fabric.switch_links + fabric.ports + dst], axis=1)
        links = np.concatenate([ends[:, :1], between, ends[:, 1:]], axis=1).astype(np.int32)
        links[src // fabric.rails == dst // fabric.rails] = -1
        links[links < 0] = fabric.links
        return CellLinks(links)

    def hops(self, src: Codes, dst: Codes) -> Codes:
        """(k, H) links between switches of messages from port to port, -1 after the last."""
        if self.adaptive or not self.fabric.switch_links:
            return np.zeros((src.size, 0), dtype=np.int32)
        kind = self.fabric.topology.routing.kind
        src_switch, dst_switch = self.port_switch[src], self.port_switch[dst]
        if kind in ("d-mod-k", "tables"):
            return self.fabric.routes.hops(src_switch, dst_switch, dst // np.int32(self.fabric.rails))
        pair = (src, dst) if kind == "ecmp" else (src_switch, dst_switch)
        return self._hidden.hops(src_switch, dst_switch, mixed(*pair, self.seed))

    def exposure(self, cells: Measurements) -> tuple[Codes, Codes, Values]:
        """Flat, adaptive routing only: cell, link between switches, and share of its messages that cross the link.

        Only shortest paths are included.
        """
        src, dst = (self.port_switch[port] for port in self.ports(cells))
        return self.fabric.routes.exposure(src, dst)

    @property
    def detour_share(self) -> float:
        """Share of messages between switches on detours."""
        return 1.0 - self.fabric.topology.routing.minimal_share if self.adaptive else 0.0

    @cached_property
    def detours(self) -> tuple[Values, Values, Codes]:
        """Shares of messages through a random intermediate switch that cross each link.

        Returns (leaf switches, links) for the path to the intermediate switch and for the path from it, and (switches,)
        the position of each switch in these.
        """
        leaves = np.unique(self.port_switch).astype(np.int32)
        row = np.full(len(self.fabric.routes.switches), -1, dtype=np.int32)
        row[leaves] = np.arange(leaves.size)
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(8,)))
        vias = leaves if leaves.size <= MOST_VIAS else np.sort(rng.choice(leaves, MOST_VIAS, replace=False))
        grid = np.repeat(leaves, vias.size), np.tile(vias, leaves.size)
        links = self.fabric.switch_links
        scale = np.float32(1 / max(1e-9, vias.size * self.fabric.topology.routing.minimal_share))
        tables = []
        for from_switch, to_switch in (grid, grid[::-1]):
            query, link, share = self.fabric.routes.exposure(from_switch, to_switch)
            place = (query // vias.size).astype(np.int64) * links + link
            flat = np.bincount(place, weights=share, minlength=leaves.size * links)
            tables.append((flat.astype(np.float32) * scale).reshape(leaves.size, links))
        return tables[0], tables[1], row


def ports_of_ranks(fabric: Fabric, ranks_per_host: int) -> Codes:
    """(ranks,) NIC of each rank: the ranks of a host use its NICs in turn."""
    rank = np.arange(len(fabric.hosts) * ranks_per_host)
    return (rank // ranks_per_host * fabric.rails + rank % ranks_per_host % fabric.rails).astype(np.int32)


def mixed(a: Codes, b: Codes, seed: int) -> Codes:
    """(k,) pseudo-random numbers that depend only on (a, b, seed): splitmix64."""
    value = a.astype(np.uint64) << np.uint64(32) | b.astype(np.uint64)
    value += np.uint64((seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = (value ^ value >> np.uint64(shift)) * np.uint64(factor)
    return ((value ^ value >> np.uint64(31)) >> np.uint64(34)).astype(np.int32)


def costs(
    paths: CellLinks, condition: Condition, cells: Measurements, *, both_directions: bool
) -> tuple[Floats, Floats]:
    """Delay (s) and time per byte (s) of each cell: the sum and the maximum over its links."""
    width = condition.latency.shape[1]
    row = condition.state[cells.round].astype(np.int64) * width
    latency, per_byte = condition.latency.ravel(), condition.per_byte.ravel()
    if both_directions:
        per_byte = per_byte * condition.duplex.ravel()
    delay, slowest = np.full(cells.src.size, SOFTWARE_S), np.zeros(cells.src.size)
    for hop in range(paths.links.shape[1]):
        place = row + paths.links[:, hop]
        delay += latency[place]
        rate = per_byte[place]
        np.maximum(slowest, rate if paths.loads is None else rate * paths.loads[:, hop], out=slowest)
    return delay, np.where(paths.links[:, 0] == width - 1, 1 / MEMORY_BANDWIDTH, slowest)
