"""Kinds of NICs by design: what a run records of a NIC and its rank that makes all NICs of a kind equally fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fablint.model.arrays import Codes
from fablint.model.facts.run_attributes import HostNic, RunFacts

_NO_NODE = -1  # NUMA node that the kernel gives where a machine has none


@dataclass(frozen=True, order=True)
class NicKind:
    """What is declared of the NIC of a rank."""

    speed_mbps: int | None = None  # negotiated speed, Mbit/s; None: not known
    is_far: bool = False  # whether its rank is on another NUMA node


def nic_kinds(facts: RunFacts, rank_nics: Sequence[str]) -> tuple[tuple[NicKind, ...], Codes]:
    """Return the kinds of the NICs of all ranks, the one with most ranks first, and the (n,) kind of each rank.

    A rank whose NIC is not recorded has the speed of the fastest NIC of its host.
    """
    nodes = facts.rank_numa or [_NO_NODE] * len(rank_nics)
    lists, list_of = facts.nic_lists
    places = list(zip([list_of[host] for host in facts.rank_host], rank_nics, nodes, strict=True))
    kind_of = {place: _kind(lists[place[0]], *place[1:]) for place in set(places)}
    counted: Counter[NicKind] = Counter()
    for place, count in Counter(places).items():
        counted[kind_of[place]] += count
    order = sorted(counted, key=lambda kind: (-counted[kind], kind.is_far, -(kind.speed_mbps or 0)))
    code = {place: order.index(kind) for place, kind in kind_of.items()}
    return tuple(order), np.array([code[place] for place in places], dtype=np.int64)


def _kind(nics: Sequence[HostNic], name: str, node: int) -> NicKind:
    """Return the kind of the NIC of this name, for a rank on a NUMA node."""
    nic = next((nic for nic in nics if nic.name == name), None)
    if nic is None:
        return NicKind(max((nic.speed_mbps or 0 for nic in nics), default=0) or None)
    is_far = nic.numa is not None and min(nic.numa, node) > _NO_NODE and nic.numa != node
    return NicKind(nic.speed_mbps or None, is_far)
