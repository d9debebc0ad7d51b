"""Which end of a rail loses pings: one that loses clearly more than the others do among themselves.

A lossy end makes its partners lose as well, each the pings between the two. So ends are named one by one, the clearest
first, and its pings are left out before the next is looked for. "Clearly" is a binomial test against the share that is
lost elsewhere on the rail, which is small where the fabric is well, and as large as its own where a switch between many
ends loses: then no end is named. A ping is a round trip: whether an end loses what it sends or what it receives cannot
be told from pings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, lgamma, log
from statistics import median
from typing import NamedTuple

from fablint.preflight.pings.mesh import End, Ping

_FEWEST_LOST, _FEWEST_SENT = 2, 9  # pings, for an end or a pair to be named
_FEWEST_PARTNERS = 2  # with which an end loses some: of two neither can be named
_MOST_BESIDES = 0.5  # of its share: what its partners lose without it
_MOST_ENDS = 0.25  # of a rail that are lossy by themselves; where there are more it is a switch
_MOST_LEFT = 0.3  # of what is lost, that those who are named do not explain
_SMALLEST_SHARE = 0.01  # of the pings: less is not told
_ALPHA = 0.01  # false names on a rail whose loss is the same everywhere
_USUAL, _PRIOR = 0.5, 250.0  # pings lost and sent that are assumed before any is known


class Loss(NamedTuple):
    """Pings that were lost, of those that were sent."""

    lost: int = 0
    sent: int = 0

    def __add__(self, other: object) -> Loss:
        if not isinstance(other, Loss):
            return NotImplemented
        return Loss(self.lost + other.lost, self.sent + other.sent)

    def __sub__(self, other: Loss) -> Loss:
        return Loss(self.lost - other.lost, self.sent - other.sent)

    @property
    def share(self) -> float:
        return self.lost / self.sent if self.sent else 0.0

    @property
    def counts(self) -> bool:
        """Is it enough to be told?"""
        return self.lost >= _FEWEST_LOST and self.sent >= _FEWEST_SENT and self.share >= _SMALLEST_SHARE

    def __str__(self) -> str:
        return f"{self.lost} of {self.sent}"


_NONE = Loss()


class EndLoss(NamedTuple):
    """What an end loses with partners that are not lossy themselves."""

    own: Loss  # of the pings that it sent
    others: Loss  # of those that were sent to it
    lossy: int  # partners with which it loses some
    partners: int

    @property
    def all(self) -> Loss:
        return self.own + self.others


@dataclass
class Losses:
    """What is to be said of a rail."""

    ends: dict[End, EndLoss] = field(default_factory=dict)  # that are lossy
    pairs: dict[tuple[End, End], Loss] = field(default_factory=dict)  # of ends that are not
    rest: Loss = _NONE  # lost between many, of which none stands out
    among: tuple[End, ...] = ()  # the ends of that


class _Rail:
    """Pings both ways of every pair that is left, and their sums."""

    def __init__(self, pings: Iterable[Ping]) -> None:
        self.ways: dict[tuple[End, End], Loss] = defaultdict(Loss)
        self.partners: dict[End, set[End]] = defaultdict(set)
        self.sums: dict[End, Loss] = defaultdict(Loss)
        self.total = Loss()
        for one in pings:
            way = Loss(one.sent - one.received, one.sent)
            self.ways[one.source, one.target] += way
            self.partners[one.source].add(one.target)
            self.partners[one.target].add(one.source)
            self.sums[one.source] += way
            self.sums[one.target] += way
            self.total += way

    def pair(self, one: End, other: End) -> Loss:
        return self.ways.get((one, other), Loss()) + self.ways.get((other, one), Loss())

    def told(self, end: End) -> EndLoss:
        partners = self.partners[end]
        own, others = Loss(), Loss()
        for other in partners:
            own += self.ways.get((end, other), Loss())
            others += self.ways.get((other, end), Loss())
        return EndLoss(own, others, sum(self.pair(end, one).lost > 0 for one in partners), len(partners))

    def without(self, end: End) -> None:
        """Leave an end out."""
        for other in self.partners.pop(end):
            self._drop(end, other)
            self.partners[other].discard(end)
        del self.sums[end]

    def without_pair(self, one: End, other: End) -> None:
        self._drop(one, other)
        self.partners[one].discard(other)
        self.partners[other].discard(one)

    def _drop(self, one: End, other: End) -> None:
        both = self.ways.pop((one, other), Loss()) + self.ways.pop((other, one), Loss())
        self.sums[one] -= both
        self.sums[other] -= both
        self.total -= both

    def besides(self, end: End, other: End) -> float:
        """The share of an end's pings that is lost with others than this one."""
        return (self.sums[end] - self.pair(end, other)).share

    def is_cause(self, end: End, loss: EndLoss) -> bool:
        """Do its partners lose little but with it? Behind a lossy cable between switches all lose alike."""
        shares = [self.besides(one, end) for one in self.partners[end] if self.pair(one, end).lost]
        return loss.lossy >= _FEWEST_PARTNERS and median(shares) <= _MOST_BESIDES * loss.all.share

    def surprise(self, own: Loss) -> float:
        """How far the share of some pings is above that of all others: the log-likelihood ratio; 0 where it is not."""
        usual = _usual(self.total - own)
        share = own.share
        if share <= usual:
            return 0.0
        rest = (1 - share) * log((1 - share) / (1 - usual)) if share < 1 else 0.0
        return own.sent * (share * log(share / usual) + rest)

    def stands_out(self, own: Loss, count: int) -> bool:
        """Is it more than chance, for one of so many?"""
        return own.counts and _tail(own, _usual(self.total - own)) <= _ALPHA / count


