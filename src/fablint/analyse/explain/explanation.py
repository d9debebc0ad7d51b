"""Smallest set of candidates that explains the late pairs: one search over all candidates.

A pair is late with probability p of the candidate that explains it, else with a probability that all unexplained pairs
share. Both are unknown: integrated over a Beta prior, the log-likelihood of n pairs of which s are late is log B(s + a,
n - s + b) - log B(a, b). The score of a set of candidates is the sum of these, minus that of no candidate, minus a
price per candidate. Healthy pairs that cross a candidate count against it, and if all pairs are late now and then, the
shared probability is high and nothing remains to explain.

The greedy search continues after a step that does not pay (the second of two lossy hosts may), and starts again with
hosts only, with links only, and with a preference for candidates without healthy pairs. The best of all sets counts,
after each member was replaced or removed where that raises the score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from fablint.analyse.candidates.candidate import Candidate, Candidates
from fablint.analyse.settings import COMMON_PRIOR, NEARLY_ALL, OWN_PRIOR, SPEAKS
from fablint.model.arrays import Codes, Floats, Mask

AHEAD = 4  # steps that may follow without a higher score
MOST_STEPS = 200  # largest explanation
MOST_REPLACED = 30  # largest explanation whose members are each tried against all other candidates


@dataclass(frozen=True)
class Member:
    """A candidate in an explanation."""

    number: int
    gain: float  # nats that the explanation loses without it, without its price
    pairs: Codes  # pairs that no other member explains
    alternatives: tuple[int, ...]  # candidates that explain these pairs nearly as well


@dataclass(frozen=True)
class ScoredCandidates:
    """A set of candidates and its score in nats, with prices."""

    chosen: tuple[int, ...] = ()
    score: float = 0.0


class LateSearch:
    """Search over all candidates for one classification of the pairs."""

    def __init__(
        self,
        candidates: Candidates,
        late: Floats,
        weight: Floats,
        price: float,
        *,
        prior: tuple[float, float] = OWN_PRIOR,
        mostly: float | None = NEARLY_ALL,
    ) -> None:
        """Prepare the search.

        Parameters
        ----------
        candidates
            Candidates and their pairs.
        late
            (u,) share of each pair that is late.
        weight
            (u,) weight of each pair.
        price
            Nats per candidate.
        prior
            Beta prior of a candidate's probability.
        mostly
            Share of late pairs of a candidate in the search with a preference; None: no such search.
        """
        self.candidates, self.price, self.prior, self.mostly = candidates, price, prior, mostly
        self.late, self.weight = late * weight, weight
        self._kinds = np.array([entry.kind for entry in candidates.candidate])
        self._replacements: dict[tuple[int, ...], ScoredCandidates] = {}
        order = np.argsort(candidates.pair, kind="stable")
        self._of = candidates.of[order]
        self._first = np.searchsorted(candidates.pair[order], np.arange(late.size + 1))

    def best(self) -> ScoredCandidates:
        """Return the set of candidates with the highest score."""
        explanation = ScoredCandidates()
        for allowed, biased in self._starts():
            candidate = self._improved(self._greedy(allowed, biased))
            explanation = max(explanation, candidate, key=lambda entry: entry.score)
        return explanation

    def _starts(self) -> list[tuple[Mask, bool]]:
        """Return the different searches: allowed candidates, and whether those without healthy pairs are preferred."""
        kinds = self._kinds
        starts = [
            (kinds != "scope", False),
            (kinds != "scope", True),
            (kinds == "host", False),
            (np.isin(kinds, ("host", "cable", "path")), True),
            (np.ones(kinds.size, bool), False),
        ]
        different = {
            (allowed.tobytes(), biased): (allowed, biased)
            for allowed, biased in starts
            if allowed.any() and not (biased and self.mostly is None)
        }
        return list(different.values())

    def members(self, explanation: ScoredCandidates, nearly: float) -> list[Member]:
        """Return the gain of each member, and its alternatives.

        Alternatives are candidates that cost less than `nearly` nats in its place.
        """
        result = []
        chosen = self._needed(explanation.chosen)
        for number in chosen:
            others = [other for other in chosen if other != number]
            state = self._state(others)
            crossing = self.candidates.pairs(number)
            gains = self._gains(state, biased=False)
            gain = float(gains[number])
            alternatives = np.flatnonzero(gains >= gain - nearly)
            alternatives_shown = tuple(other for other in alternatives.tolist() if other not in chosen)
            result.append(Member(number, gain, crossing[state.free[crossing]], alternatives_shown))
        return result

    def others(self, member: Member) -> list[Candidate]:
        """Return the candidates that the pairs of a member cross as well, or nearly these pairs."""
        candidates = self.candidates
        numbers = [number for number in member.alternatives if np.isin(candidates.pairs(number), member.pairs).any()]
        nearly = [one for number in numbers for one in (candidates.candidate[number], *candidates.same[number])]
        return [*candidates.same[member.number], *nearly]

    def is_compared(self, member: Member, scope: Codes, fewest: int) -> bool:
        """Return whether pairs as far apart as those of a member, by the (u,) scope of each, do not cross it."""
        others = np.isin(scope, np.unique(scope[member.pairs]))
        others[self.candidates.pairs(member.number)] = False
        return float(self.weight[others].sum()) >= fewest

    def _needed(self, chosen: tuple[int, ...]) -> list[int]:
        """Return the members without which the other members explain less.

        A member may be covered by several members that were added after it.
        """
        needed = list(chosen)
        for number in chosen:
            others = [other for other in needed if other != number]
            if self._gain(self._state(others), number) <= self.price:
                needed = others
        return needed

    # ------------------------------------------------------------------------------------------------ search

    def _greedy(self, allowed: Mask, biased: bool) -> ScoredCandidates:
        """Return the best set of a greedy search over the allowed candidates."""
        state, best = self._state(()), ScoredCandidates()
        chosen: list[int] = []
        score, ahead = 0.0, 0
        while ahead <= AHEAD and len(chosen) < MOST_STEPS:
            order = np.where(allowed, self._gains(state, biased=biased), -np.inf)
            number = int(np.argmax(order))
            if not np.isfinite(order[number]):
                break
            score += (self._gain(state, number) if biased else float(order[number])) - self.price
            chosen.append(number)
            state = self._without(state, number)
            ahead = 0 if score > best.score else ahead + 1
            if score > best.score:
                best = ScoredCandidates(tuple(chosen), score)
        return best

    def _improved(self, scored_candidates: ScoredCandidates) -> ScoredCandidates:
        """Return the explanation after members were removed or replaced, as long as that raises the score."""
        if not 0 < len(scored_candidates.chosen) <= MOST_REPLACED:
            return scored_candidates
        for _ in range(MOST_STEPS):
            better = max(
                (self._replaced(scored_candidates, number) for number in scored_candidates.chosen),
                key=lambda explanation: explanation.score,
            )
            if better.score <= scored_candidates.score + 1e-9:
                break
            scored_candidates = better
        return scored_candidates

    def _replaced(self, scored_candidates: ScoredCandidates, number: int) -> ScoredCandidates:
        """Return the explanation with the best component, or none, in place of a member.

        The searches lead to the same explanations: what replaces a member is found once for the same other members.
        """
        others = tuple(other for other in scored_candidates.chosen if other != number)
        if others not in self._replacements:
            self._replacements[others] = self._completed(others)
        return self._replacements[others]

    def _completed(self, chosen: tuple[int, ...]) -> ScoredCandidates:
        """Return the explanation with one more component, if that raises the score.

        Each pair is explained by the first member that it crosses.
        """
        state, score = self._unexplained, 0.0
        for number in chosen:
            score += self._gain(state, number) - self.price
            state = self._without(state, number)
        gains = np.where(self._kinds != "scope", self._gains(state, biased=False), -np.inf)
        best = int(np.argmax(gains))
        if gains[best] <= self.price:
            return ScoredCandidates(chosen, score)
        return ScoredCandidates((*chosen, best), score + float(gains[best]) - self.price)

    # ------------------------------------------------------------------------------------------------ gains

    @cached_property
    def _unexplained(self) -> _State:
        """The state in which no pair is explained."""
        size = len(self.candidates.candidate)
        at, candidate = self.candidates.pair, self.candidates.of
        sums = (_sums(candidate, values[at], size) for values in (self.weight, self.late))
        return self._state_of(np.ones(self.weight.size, bool), *sums)

    def _state_of(self, free: Mask, measured: Floats, late: Floats) -> _State:
        return _State(free, measured, late, float(self.weight[free].sum()), float(self.late[free].sum()))

    def _state(self, chosen: Iterable[int]) -> _State:
        """Return the state in which the pairs of these candidates are explained."""
        state = self._unexplained
        for number in chosen:
            state = self._without(state, number)
        return state

    def _without(self, state: _State, number: int) -> _State:
        """Return the state in which the pairs of a further candidate are explained."""
        explained = self.candidates.pairs(number)
        explained = explained[state.free[explained]]
        free = state.free.copy()
        free[explained] = False
        width = self._first[explained + 1] - self._first[explained]
        pair = np.repeat(explained, width)
        offset = np.arange(pair.size) - np.repeat(np.cumsum(width) - width, width)
        candidate = self._of[self._first[pair] + offset]
        size = state.measured.size
        measured, late = (_sums(candidate, values[pair], size) for values in (self.weight, self.late))
        return self._state_of(free, state.measured - measured, np.maximum(state.late - late, 0.0))

    def _gain(self, state: _State, number: int) -> float:
        """Return the nats that one candidate adds."""
        return float(self._gains(state, biased=False, selected=np.array([number]))[0])

    def _gains(self, state: _State, *, biased: bool, selected: Codes | None = None) -> Floats:
        """Return the (c,) nats that each candidate adds.

        -inf for candidates whose pairs are not later than other pairs, and for candidates without pairs.
        """
        measured, late = (
            (state.measured, state.late) if selected is None else (state.measured[selected], state.late[selected])
        )
        others = np.maximum(state.all_measured - measured, 0.0)
        others_late = np.maximum(state.all_late - late, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            is_later = (measured > 1e-9) & (late > 1e-9) & (others > 1e-9) & (late / measured > others_late / others)
            if biased and self.mostly is not None:
                rate = (others_late + COMMON_PRIOR[0]) / (others + sum(COMMON_PRIOR))
                gains = late * np.log(self.mostly / rate) + (measured - late) * np.log((1 - self.mostly) / (1 - rate))
            else:
                gains = (
                    _marginal(late, measured, self.prior)
                    + _marginal(others_late, others, COMMON_PRIOR)
                    - _marginal(np.array([state.all_late]), np.array([state.all_measured]), COMMON_PRIOR)
                )
        return np.asarray(np.where(is_later, gains, -np.inf))


@dataclass(frozen=True)
class BoundedSearch:
    """The search for one of several bounds beyond which a pair is late: the one whose explanation scores most."""

    bound: float
    search: LateSearch
    explanation: ScoredCandidates

    @classmethod
    def of(
        cls, candidates: Candidates, bounds: Sequence[float], share: Callable[[float], Floats], weight: Floats
    ) -> Self | None:
        """Search by each bound, with the (u,) `share` of each pair that is beyond it; None: nothing to explain."""
        best: Self | None = None
        price = float(np.log(max(len(candidates.candidate), 1))) + SPEAKS
        for bound in bounds:
            late = share(bound)
            if not candidates.candidate or not late.any():
                break
            search = LateSearch(candidates, late, weight, price)
            explanation = search.best()
            if explanation.chosen and (best is None or explanation.score > best.explanation.score):
                best = cls(bound, search, explanation)
        return best

    def members(self) -> list[Member]:
        """Return the members of the explanation."""
        return self.search.members(self.explanation, SPEAKS)


@dataclass(frozen=True)
class _State:
    """Pairs that are not explained yet, and their weight: per candidate and of all, measured and late."""

    free: Mask
    measured: Floats
    late: Floats
    all_measured: float
    all_late: float


def _sums(codes: Codes, values: Floats, size: int) -> Floats:
    """Return the sums of the values per candidate."""
    return np.bincount(codes, weights=values, minlength=size).astype(np.float64)


def _marginal(late: Floats, measured: Floats, prior: tuple[float, float]) -> Floats:
    """Return the log-likelihood of a number of late pairs, integrated over the prior."""
    from scipy.special import betaln

    a, b = prior
    return np.asarray(betaln(late + a, np.maximum(measured - late, 0.0) + b) - betaln(a, b))
