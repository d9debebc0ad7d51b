"""Evaluate the pings of each rail: failed pings, failed full-size frames, and losses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from fablint.preflight.pings.losses import Losses, losses
from fablint.preflight.pings.mesh import LOST, MTU, TOO_LONG, End, Ping, Reach
from fablint.preflight.pings.reach_faults import Attempt, ReachFaults, localise_failures


@dataclass(frozen=True)
class Rail:
    """Pings between ends of one label that have an address of their own."""

    pings: Sequence[Ping]
    answers: ReachFaults  # of pairs without any answer
    refused: Mapping[End, Sequence[Ping]]  # ends whose hosts refuse full-size frames to most others
    full_size: Sequence[Ping]  # of pairs with an answer, but for frames that their host refuses or an end loses
    sizes: ReachFaults  # of these, full-size frames without an answer
    losses: Losses  # of full-size frames, of pairs with some answers

    @property
    def ends(self) -> set[End]:
        """Return all senders and receivers."""
        return {end for one in self.pings for end in (one.source, one.target)}

    @property
    def sized(self) -> set[End]:
        """Ends of pairs with at least one answer."""
        return {end for one in self.pings if is_answered(one) for end in (one.source, one.target)}


@lru_cache(maxsize=1)  # for several checks
def rails_of(reach: Reach, contested: Collection[tuple[str, str]]) -> Sequence[Rail]:
    """Return all rails, without pings of ends whose address is `contested`: another NIC may have answered."""
    return [
        _rail([one for one in pings if one.source not in contested and one.target not in contested])
        for pings in reach.by_rail.values()
    ]


def _rail(pings: Sequence[Ping]) -> Rail:
    answers = localise_failures([Attempt(one.source, one.target, is_answered(one)) for one in pings])
    refused = _refused(pings)
    lost = losses(pings)
    through = [
        ping
        for ping in pings
        if is_answered(ping)
        and not (ping.kind == TOO_LONG and ping.source in refused)
        and not (ping.kind == MTU and not lost.ends.keys().isdisjoint(ping[:2]))  # loss hits long frames first
    ]
    sizes = localise_failures([Attempt(one.source, one.target, not one.kind) for one in through])
    return Rail(pings, answers, refused, through, sizes, lost)


def is_answered(ping: Ping) -> bool:
    """Tell whether a frame of any size was answered."""
    return ping.kind not in LOST and (ping.kind != TOO_LONG or ping.passes > 0)


def _refused(pings: Iterable[Ping]) -> Mapping[End, Sequence[Ping]]:
    sent: dict[End, list[bool]] = defaultdict(list)
    refused: dict[End, list[Ping]] = defaultdict(list)
    for ping in pings:
        sent[ping.source].append(ping.kind == TOO_LONG)
        if ping.kind == TOO_LONG:
            refused[ping.source].append(ping)
    return {end: answers for end, answers in sorted(refused.items()) if 2 * len(answers) > len(sent[end])}
