"""Other parts that explain what a culprit explains: parts in series with it, and parts that fit nearly as well.

Two parts whose messages are the same ones cannot be told apart by any statistics: they are one class, and only another
pair, which crosses one of them and not the other, splits it. Where a few such pairs were measured but say little, the
other part is named as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fablint.analyse.data.pair_matrix import Cells, Codes
from fablint.analyse.detect.components import Cables, Endpoints, Family
from fablint.analyse.detect.evidence import UNITS_PER_NAT, Evidence, Sums, Tally

NEARLY = 3.0  # nats: evidence that 20 to 1 does not separate
SHARED = 0.8  # of the culprit's evidence that a rival has to explain as well


@dataclass(frozen=True)
class GroupMember:
    """One side of a part: which of its family, as the verdict words it (`host h03 (rx)`, `link s3>s5`)."""

    component: Literal["host", "link"]
    number: int  # host code, or link
    side: int  # of a host: 0 sends, 1 receives
    name: str


@dataclass(frozen=True)
class AmbiguityGroup:
    """Sides of other parts."""

    same: tuple[GroupMember, ...] = ()  # crossed by exactly the same measured pairs
    near: tuple[GroupMember, ...] = ()  # not told apart by the evidence

    @property
    def all(self) -> tuple[GroupMember, ...]:
        """Both kinds."""
        return (*self.same, *self.near)

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(group_member.name for group_member in self.all)


def find_ambiguity_group(
    family: Family, part: int, sides: Sequence[int], cells: Cells, evidence: Evidence, parts: Sequence[Family]
) -> AmbiguityGroup:
    """Parts of any kind that would explain these cells, the culprit's, nearly as well."""
    if len(sides) > 1 and isinstance(family, Endpoints):
        return AmbiguityGroup()  # whatever it sends and whatever it receives: no other part carries both
    inside = _tally(cells, evidence, evidence.gain[cells].astype(np.int64))
    count = _tally(cells, evidence, np.ones(cells[0].size, dtype=np.int64))
    score = int(evidence.gain[cells].sum(dtype=np.int64))
    same: list[GroupMember] = []
    near: list[GroupMember] = []
    for other in parts:
        if other.component not in (("cable",) if isinstance(family, Endpoints) else ("host", "cable")):
            continue  # two hosts that carry the same messages are a pair, and no pair convicts
        totals, lives = other.sums(evidence.total), other.sums(evidence.live)
        insides, counts = other.sums(inside), other.sums(count)
        for side in (0, 1):
            explains = (insides[side] >= SHARED * score) & (totals[side] >= score - NEARLY * UNITS_PER_NAT)
            if other is family and side in sides:
                explains[part] = False
            for number in np.flatnonzero(explains):
                equal = counts[side][number] == cells[0].size == lives[side][number]
                (same if equal else near).append(group_member(other, int(number), side))
    return AmbiguityGroup(tuple(dict.fromkeys(same)), tuple(dict.fromkeys(near)))


def group_member(family: Family, part: int, side: int) -> GroupMember:
    """A side of a part as a rival; of hosts and cables only."""
    if isinstance(family, Cables):
        a, b = family.name(part).split("=")
        return GroupMember("link", 2 * part + side, side, f"link {a}>{b}" if side == 0 else f"link {b}>{a}")
    return GroupMember("host", part, side, f"host {family.name(part)} ({'tx' if side == 0 else 'rx'})")


def _tally(cells: Cells, evidence: Evidence, values: Sums) -> Tally:
    """Values of a few cells, tallied as those of all."""
    to, told = evidence.pairs.destination(cells), np.where(evidence.of_ends(cells), values, 0)
    n, size = evidence.pairs.ranks, evidence.total.between.shape[0]

    def add(codes: Codes, length: int) -> Sums:
        return np.bincount(codes, weights=told, minlength=length).astype(np.int64)

    return Tally(add(cells[0], n), add(to, n), np.zeros((size, size), np.int64), evidence.on_segments(cells, values))
