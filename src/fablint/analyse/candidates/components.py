"""Components that can be faulty, the pairs that each of them explains, and the evidence against it.

Each component has two directions, which are detected separately: sending and receiving, or the two links of a cable.
The evidence of a direction is the sum over its pairs, so that components of all types compete on one scale: a slow
switch explains more pairs than any of its hosts, and a slow host more than any link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from fablint.analyse.observations.message_paths import MessagePaths
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.settings import FEWEST_PEERS
from fablint.model import ComponentRef, Endpoint, Placement
from fablint.model.arrays import Cells, Codes, Ints

Kind = Literal["group", "switch", "uplinks", "host", "nic", "gpu", "rank", "cable"]


@dataclass(frozen=True)
class Tally:
    """Sums over the pairs of each component: of increments in 1/32 nat, or of numbers of pairs."""

    sent: Ints  # (n,) per sender, of cells that count for both ends
    received: Ints  # (n,) per receiver, of the same cells
    own_sent: Ints  # (n,) per sender, of cells that count for the sender
    own_received: Ints  # (n,) per receiver, of cells that count for the receiver
    in_switch: Ints  # (S,) per switch that both ends are on, of cells that count for both ends
    in_group: Ints  # (G,) per group, likewise
    segment: Ints  # (segments,) per segment that the pairs cross; of round trips, on either path

    def subtract(self, other: Tally) -> None:
        """Subtract the sums of some of the pairs."""
        for name, sums in vars(other).items():
            vars(self)[name][:] -= sums


class ComponentType(Protocol):
    """All components of one type. Arrays are indexed by the number of the component within the type."""

    @property
    def kind(self) -> Kind:
        """Type of the components."""
        ...

    def __len__(self) -> int: ...

    def reference(self, part: int) -> ComponentRef:
        """One part, as findings name it."""
        ...

    def sums(self, tally: Tally) -> tuple[Ints, Ints, Ints]:
        """Return the sums of a tally over the first direction, the second direction, and the pairs of both
        directions.
        """
        ...

    def cells(self, part: int, side: int) -> Cells:
        """Return the cells of one direction."""
        ...


@dataclass(frozen=True)
class RankGroups:
    """Hosts, or the NICs, GPUs, ranks or switches that partition the ranks."""

    kind: Kind
    names: Sequence[str]
    code: Codes  # (n,) component of each rank, -1: none

    def __len__(self) -> int:
        return len(self.names)

    def reference(self, part: int) -> ComponentRef:
        """See `ComponentType`."""
        name = str(self.names[part])
        if self.kind == "rank":
            number = self.names.number(part) if isinstance(self.names, RankHosts) else part
            return ComponentRef.of("host", Endpoint(nodes=(name,), rank=number))
        if self.kind in ("nic", "gpu"):
            return ComponentRef.device(self.kind, name)
        return ComponentRef.of("switch" if self.kind == "uplinks" else self.kind, name)

    def ranks(self, part: int) -> Codes:
        """Return the ranks of component `part`, (k,) ascending."""
        return np.nonzero(self.code == part)[0]

    def is_same_partition(self, other: RankGroups) -> bool:
        """Return whether each component has the ranks of one component of the other type."""
        return _are_same_partition(self.code, other.code)


@dataclass(frozen=True)
class Endpoints(RankGroups):
    """Components at the ends of messages: directions are sending and receiving."""

    pairs: Pairs
    inside: Literal["", "in_switch", "in_group"] = ""  # sums of the messages within a switch or group
    outward: bool = False  # only messages that leave or enter the component: the uplinks of a switch

    def sums(self, tally: Tally) -> tuple[Ints, Ints, Ints]:
        """See `ComponentType`."""
        if not self.inside:
            return self._total(tally.own_sent), self._total(tally.own_received), np.zeros(len(self), dtype=np.int64)
        inner: Ints = getattr(tally, self.inside)
        sent, received = self._total(tally.sent), self._total(tally.received)
        if self.outward:
            return sent - inner, received - inner, np.zeros_like(inner)
        return sent, received, inner

    def cells(self, part: int, side: int) -> Cells:
        """See `ComponentType`."""
        ranks = self.ranks(part)
        cells = self.pairs.cells_from(ranks) if side == 0 else self.pairs.cells_to(ranks)
        if not self.outward:
            return cells
        other = self.pairs.destination(cells) if side == 0 else cells[0]
        crosses = self.code[other] != part
        return cells[0][crosses], cells[1][crosses]

    def _total(self, sums: Ints) -> Ints:
        member = self.code >= 0
        return np.bincount(self.code[member], weights=sums[member], minlength=len(self)).astype(np.int64)


@dataclass(frozen=True)
class Cables:
    """Cables between switches: directions are their two links."""

    kind: Kind
    message_paths: MessagePaths
    pairs: Pairs
    bidirectional: bool

    def __len__(self) -> int:
        return self.message_paths.known_links // 2

    def reference(self, part: int) -> ComponentRef:
        """See `ComponentType`."""
        assert self.message_paths.routes is not None
        return self.message_paths.routes.cable_component(2 * part)

    def sums(self, tally: Tally) -> tuple[Ints, Ints, Ints]:
        """See `ComponentType`."""
        links = tally.segment[: self.message_paths.known_links]
        first, second = links[0::2], links[1::2]
        # If the path back crosses the same cables, pairs that are measured there and back belong to both directions.
        return first, second, first if self.bidirectional and self.message_paths.is_symmetric else np.zeros_like(first)

    def cells(self, part: int, side: int) -> Cells:
        """See `ComponentType`."""
        return find_crossing_cells(
            self.message_paths, self.pairs, np.array([2 * part + side]), bidirectional=self.bidirectional
        )


@dataclass(frozen=True)
class Spines:
    """Switches without hosts in the run, with the messages that cross them. They have one direction only."""

    kind: Kind
    codes: Codes  # positions of the switches in the routes
    message_paths: MessagePaths
    pairs: Pairs
    bidirectional: bool

    def __len__(self) -> int:
        return int(self.codes.size)

    def reference(self, part: int) -> ComponentRef:
        """See `ComponentType`."""
        assert self.message_paths.routes is not None
        return ComponentRef.of("switch", self.message_paths.routes.switches[self.codes[part]])

    def sums(self, tally: Tally) -> tuple[Ints, Ints, Ints]:
        """See `ComponentType`."""
        assert self.message_paths.routes is not None
        into = self.message_paths.routes.ends[:, 1]
        total = np.bincount(into, weights=tally.segment[: into.size], minlength=len(self.message_paths.routes.switches))
        if self.bidirectional:  # a round trip may cross it there and back: at half, no pair counts more than once
            total = np.floor(total / 2)
        none = np.zeros(len(self), dtype=np.int64)
        return total[self.codes].astype(np.int64), none, none

    def cells(self, part: int, side: int) -> Cells:
        """See `ComponentType`."""
        assert self.message_paths.routes is not None
        into = np.flatnonzero(self.message_paths.routes.ends[:, 1] == self.codes[part])
        return find_crossing_cells(self.message_paths, self.pairs, into, bidirectional=self.bidirectional)


def find_crossing_cells(message_paths: MessagePaths, pairs: Pairs, segments: Codes, *, bidirectional: bool) -> Cells:
    """Return the cells whose messages cross one of these segments, of round trips on the path there or back."""
    cells = message_paths.cells_on(message_paths.crossing(segments))
    if not bidirectional:
        return cells
    back = pairs.backward(cells)
    width = pairs.value.shape[1]
    key = np.unique(np.concatenate([cells[0] * width + cells[1], back[0] * width + back[1]]))
    return key // width, key % width


def list_component_types(
    pairs: Pairs, placement: Placement, message_paths: MessagePaths, *, bidirectional: bool
) -> list[ComponentType]:
    """Return the component types that can be compared in this run: enough components, and not the same ranks twice."""
    many = len(placement.hosts) > 1
    # The smaller type first: of two types with the same messages, the smaller one is reported.
    candidates = [
        Endpoints("host", placement.hosts, placement.host, pairs),
        Endpoints("nic", placement.nics, placement.nic, pairs),
        Endpoints("gpu", placement.gpus, placement.gpu, pairs),
        Endpoints("rank", RankHosts(placement), np.arange(pairs.ranks), pairs),
        Endpoints("switch", placement.switches, placement.switch, pairs, "in_switch"),
        Endpoints("group", placement.groups, placement.group, pairs, "in_group"),
    ]
    types: list[ComponentType] = []
    partitions: list[Codes] = []
    for candidate in candidates:
        peers = np.unique(candidate.code[candidate.code >= 0])
        if len(peers) < FEWEST_PEERS or any(_are_same_partition(candidate.code, other) for other in partitions):
            continue
        if candidate.kind == "group" and _are_same_partition(candidate.code, placement.switch):
            continue  # groups of one switch, or none declared: the switch is reported
        if candidate.kind == "switch" and _are_same_partition(candidate.code, placement.host):
            continue  # one host per switch: in series, and the host is reported
        if not many and candidate.kind == "nic":
            continue  # no message crossed a NIC
        types.append(candidate)
        partitions.append(candidate.code)
    if (
        message_paths.known_links >= 2 * FEWEST_PEERS
        and message_paths.routes is not None
        and message_paths.routes.certain
    ):
        types.append(Cables("cable", message_paths, pairs, bidirectional))
        leaves = set(placement.switches)
        spines = [code for code, name in enumerate(message_paths.routes.switches) if name not in leaves]
        if len(spines) >= FEWEST_PEERS:
            types.append(Spines("switch", np.array(spines, dtype=np.int64), message_paths, pairs, bidirectional))
    elif any(candidate.kind == "switch" for candidate in types):
        # The cable of a message is unknown: all uplinks of a switch are one component.
        types.append(Endpoints("uplinks", placement.switches, placement.switch, pairs, "in_switch", outward=True))
    return types


@dataclass(frozen=True)
class RankHosts(Sequence[str]):
    """The host of every rank."""

    placement: Placement

    def __len__(self) -> int:
        return int(self.placement.host.size)

    def __getitem__(self, rank: Any) -> Any:
        return self.placement.hosts[self.placement.host[rank]]

    def number(self, rank: int) -> int:
        """Return the number by which findings name a rank."""
        return self.placement.number[rank] if self.placement.number else rank


def _are_same_partition(a: Codes, b: Codes) -> bool:
    """Return whether two codes partition the ranks equally."""
    joint = np.unique(a.astype(np.int64) * (int(b.max(initial=0)) + 2) + b).size
    return bool(joint == np.unique(a).size == np.unique(b).size)
