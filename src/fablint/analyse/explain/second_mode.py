"""Slow pairs that no component explains: a second mode beyond the noise of all pairs.

A run passes only if the model fits. The slow pairs that no component explains, at any time or for a share of it, may be
more in total than the tail of the noise holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import pdtr

from fablint.analyse.explain.evidence import Evidence
from fablint.analyse.explain.shares.slow_measurements import in_slow_pairs
from fablint.analyse.null_model.effects import Effects, leftover_of
from fablint.analyse.observations.pair_matrix import unordered
from fablint.analyse.observations.robust_stats import robust_sd
from fablint.analyse.settings import CHANCE, CLEAR_DISTANCE, CORE, FAR, FEWEST_OF_CLASS, FEWEST_SLOW, HALF, Settings
from fablint.model.arrays import Cells, Mask, Values


@dataclass(frozen=True)
class SecondMode:
    """Slow pairs of hosts that agree, and that nothing explains."""

    pairs: int  # pairs of hosts measured
    slow: int  # slow pairs of hosts
    loss: float  # median log-effect of the slow measurements


def find_second_mode(
    evidence: Evidence,
    effects: Effects,
    settings: Settings,
    reported_pairs: Sequence[tuple[int, int]],
    reported_cells: Sequence[Cells],
    *,
    views: int,
) -> SecondMode | None:
    """Return the second mode of the pairs that no component explains; None if there is none.

    Parameters
    ----------
    evidence
        Evidence of the view after the search; explained pairs are excluded.
    effects
        Fitted model of the view.
    settings
        Tolerance.
    reported_pairs
        Pairs of ranks that are reported by themselves.
    reported_cells
        Cells of components that are reported as SUSPECT.
    views
        Number of views of the run, which share the error probability.
    """
    placement = evidence.placement
    if placement.switches and (placement.switch < 0).any():
        return None  # links shared with hosts without a switch are unknown
    cells = effects.residual.sample_cells()
    live = evidence.gain[cells] != 0
    informative = leftover_of(effects, (cells[0][live], cells[1][live]))
    live &= ~_reported(evidence, reported_pairs, reported_cells)[cells]
    cells = (cells[0][live], cells[1][live])
    residuals = leftover_of(effects, cells)
    if residuals.size < FEWEST_SLOW:
        return None
    far = FAR * robust_sd(informative)
    limit = max(settings.tolerance, effects.host_tolerance, far)
    ends = (placement.host[cells[0]].astype(np.int64), placement.host[evidence.pairs.destination(cells)])
    pair = unordered(*ends, len(placement.hosts))
    slow = (residuals > limit) & in_slow_pairs(pair, residuals > limit)
    repeats = np.count_nonzero(slow) / max(np.unique(pair[slow]).size, 1)
    mode = _second_mode(residuals, residuals[slow], limit, repeats, CHANCE / views)
    if mode is None:
        return None
    slow &= residuals > mode
    count = int(np.unique(pair[slow]).size)
    second_mode = SecondMode(int(np.unique(pair).size), count, float(np.median(residuals[slow])))
    return second_mode if count >= FEWEST_OF_CLASS else None


def _reported(evidence: Evidence, reported_pairs: Sequence[tuple[int, int]], reported_cells: Sequence[Cells]) -> Mask:
    """Return the (n, m) cells that are reported."""
    reported = np.zeros(evidence.gain.shape, dtype=bool)
    for cells in reported_cells:
        reported[cells] = True
    partner = evidence.pairs.partner
    for src, dst in (ends for pair in reported_pairs for ends in (pair, pair[::-1])):
        reported[src, dst if partner is None else partner[src] == dst] = True
    return reported


def _second_mode(left: Values, candidates: Values, limit: float, repeats: float, chance: float) -> float | None:
    """Return the value from which a second mode of slow pairs begins; None if there is none.

    The slow values agree with each other (half of them are within three standard deviations of the noise around their
    median), and values between them and the noise are rarer than in a tail, whose density falls: there are fewer than
    the density of the slow values lets expect, and not by chance.

    Parameters
    ----------
    left
        (k,) residuals of all measurements, log-effects.
    candidates
        Those of slow pairs of hosts.
    limit
        From which a measurement is slow.
    repeats
        Measurements of a slow pair: they depend on each other, and count as one.
    chance
        Largest probability of a gap in a tail of the noise.
    """
    slow = candidates.astype(np.float64)
    spread = max(robust_sd(left), limit / (2 * CLEAR_DISTANCE))
    if slow.size < FEWEST_SLOW:
        return None
    middle = float(np.median(slow))
    core = np.abs(slow - middle) <= CORE * spread
    begin = middle - CORE * spread
    if 2 * np.count_nonzero(core) <= slow.size or begin < limit:
        return None
    between = np.count_nonzero((left > limit) & (left < begin))
    expected = np.count_nonzero(core) / (2 * CORE * spread) * (begin - limit)
    is_gap = between < HALF * expected and pdtr(between // repeats, expected / repeats) < chance
    return begin if is_gap else None
