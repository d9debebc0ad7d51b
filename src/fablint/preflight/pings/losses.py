"""Localise ping loss on a rail: the ends that lose clearly more than the others do among themselves.

A fault loses pings in both passes, a busy host at a moment of one of them: pings of the second pass are counted, and
an end or a pair is named only if it lost some in the first pass as well, without those of ends that are named already.

The partners of a lossy end lose the pings between the two as well. Ends are therefore named one by one, the clearest
first, and the pings of a named end are removed before the next is sought. "Clearly" is a binomial test against the
share that is lost elsewhere on the rail. That share is small on a healthy fabric; if a switch between many ends loses
packets, it is as large as that of each end, and no end is named. A ping is a round trip and does not show the
direction of a loss.
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
_FEWEST_PARTNERS = 2  # with losses, for an end to be named; of two ends neither can be named
_MAX_WITHOUT_END = 0.5  # of its share: loss of its partners with other ends, and of each end without a name
_MOST_ENDS = 0.5  # of a rail that are lossy themselves; more indicate a switch
_SMALLEST_SHARE = 0.01  # of the pings: less is not reported
_ALPHA = 0.01  # false detections on a rail with the same loss everywhere
_USUAL, _PRIOR = 0.5, 250.0  # prior: lost and sent pings


class Loss(NamedTuple):
    """Number of lost and of sent pings of the second pass, and of those lost in the first pass."""

    lost: int = 0
    sent: int = 0
    lost_first: int = 0

    def __add__(self, other: object) -> Loss:
        if not isinstance(other, Loss):
            return NotImplemented
        return Loss(self.lost + other.lost, self.sent + other.sent, self.lost_first + other.lost_first)

    def __sub__(self, other: Loss) -> Loss:
        return Loss(self.lost - other.lost, self.sent - other.sent, self.lost_first - other.lost_first)

    @property
    def share(self) -> float:
        """Share of the pings without an answer, 0 to 1."""
        return self.lost / self.sent if self.sent else 0.0

    @property
    def is_reportable(self) -> bool:
        """True for a loss in both passes, above the minimum counts and share."""
        is_enough = self.lost >= _FEWEST_LOST and self.sent >= _FEWEST_SENT and self.share >= _SMALLEST_SHARE
        return is_enough and self.lost_first > 0

    def __str__(self) -> str:
        return f"{self.lost} of {self.sent}"


_NONE = Loss()


class EndLoss(NamedTuple):
    """Loss of an end with partners that are not lossy themselves."""

    own: Loss  # of the pings that it sent
    others: Loss  # of those that were sent to it
    lossy: int  # partners with losses
    partners: int

    @property
    def all(self) -> Loss:
        """Loss of the pings that this end sent and of those that it received, together."""
        return self.own + self.others


@dataclass
class Losses:
    """Localised ping loss of a rail."""

    ends: dict[End, EndLoss] = field(default_factory=dict)  # lossy ends
    pairs: dict[tuple[End, End], Loss] = field(default_factory=dict)  # lossy pairs of other ends
    rest: Loss = _NONE  # loss that no end or pair explains
    among: tuple[End, ...] = ()  # ends with such loss


class _Rail:
    """Loss of every remaining pair in both directions, and sums per end."""

    def __init__(self, pings: Iterable[Ping]) -> None:
        self.directions: dict[tuple[End, End], Loss] = defaultdict(Loss)
        self.partners: dict[End, set[End]] = defaultdict(set)
        self.sums: dict[End, Loss] = defaultdict(Loss)
        self.total = Loss()
        for ping in pings:
            loss = Loss(ping.sent - ping.received, ping.sent, ping.lost_first)
            self.directions[ping.source, ping.target] += loss
            self.partners[ping.source].add(ping.target)
            self.partners[ping.target].add(ping.source)
            self.sums[ping.source] += loss
            self.sums[ping.target] += loss
            self.total += loss

    def pair(self, end: End, other: End) -> Loss:
        return self.directions.get((end, other), Loss()) + self.directions.get((other, end), Loss())

    def end_loss(self, end: End) -> EndLoss:
        """Return the loss of an end with its remaining partners."""
        partners = self.partners[end]
        sent, others = Loss(), Loss()
        for other in partners:
            sent += self.directions.get((end, other), Loss())
            others += self.directions.get((other, end), Loss())
        return EndLoss(sent, others, sum(self.pair(end, one).lost > 0 for one in partners), len(partners))

    def remove(self, end: End) -> None:
        """Remove an end and its pings."""
        for other in self.partners.pop(end):
            self._drop(end, other)
            self.partners[other].discard(end)
        del self.sums[end]

    def remove_pair(self, end: End, other: End) -> None:
        """Remove the pings between two ends."""
        self._drop(end, other)
        self.partners[end].discard(other)
        self.partners[other].discard(end)

    def _drop(self, end: End, other: End) -> None:
        both = self.directions.pop((end, other), Loss()) + self.directions.pop((other, end), Loss())
        self.sums[end] -= both
        self.sums[other] -= both
        self.total -= both

    def share_without(self, end: End, other: End) -> float:
        """Return the lost share of an end's pings, without those to and from `other`."""
        return (self.sums[end] - self.pair(end, other)).share

    def is_cause(self, end: End, loss: EndLoss) -> bool:
        """Tell whether its partners lose little without it; behind a lossy cable between switches all lose equally."""
        shares = [self.share_without(one, end) for one in self.partners[end] if self.pair(one, end).lost]
        return loss.lossy >= _FEWEST_PARTNERS and median(shares) <= _MAX_WITHOUT_END * loss.all.share

    def log_likelihood_ratio(self, loss: Loss) -> float:
        """Return the log-likelihood ratio of a share above that of all other pings; 0 if it is not above."""
        usual = _usual(self.total - loss)
        share = loss.share
        if share <= usual:
            return 0.0
        rest = (1 - share) * log((1 - share) / (1 - usual)) if share < 1 else 0.0
        return loss.sent * (share * log(share / usual) + rest)

    def stands_out(self, loss: Loss, count: int) -> bool:
        """Test a loss against that of all other pings, corrected for `count` tests."""
        return loss.is_reportable and _tail(loss, _usual(self.total - loss)) <= _ALPHA / count


