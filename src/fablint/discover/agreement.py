"""Several sources say which container a thing is in: host on switch, switch in group. Whom to believe, and who differs.

Sources may call the same container by other names: Slurm's `s0` may be LLDP's `x1000c0r0b0`. Names that the more
trusted sources do not know are translated by where most of the things sit; only what then differs is a contradiction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fablint.discover.facts import Told


@dataclass(frozen=True)
class Claim:
    """A source says that a thing is in a container. `whole` is what the thing belongs to: the host of a NIC."""

    thing: str
    container: str
    source: Told
    whole: str = ""

    @property
    def owner(self) -> str:
        return self.whole or self.thing


@dataclass(frozen=True)
class Dispute:
    """A source differs from a more trusted one."""

    thing: str
    taken: Claim
    other: Claim


def settle(claims: Sequence[Sequence[Claim]]) -> tuple[dict[str, Claim], list[Dispute]]:
    """The claims to believe, by thing, and who differs. `claims` holds those of each source, most trusted first.

    What a source says of a host as a whole is compared with all of the host's NICs, and the other way round.
    """
    taken: dict[str, Claim] = {}
    owned: dict[str, list[Claim]] = defaultdict(list)  # by owner
    disputes: list[Dispute] = []
    for said in claims:
        names = _translation(said, owned)
        fresh: list[Claim] = []
        for claim in said:
            container = names.get(claim.container, claim.container)
            believed = [taken[claim.thing]] if claim.thing in taken else _comparable(claim, owned[claim.owner])
            if not believed:
                fresh.append(Claim(claim.thing, container, claim.source, claim.whole))
            elif container not in {other.container for other in believed} and claim.source != believed[0].source:
                disputes.append(Dispute(claim.thing, believed[0], claim))
        for claim in fresh:
            if claim.thing not in taken:
                taken[claim.thing] = claim
                owned[claim.owner].append(claim)
    return taken, disputes


_SAME_NAMES = (Told.LLDP, Told.AMA)  # call NICs as the kernel does: each can tell of one that the other misses


def _comparable(claim: Claim, owned: Sequence[Claim]) -> list[Claim]:
    """What is believed of the same host, where the claim cannot be about another NIC of it."""
    if claim.whole and claim.thing != claim.whole and claim.source in _SAME_NAMES:
        return [other for other in owned if other.source not in _SAME_NAMES]
    return list(owned)


def _translation(said: Sequence[Claim], owned: Mapping[str, Sequence[Claim]]) -> dict[str, str]:
    """The believed name of each container that goes by another: where most of its things are, one for each."""
    known = {claim.container for claims in owned.values() for claim in claims}
    own = {claim.container for claim in said} & known
    shared: dict[tuple[str, str], set[str]] = defaultdict(set)  # (our name, a believed one): what both are said to hold
    for claim in said:
        for other in owned.get(claim.owner, ()) if claim.container not in known else ():
            shared[claim.container, other.container].add(claim.owner)
    names: dict[str, str] = {}
    taken = set(own)
    for ours, theirs in sorted(shared, key=lambda pair: (-len(shared[pair]), pair)):
        if ours not in names and theirs not in taken:
            names[ours] = theirs
            taken.add(theirs)
    return names


def disputes_of(disputes: Sequence[Dispute]) -> dict[tuple[str, Told, str, Told], list[str]]:
    """Things by what is disputed of them alike: (taken container, by whom, the other one, by whom)."""
    alike: dict[tuple[str, Told, str, Told], list[str]] = defaultdict(list)
    for one in disputes:
        alike[one.taken.container, one.taken.source, one.other.container, one.other.source].append(one.thing)
    return alike
