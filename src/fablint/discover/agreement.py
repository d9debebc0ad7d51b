"""Agreement of several sources on the container of each item: the switch of a host, the group of a switch.

Sources may name the same container differently: Slurm's `s0` may be LLDP's `x1000c0r0b0`. A name that the more trusted
sources do not use is mapped to the container that holds most of the same items; only the remaining differences are
contradictions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fablint.discover.facts import Origin


@dataclass(frozen=True)
class Claim:
    """Statement of a source that an item is in a container. `whole` is the owner of the item: the host of a NIC."""

    item: str
    container: str
    source: Origin
    whole: str = ""

    @property
    def owner(self) -> str:
        """Owner of the item; an item without an owner is its own owner."""
        return self.whole or self.item


@dataclass(frozen=True)
class Dispute:
    """A claim that differs from that of a more trusted source."""

    item: str
    taken: Claim
    other: Claim


def settle(claims: Sequence[Sequence[Claim]]) -> tuple[dict[str, Claim], list[Dispute]]:
    """Return the accepted claim of each item, and the claims that differ from it.

    `claims` holds the claims of each source, the most trusted source first. A claim about a host is compared with the
    claims about all NICs of the host, and vice versa.
    """
    taken: dict[str, Claim] = {}
    owned: dict[str, list[Claim]] = defaultdict(list)  # by owner
    disputes: list[Dispute] = []
    for source_claims in claims:
        names = _translation(source_claims, owned)
        fresh: list[Claim] = []
        for claim in source_claims:
            container = names.get(claim.container, claim.container)
            accepted = [taken[claim.item]] if claim.item in taken else _comparable(claim, owned[claim.owner])
            if not accepted:
                fresh.append(Claim(claim.item, container, claim.source, claim.whole))
            elif container not in {other.container for other in accepted} and claim.source != accepted[0].source:
                disputes.append(Dispute(claim.item, accepted[0], claim))
        for claim in fresh:
            if claim.item not in taken:
                taken[claim.item] = claim
                owned[claim.owner].append(claim)
    return taken, disputes


_SAME_NAMES = (
    Origin.LLDP,
    Origin.AMA,
)  # use the kernel's names of NICs; each can lack a NIC that the other has


def _comparable(claim: Claim, owned: Sequence[Claim]) -> list[Claim]:
    """Return the accepted claims about the same host, unless the claim can concern another NIC of the host."""
    if claim.whole and claim.item != claim.whole and claim.source in _SAME_NAMES:
        return [other for other in owned if other.source not in _SAME_NAMES]
    return list(owned)


def _translation(source_claims: Sequence[Claim], owned: Mapping[str, Sequence[Claim]]) -> dict[str, str]:
    """Return the accepted name of each container with another name: the container of most of the same items."""
    accepted = {claim.container for claims in owned.values() for claim in claims}
    common = {claim.container for claim in source_claims} & accepted
    shared: dict[tuple[str, str], set[str]] = defaultdict(set)  # (own name, accepted name): items of both
    for claim in source_claims:
        for other in owned.get(claim.owner, ()) if claim.container not in accepted else ():
            shared[claim.container, other.container].add(claim.owner)
    names: dict[str, str] = {}
    taken = set(common)
    for ours, theirs in sorted(shared, key=lambda pair: (-len(shared[pair]), pair)):
        if ours not in names and theirs not in taken:
            names[ours] = theirs
            taken.add(theirs)
    return names


def group_disputes(disputes: Sequence[Dispute]) -> dict[tuple[str, Origin, str, Origin], list[str]]:
    """Group items with the same dispute: (accepted container, its source, other container, its source)."""
    groups: dict[tuple[str, Origin, str, Origin], list[str]] = defaultdict(list)
    for dispute in disputes:
        key = (dispute.taken.container, dispute.taken.source, dispute.other.container, dispute.other.source)
        groups[key].append(dispute.item)
    return groups
