"""Ambiguity groups: components in series with a detection, and components that fit nearly as well.

Two components that the same messages cross are indistinguishable by any statistics: they form one group, and only a
pair that crosses one of them and not the other splits it. A component is in the group as well if a few such pairs were
measured but carry little evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fablint.analyse.candidates.components import Cables, ComponentType, Endpoints
from fablint.analyse.explain.evidence import UNITS_PER_NAT, Evidence
from fablint.analyse.settings import CLEAR_EVIDENCE, SHARED
from fablint.model import ComponentRef
from fablint.model.arrays import Cells


@dataclass(frozen=True)
class GroupMember:
    """One direction of a component."""

    component: Literal["host", "nic", "switch", "link"]
    number: int  # code of the host, NIC, switch or link
    side: int  # direction of a host or NIC: 0 sends, 1 receives
    reference: ComponentRef  # for the verdict


@dataclass(frozen=True)
class AmbiguityGroup:
    """Directions of other components that explain a detection."""

    same: tuple[GroupMember, ...] = ()  # components that exactly the same measured pairs cross
    near: tuple[GroupMember, ...] = ()  # components that the evidence does not exclude

    @property
    def all(self) -> tuple[GroupMember, ...]:
        """All members."""
        return (*self.same, *self.near)

    @property
    def references(self) -> tuple[ComponentRef, ...]:
        """All members as components."""
        return tuple(member.reference for member in self.all)


def find_ambiguity_group(
    component_type: ComponentType,
    part: int,
    sides: Sequence[int],
    cells: Cells,
    evidence: Evidence,
    component_types: Sequence[ComponentType],
) -> AmbiguityGroup:
    """Return the components of any type that explain the cells of a detection nearly as well.

    Parameters
    ----------
    component_type, part, sides
        Type, number and directions of the detected component.
    cells
        Cells of the detection.
    evidence
        Evidence before the cells are removed.
    component_types
        All component types.
    """
    if len(sides) > 1 and isinstance(component_type, Endpoints):
        return AmbiguityGroup()  # all that it sends and receives: no other component carries both
    inside = evidence.tally(cells, evidence.gain[cells].astype(np.int64))
    count = evidence.tally(cells, np.ones(cells[0].size, dtype=np.int64))
    score = int(evidence.gain[cells].sum(dtype=np.int64))
    same: list[GroupMember] = []
    near: list[GroupMember] = []
    for other in component_types:
        if other.kind not in (("cable",) if isinstance(component_type, Endpoints) else ("host", "cable")):
            continue  # two hosts that the same messages cross are one pair, and a pair is not a detection
        totals, lives = other.sums(evidence.total), other.sums(evidence.live)
        insides, counts = other.sums(inside), other.sums(count)
        for side in (0, 1):
            explains = (insides[side] >= SHARED * score) & (totals[side] >= score - CLEAR_EVIDENCE * UNITS_PER_NAT)
            if other is component_type and side in sides:
                explains[part] = False
            for number in np.flatnonzero(explains):
                equal = counts[side][number] == cells[0].size == lives[side][number]
                (same if equal else near).append(group_member(other, int(number), side))
    return AmbiguityGroup(tuple(dict.fromkeys(same)), tuple(dict.fromkeys(near)))


def group_member(component_type: ComponentType, part: int, side: int) -> GroupMember:
    """Return one direction of a component as a member; of hosts and cables only."""
    whole = component_type.reference(part)
    if isinstance(component_type, Cables):
        return GroupMember("link", 2 * part + side, side, ComponentRef.of("link", *whole.ends[:: -1 if side else 1]))
    return GroupMember("host", part, side, whole.model_copy(update={"direction": "rx" if side else "tx"}))