def losses(pings: Sequence[Ping]) -> Losses:
    """What of the pings that were answered, some of them at least, was lost, and by whom."""
    some = [one for one in pings if not one.kind and one.sent]
    if all(one.received == one.sent for one in some):
        return Losses()
    found, rail = Losses(), _Rail(some)
    every, lost = len(rail.sums), rail.total.lost
    _name_ends(rail, found)
    _name_pairs(rail, found)
    if len(found.ends) > max(1, _MOST_ENDS * every) or rail.total.lost > _MOST_LEFT * lost:
        found, rail = Losses(), _Rail(some)  # these are not the cause
    if rail.total.counts:
        found.rest = rail.total
        found.among = tuple(sorted(end for end, loss in rail.sums.items() if loss.counts))
    return found


def _name_ends(rail: _Rail, found: Losses) -> None:
    """The clearest first, again and again: partners of an end that is named lose less without it."""
    count = len(rail.sums)
    while True:
        seen = sorted(((rail.surprise(loss), end) for end, loss in rail.sums.items() if loss.counts), reverse=True)
        named: list[End] = []
        touched: set[End] = set()
        for _, end in seen:
            told = rail.told(end)
            if end not in touched and rail.is_cause(end, told) and rail.stands_out(told.all, count):
                found.ends[end] = told
                named.append(end)
                touched |= {end, *rail.partners[end]}
        for end in named:
            rail.without(end)
        if not named:
            return


def _name_pairs(rail: _Rail, found: Losses) -> None:
    lossy = {tuple(sorted(way)) for way, loss in rail.ways.items() if loss.lost}
    pairs: Mapping[tuple[End, End], Loss] = {(one, other): rail.pair(one, other) for one, other in sorted(lossy)}
    count = max(len(rail.ways), 1)
    few = [
        (one, other)
        for (one, other), loss in pairs.items()
        if rail.stands_out(loss, count)
        and max(rail.besides(one, other), rail.besides(other, one)) <= _MOST_BESIDES / 2 * loss.share
    ]
    for pair in few:
        found.pairs[pair] = pairs[pair]
        rail.without_pair(*pair)


def _usual(others: Loss) -> float:
    return (others.lost + _USUAL) / (others.sent + _PRIOR)


def _tail(own: Loss, usual: float) -> float:
    """The chance that so many or more of the pings are lost, where the share is `usual`."""
    lost, sent = own
    term = exp(
        lgamma(sent + 1) - lgamma(lost + 1) - lgamma(sent - lost + 1)
        + lost * log(usual) + (sent - lost) * log(1 - usual)
    )  # fmt: skip
    whole, count = term, lost
    while count < sent and term > 1e-12 * whole:
        term *= (sent - count) / (count + 1) * usual / (1 - usual)
        whole += term
        count += 1
    return whole
