"""The smallest loss of a component that a view would have named in 9 of 10 cases, by its own noise.

The pairs of a component that loses x have the noise of the view plus x. Samples of as many values of the noise as a
component of the type has pairs are tested as the search tests a component: evidence with its bound per partner, order
statistics of the median beyond the tolerance, a steady loss, and for hosts a median beyond what healthy hosts differ
by. Healthy hosts differ, so a sample has a difference of its own; the pairs of the component are among those that it is
compared with, which hides a part of its loss. Of each sample the smallest sufficient x is found; the result is that
which is sufficient for 9 of 10 samples. Of a component with more than a quarter of the pairs nothing is stated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fablint.analyse.candidates.components import ComponentType, Endpoints, Kind
from fablint.analyse.explain.circumstances import ENDPOINT_KINDS
from fablint.analyse.explain.evidence import Evidence
from fablint.analyse.explain.search import Bar, Sides
from fablint.analyse.null_model.effects import Effects
from fablint.analyse.null_model.host_spread import FittedTails, MeasuredEffects
from fablint.analyse.null_model.timing import errors_over_time
from fablint.analyse.observations.robust_stats import MEDIAN_ERROR, interval_ranks, robust_sd
from fablint.analyse.settings import CLUSTER, FAR, FEWEST_OF_SPREAD, HALF, NEARLY_ALL, QUARTER
from fablint.model.arrays import Floats

SAMPLES, MOST_PAIRS, HALVINGS = 200, 512, 12
LARGEST = 2.0  # log-effect up to which losses are searched


def named_losses(
    evidence: Evidence,
    effects: Effects,
    healthy: MeasuredEffects,
    component_types: Sequence[ComponentType],
    bar: Bar,
    sides: Sides,
    alpha: float,
) -> dict[Kind, float]:
    """Return the log-effect for each type of components that can be named.

    Parameters
    ----------
    evidence
        Evidence without the pairs of detected components.
    effects
        Fitted model.
    healthy
        (2, n) effects of ranks as senders and as receivers; NaN for those that are not healthy.
    component_types
        Types that are compared.
    bar
        Requirements of a detection.
    sides
        Rule for the directions of a host.
    alpha
        Expected number of healthy hosts as slow, above which a host is not named.
    """
    losses: dict[Kind, float] = {}
    healthy, none = healthy.flat, MeasuredEffects.exact(np.empty(0))
    total = max(1, int(evidence.live.sent.sum()))
    for component_type in component_types:
        first, second, inner = component_type.sums(evidence.live)
        both = first + second - inner
        pairs, both = (both if sides is Sides.TOGETHER else first)[first >= bar.fewest], both[first >= bar.fewest]
        if component_type.kind in losses or not pairs.size or (share := float(np.median(both)) / total) > QUARTER:
            continue
        is_end, count = isinstance(component_type, Endpoints), min(int(np.median(pairs)), MOST_PAIRS)
        rule = _Rule(
            evidence,
            bar,
            effects.host_tolerance if is_end else effects.link_tolerance,
            effects.noise,
            healthy if component_type.kind in ENDPOINT_KINDS else none,
            alpha,
        )
        loss = rule.smallest(count) + float(np.quantile(evidence.noise, HALF / (1 - share)))
        if loss < LARGEST:
            losses[component_type.kind] = loss
    return losses


@dataclass(frozen=True)
class _Rule:
    """What a component must show."""

    evidence: Evidence
    bar: Bar
    tolerance: float
    noise: float
    healthy: MeasuredEffects  # of components of the type; empty: they do not differ
    alpha: float

    def smallest(self, pairs: int) -> float:
        """Return the loss that is enough for 9 of 10 samples of the noise."""
        rng, usual = np.random.default_rng(pairs), 0.0
        sample = rng.choice(self.evidence.noise, (SAMPLES, pairs)).astype(np.float64)
        if self.healthy.effect.size >= FEWEST_OF_SPREAD:
            usual = FittedTails.of(self.healthy).loss_of_count(self.alpha)
            of_noise = (MEDIAN_ERROR * self.noise) ** 2 / pairs
            spread = np.sqrt(max(0.0, robust_sd(self.healthy.effect) ** 2 - of_noise))
            sample += spread * rng.standard_normal(SAMPLES)[:, None]
        over_time = errors_over_time(sample, self.noise)
        sample.sort(axis=1)
        lower, middle = sample[:, int(interval_ranks(pairs)[0])], np.median(sample, axis=1)
        below = self.tolerance - lower
        is_wide = middle - lower > FAR * MEDIAN_ERROR * self.noise / np.sqrt(pairs)
        steady = below + np.where(is_wide, middle - lower, 0.0)
        beyond = np.maximum(usual - lower, self.tolerance + FAR * over_time - middle)
        return float(np.quantile(np.max([steady, beyond, self._enough_evidence(sample)], axis=0), NEARLY_ALL))

    def _enough_evidence(self, sample: Floats) -> Floats:
        """Return the (SAMPLES,) loss from which the evidence of each sample is enough."""
        most = max(CLUSTER, self.bar.log_e / max(self.bar.partners, 1))
        low, high = np.zeros(SAMPLES), np.full(SAMPLES, LARGEST)
        for _ in range(HALVINGS):
            tried = (low + high) / 2
            increments = self.evidence.increments(sample + (tried - self.tolerance)[:, None])
            is_enough = np.minimum(increments, most).sum(axis=1) >= self.bar.log_e
            low, high = np.where(is_enough, low, tried), np.where(is_enough, tried, high)
        return np.asarray(np.maximum(high, self.tolerance))
