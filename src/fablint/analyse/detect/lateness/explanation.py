"""The fewest candidates that explain which pairs are late: one search in which all of them compete.

A pair is late with probability p of the candidate that explains it, else with the probability that is common to all
unexplained pairs. Both are unknown: integrated over a Beta prior, the log-likelihood of n pairs of which s are late is
log B(s + a, n - s + b) - log B(a, b). A set of candidates scores the sum of these, less that of no candidate at all,
less a price for each candidate. Healthy pairs that cross a candidate so count against it, and a fabric whose pairs are
all late now and then has a high common probability, which leaves nothing to explain.

The greedy search goes on past a step that does not pay (the second of two lossy hosts may), and begins anew with
hosts only, with links only and with a bias to candidates without healthy pairs: the best of all sets counts, after
each member was replaced or removed where that scores more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fablint.analyse.detect.lateness.late_pairs import Candidates

COMMON = (0.5, 9.5)  # Beta prior of the common probability: few pairs of a healthy fabric are late
OWN = (1.0, 0.5)  # of a candidate's: most of its pairs are late
MOSTLY = 0.9  # share of a candidate's pairs that are late, for the search with a bias
AHEAD = 4  # steps of the search that need not pay
MOST_STEPS = 200  # candidates of an explanation
MOST_REPLACED = 30  # members of an explanation, up to which each is tried against all others

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Member:
    """A candidate of an explanation."""

    number: int
    gain: float  # nats that the explanation loses without it, its price not counted
    pairs: Codes  # that no other member explains
    alternatives: tuple[int, ...]  # candidates that would explain them nearly as well


@dataclass(frozen=True)
class Explanation:
    """A set of candidates, and its score in nats, prices counted."""

    chosen: tuple[int, ...] = ()
    score: float = 0.0


class LateSearch:
    """All candidates against one judgement of the pairs."""

    def __init__(self, candidates: Candidates, late: Floats, weight: Floats, price: float) -> None:
        """`late` (u,) share of each pair that is late; `weight` (u,) of each pair."""
        self.candidates, self.price = candidates, price
        self.late, self.weight = late * weight, weight
        order = np.argsort(candidates.pair, kind="stable")
        self._of = candidates.of[order]
        self._first = np.searchsorted(candidates.pair[order], np.arange(late.size + 1))

    def best(self) -> Explanation:
        """The set of candidates that scores most."""
        kinds = np.array([one.kind for one in self.candidates.candidate])
        component = kinds != "scope"
        starts: list[tuple[Mask, bool]] = [
            (component, False),
            (component, True),
            (kinds == "host", False),
            (np.isin(kinds, ("host", "cable", "path")), True),
            (np.ones(kinds.size, bool), False),
        ]
        found = Explanation()
        for allowed, biased in starts:
            if allowed.any():
                found = max(found, self._improved(self._greedy(allowed, biased), component), key=lambda one: one.score)
        return found

    def members(self, explanation: Explanation, nearly: float) -> list[Member]:
        """What each member adds, and its rivals: those that in its place cost less than `nearly` nats."""
        result = []
        chosen = self._needed(explanation.chosen)
        for number in chosen:
            others = [one for one in chosen if one != number]
            state = self._state(others)
            own = self.candidates.pairs(number)
            gains = self._gains(state, biased=False)
            gain = float(gains[number])
            alternatives = np.flatnonzero(gains >= gain - nearly)
            shown = tuple(one for one in alternatives.tolist() if one not in chosen)
            result.append(Member(number, gain, own[state.free[own]], shown))
        return result

    def _needed(self, chosen: tuple[int, ...]) -> list[int]:
        """Those without which the others explain less: a member may be covered by several that came after it."""
        needed = list(chosen)
        for number in chosen:
            others = [one for one in needed if one != number]
            gain = self._gains(self._state(others), biased=False, some=np.array([number]))[0]
            if gain <= self.price:
                needed = others
        return needed

    # ------------------------------------------------------------------------------------------------ search

    def _greedy(self, allowed: Mask, biased: bool) -> Explanation:
        state, found = self._state(()), Explanation()
        chosen: list[int] = []
        score, ahead = 0.0, 0
        while ahead <= AHEAD and len(chosen) < MOST_STEPS:
            order = np.where(allowed, self._gains(state, biased=biased), -np.inf)
            number = int(np.argmax(order))
            if not np.isfinite(order[number]):
                break
            score += float(self._gains(state, biased=False, some=np.array([number]))[0]) - self.price
            chosen.append(number)
            state = self._without(state, number)
            ahead = 0 if score > found.score else ahead + 1
            if score > found.score:
                found = Explanation(tuple(chosen), score)
        return found

    def _improved(self, found: Explanation, allowed: Mask) -> Explanation:
        """The same with members removed or replaced, as long as that scores more."""
        if not 0 < len(found.chosen) <= MOST_REPLACED:
            return found
        for _ in range(MOST_STEPS):
            better = max((self._replaced(found, number, allowed) for number in found.chosen), key=lambda one: one.score)
            if better.score <= found.score + 1e-9:
                break
            found = better
        return found

    def _replaced(self, found: Explanation, number: int, allowed: Mask) -> Explanation:
        others = tuple(one for one in found.chosen if one != number)
        state = self._state(others)
        score = self._score(others)
        gains = np.where(allowed, self._gains(state, biased=False), -np.inf)
        best = int(np.argmax(gains))
        if gains[best] <= self.price:
            return Explanation(others, score)
        return Explanation((*others, best), score + float(gains[best]) - self.price)

    def _score(self, chosen: Sequence[int]) -> float:
        """Nats of a set: each pair is explained by the first member that it crosses."""
        state, score = self._state(()), 0.0
        for number in chosen:
            score += float(self._gains(state, biased=False, some=np.array([number]))[0]) - self.price
            state = self._without(state, number)
        return score

    # ------------------------------------------------------------------------------------------------ gains

    def _state(self, chosen: Iterable[int]) -> _State:
        size = len(self.candidates.candidate)
        at, of = self.candidates.pair, self.candidates.of
        state = _State(np.ones(self.weight.size, bool), *(_sums(of, one[at], size) for one in (self.weight, self.late)))
        for number in chosen:
            state = self._without(state, number)
        return state

    def _without(self, state: _State, number: int) -> _State:
        """The same when the pairs of a candidate are explained."""
        own = self.candidates.pairs(number)
        own = own[state.free[own]]
        free = state.free.copy()
        free[own] = False
        width = self._first[own + 1] - self._first[own]
        pair = np.repeat(own, width)
        offset = np.arange(pair.size) - np.repeat(np.cumsum(width) - width, width)
        of = self._of[self._first[pair] + offset]
        size = state.measured.size
        measured, late = (_sums(of, one[pair], size) for one in (self.weight, self.late))
        return _State(free, state.measured - measured, np.maximum(state.late - late, 0.0))

    def _gains(self, state: _State, *, biased: bool, some: Codes | None = None) -> Floats:
        """(c,) nats that each candidate adds; -inf where its pairs are not later than the others, or there are none."""
        measured, late = (state.measured, state.late) if some is None else (state.measured[some], state.late[some])
        every, all_late = (float(one[state.free].sum()) for one in (self.weight, self.late))
        others, others_late = np.maximum(every - measured, 0.0), np.maximum(all_late - late, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            later = (measured > 1e-9) & (late > 1e-9) & (others > 1e-9) & (late / measured > others_late / others)
            if biased:
                rate = (others_late + COMMON[0]) / (others + sum(COMMON))
                gains = late * np.log(MOSTLY / rate) + (measured - late) * np.log((1 - MOSTLY) / (1 - rate))
            else:
                gains = (
                    _marginal(late, measured, OWN)
                    + _marginal(others_late, others, COMMON)
                    - _marginal(np.array([all_late]), np.array([every]), COMMON)
                )
        return np.asarray(np.where(later, gains, -np.inf))


@dataclass(frozen=True)
class _State:
    """Pairs that are not explained yet, and the weights of each candidate's: measured, and late."""

    free: Mask
    measured: Floats
    late: Floats


def _sums(of: Codes, values: Floats, size: int) -> Floats:
    return np.bincount(of, weights=values, minlength=size).astype(np.float64)


def _marginal(late: Floats, measured: Floats, prior: tuple[float, float]) -> Floats:
    """Log-likelihood of so many late pairs, integrated over the prior."""
    from scipy.special import betaln

    a, b = prior
    return np.asarray(betaln(late + a, np.maximum(measured - late, 0.0) + b) - betaln(a, b))
