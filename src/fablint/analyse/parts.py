"""The parts that can be at fault, the pairs that each explains, and the evidence against it.

Every part has two sides, which are convicted one by one: what it sends and what it receives, or the two directions
of a cable. The evidence of a side is the sum over its pairs, so that parts of all kinds compete on the same scale:
a slow switch explains more pairs than any of its hosts, and a slow host more than any link.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from fablint.analyse.evidence import Evidence, Sums
from fablint.analyse.pairs import Cells, Pairs
from fablint.analyse.places import Codes, Places
from fablint.analyse.routes import Routes

Kind = Literal["switch", "host", "nic", "rank", "cable"]
FEWEST_PEERS = 3  # parts of a kind from which one can stand out;
FEWEST_SWITCHES = 4  # of three switches a slow one touches most pairs between switches, and looks like the norm


class Family(Protocol):
    """All parts of one kind. Arrays are indexed by the part's number within the family."""

    @property
    def component(self) -> Kind:
        """What the parts are."""
        ...

    def __len__(self) -> int: ...

    def name(self, part: int) -> str:
        """Name of one part: `h05`, `s3`, `s3=s5`."""
        ...

    def sums(self, evidence: Evidence) -> tuple[Sums, Sums, Sums]:
        """Evidence of the first and the second side, and of the pairs that belong to both, in 1/32 nat."""
        ...

    def cells(self, part: int, side: int) -> Cells:
        """The pairs of one side."""
        ...


@dataclass(frozen=True)
class Endpoints:
    """Hosts, or the NICs, ranks or switches that partition the ranks: sides are sending and receiving."""

    component: Kind
    names: tuple[str, ...]
    code: Codes  # (n,) part of each rank, -1: none
    pairs: Pairs

    def __len__(self) -> int:
        return len(self.names)

    def name(self, part: int) -> str:
        """See Family."""
        return self.names[part]

    def ranks(self, part: int) -> Codes:
        """Ranks of one part."""
        return np.nonzero(self.code == part)[0]

    def sums(self, evidence: Evidence) -> tuple[Sums, Sums, Sums]:
        """See Family."""
        inner = np.zeros(len(self), dtype=np.int64)
        if self.component == "switch":
            inner = np.diagonal(evidence.between)[: len(self)]
        return self._total(evidence.sent), self._total(evidence.received), inner

    def cells(self, part: int, side: int) -> Cells:
        """See Family."""
        ranks = self.ranks(part)
        return self.pairs.cells_from(ranks) if side == 0 else self.pairs.cells_to(ranks)

    def _total(self, sums: Sums) -> Sums:
        member = self.code >= 0
        return np.bincount(self.code[member], weights=sums[member], minlength=len(self)).astype(np.int64)


@dataclass(frozen=True)
class Cables:
    """Cables between switches: sides are their two directed links."""

    component: Kind
    routes: Routes
    switch: Codes  # (n,) of each rank
    pairs: Pairs

    def __len__(self) -> int:
        return len(self.routes.links) // 2

    def name(self, part: int) -> str:
        """See Family."""
        return "=".join(self.routes.links[2 * part])

    def sums(self, evidence: Evidence) -> tuple[Sums, Sums, Sums]:
        """See Family."""
        per_link = per_link_totals(self.routes, evidence.between)
        return per_link[0::2], per_link[1::2], np.zeros(len(self), dtype=np.int64)

    def cells(self, part: int, side: int) -> Cells:
        """See Family."""
        crossing = self.routes.crossing(2 * part + side)
        origins = np.flatnonzero(crossing.sum(axis=1))
        senders = np.flatnonzero(np.isin(self.switch, origins))
        rows, columns = self.pairs.cells_from(senders)
        to = self.switch[self.pairs.destination((rows, columns))]
        crosses = crossing[self.switch[rows], to] & (to >= 0)
        return rows[crosses], columns[crosses]


def per_link_totals(routes: Routes, between: Sums) -> Sums:
    """(links,) sum of an (S, S) matrix over the pairs of switches whose messages cross each link."""
    total = np.zeros(len(routes.links), dtype=np.int64)
    for links in routes.hops:
        used = links >= 0
        total += np.bincount(links[used], weights=between[used], minlength=len(total)).astype(np.int64)
    return total


def families(pairs: Pairs, places: Places, routes: Routes | None) -> list[Family]:
    """The kinds of parts that can be compared in this run: enough of a kind, and not the same ranks twice."""
    many = len(places.hosts) > 1
    ranks = np.arange(pairs.ranks)
    kinds = [
        Endpoints("switch", places.switches, places.switch, pairs),
        Endpoints("host", places.hosts, places.host, pairs),
        Endpoints("nic", places.nics, places.nic, pairs),
        Endpoints("rank", tuple(f"{places.hosts[places.host[rank]]}:{rank}" for rank in ranks), ranks, pairs),
    ]
    found: list[Family] = []
    seen: list[npt.NDArray[np.int64]] = []
    for kind in kinds:
        peers = np.unique(kind.code[kind.code >= 0])
        fewest = FEWEST_SWITCHES if kind.component == "switch" else FEWEST_PEERS
        if len(peers) < fewest or any(_same_partition(kind.code, other) for other in seen):
            continue
        if kind.component == "switch" and _same_partition(kind.code, places.host):
            continue  # one host per switch: in series, and the host is the one to name
        if not many and kind.component == "nic":
            continue  # nothing went through it
        found.append(kind)
        seen.append(kind.code)
    if routes and len(routes.links) >= 2 * FEWEST_PEERS:
        found.append(Cables("cable", routes, places.switch, pairs))
    return found


def _same_partition(a: Codes, b: Codes) -> bool:
    joint = len(np.unique(np.stack([a, b]), axis=1).T)
    return joint == len(np.unique(a)) == len(np.unique(b))