def losses(pings: Sequence[Ping]) -> Losses:
    """Localise the loss among pings of pairs with at least one answer."""
    second = [one for one in pings if one.is_second and not one.kind and one.sent]
    if all(one.received == one.sent for one in second):
        return Losses()
    result, rail = Losses(), _Rail(second)
    most_ends = max(1, _MOST_ENDS * len(rail.sums))
    _name_ends(rail, result)
    _name_pairs(rail, result)
    if len(result.ends) > most_ends or not _stand_apart(rail, result):
        result, rail = Losses(), _Rail(second)  # the named ends and pairs are not the cause
    if rail.total.is_reportable:
        result.rest = rail.total
        result.among = tuple(sorted(end for end, loss in rail.sums.items() if loss.is_reportable))
    return result


def _name_ends(rail: _Rail, losses: Losses) -> None:
    """Name lossy ends repeatedly, the clearest first: partners of a named end lose less without it."""
    count = len(rail.sums)
    while True:
        sums = [(rail.log_likelihood_ratio(loss), end) for end, loss in rail.sums.items() if loss.is_reportable]
        named: list[End] = []
        touched: set[End] = set()
        for _, end in sorted(sums, reverse=True):
            loss = rail.end_loss(end)
            if end not in touched and rail.is_cause(end, loss) and rail.stands_out(loss.all, count):
                losses.ends[end] = loss
                named.append(end)
                touched |= {end, *rail.partners[end]}
        for end in named:
            rail.remove(end)
        if not named:
            return


def _name_pairs(rail: _Rail, losses: Losses) -> None:
    lossy = {tuple(sorted(ends)) for ends, loss in rail.directions.items() if loss.lost}
    pairs: Mapping[tuple[End, End], Loss] = {(one, other): rail.pair(one, other) for one, other in sorted(lossy)}
    count = max(len(rail.directions), 1)
    few = [
        (item, other)
        for (item, other), loss in pairs.items()
        if rail.stands_out(loss, count)
        and max(rail.share_without(item, other), rail.share_without(other, item)) <= _MAX_WITHOUT_END / 2 * loss.share
    ]
    for pair in few:
        losses.pairs[pair] = pairs[pair]
        rail.remove_pair(*pair)


def _stand_apart(rail: _Rail, losses: Losses) -> bool:
    """Tell whether each named end loses at least twice as much as every end that remains."""
    most = max((loss.share for loss in rail.sums.values() if loss.is_reportable), default=0.0)
    return all(most <= _MAX_WITHOUT_END * loss.all.share for loss in losses.ends.values())


def _usual(others: Loss) -> float:
    return (others.lost + _USUAL) / (others.sent + _PRIOR)


def _tail(loss: Loss, usual: float) -> float:
    """Return the probability that at least as many pings are lost if the share is `usual`."""
    lost, sent, _ = loss
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
