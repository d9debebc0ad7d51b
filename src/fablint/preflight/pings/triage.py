"""What the pings of each rail come to: who is at fault where nothing is answered, and where long frames are not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from fablint.preflight.pings.losses import Losses, losses
from fablint.preflight.pings.mesh import LOST, MTU, TOO_LONG, End, Ping, Reach
from fablint.preflight.pings.reach_faults import Blame, Try, blame


@dataclass(frozen=True)
class Rail:
    """Pings between ends of one label that have an address of their own."""

    pings: Sequence[Ping]
    answers: Blame  # for what was not answered at all
    refused: Mapping[End, Sequence[Ping]]  # whose own hosts refuse frames of full size to most others
    sizes: Blame  # for frames of full size that were not answered, though small ones were
    losses: Losses  # of frames of full size, where some were answered

    @property
    def ends(self) -> set[End]:
        return {end for one in self.pings for end in (one.source, one.target)}

    @property
    def sized(self) -> set[End]:
        """Ends of which something was answered."""
        return {end for one in self.pings if _any(one) for end in (one.source, one.target)}


@lru_cache(maxsize=1)  # several checks want to know
def rails_of(reach: Reach, contested: frozenset[End]) -> Sequence[Rail]:
    """All rails. Pings of ends whose address is `contested` tell nothing: the answers go to the wrong one."""
    return [
        _rail([one for one in pings if one.source not in contested and one.target not in contested])
        for pings in reach.by_rail.values()
    ]


def _rail(pings: Sequence[Ping]) -> Rail:
    answers = blame([Try(one.source, one.target, _any(one)) for one in pings])
    refused = _refused(pings)
    lost = losses(pings)
    through = [
        one
        for one in pings
        if _any(one)
        and not (one.kind == TOO_LONG and one.source in refused)
        and not (one.kind == MTU and not lost.ends.keys().isdisjoint(one[:2]))  # where much is lost, long frames first
    ]
    sizes = blame([Try(one.source, one.target, not one.kind) for one in through])
    return Rail(pings, answers, refused, sizes, lost)


def _any(one: Ping) -> bool:
    """Was anything answered, of whatever size?"""
    return one.kind not in LOST and (one.kind != TOO_LONG or one.passes > 0)


def _refused(pings: Iterable[Ping]) -> Mapping[End, Sequence[Ping]]:
    sent: dict[End, list[bool]] = defaultdict(list)
    refused: dict[End, list[Ping]] = defaultdict(list)
    for one in pings:
        sent[one.source].append(one.kind == TOO_LONG)
        if one.kind == TOO_LONG:
            refused[one.source].append(one)
    return {end: some for end, some in sorted(refused.items()) if 2 * len(some) > len(sent[end])}
