"""Whether a component adds time per message or time per byte.

    extra(m) = alpha + beta m

over the sizes m of one row, where `extra` is what the component adds to the time of a healthy message. The curve of a
healthy message may change its protocol with the size (eager, rendezvous): the line is fitted to the added time, not to
the curve. The sizes of one launch are one observation of the fabric: the line describes a finding, and is not evidence
for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fablint.analyse.settings import CHANCE, CONFIDENCE, FEWEST_PEERS, FINEST_NOISE, LONG_TAIL, MARGIN, SIZE_RANGE
from fablint.model import EvidenceRecord
from fablint.model.arrays import Floats
from fablint.text import evidence as seen

BENDS_AT = 1.5  # standard deviations from which Huber's function is linear
PRECISION = 1e-12  # of the fitted line


@dataclass(frozen=True)
class Slope:
    """Dependence of the added time on the size of the message."""

    kind: Literal["alpha", "beta", "both"]
    alpha_s: float  # seconds per message, 0 for kind `beta`
    beta_s: float  # seconds per byte, 0 for kind `alpha`
    factor: float  # time per byte, as a multiple of that of a healthy message
    retries: bool  # whether the slowest messages are slower by far more than the median

    def evidence(self, row: str) -> EvidenceRecord:
        """Return the evidence as a finding about a row holds it."""
        return seen.alpha_beta(
            grows=self.kind, alpha_s=self.alpha_s, beta_s=self.beta_s, factor=self.factor, retries=self.retries
        ).measured_in(row)


def explain(
    sizes: npt.ArrayLike,
    healthy_seconds: npt.ArrayLike,
    loss: npt.ArrayLike,
    bounds: npt.ArrayLike,
    tail: npt.ArrayLike | None = None,
) -> Slope | None:
    """Fit alpha and beta of one component.

    Parameters
    ----------
    sizes
        (k,) bytes.
    healthy_seconds
        (k,) time of a healthy message of its class.
    loss
        (k,) log-effect of the component on the time.
    bounds
        (2, k) 95 % interval of the loss.
    tail
        (k,) log-effect on the slowest messages (p99), where known.

    Returns
    -------
    Slope or None
        None for fewer than three sizes, sizes of too small a range, or no significant term.
    """
    size, healthy, middle = (np.asarray(values, dtype=np.float64) for values in (sizes, healthy_seconds, loss))
    lower, upper = np.asarray(bounds, dtype=np.float64)
    is_finite = np.isfinite(healthy) & np.isfinite(middle) & np.isfinite(lower) & np.isfinite(upper)
    size, healthy, middle = size[is_finite], healthy[is_finite], middle[is_finite]
    if size.size < FEWEST_PEERS or size.max() < SIZE_RANGE * max(1.0, size.min()):
        return None
    from scipy.special import ndtri

    extra = healthy * np.expm1(middle)
    error = healthy * (np.exp(upper[is_finite]) - np.exp(lower[is_finite])) / (2 * ndtri((1 + CONFIDENCE) / 2))
    usual = _seconds_per_byte(size, healthy)
    fitted = _fit(size, extra, np.maximum(error, FINEST_NOISE * healthy), MARGIN * healthy)
    if fitted is None or (usual is None and fitted[1] > 0):
        return None
    alpha, beta = fitted
    long_tail = tail is not None and np.nanmedian(np.asarray(tail, dtype=np.float64)[is_finite] - middle) > np.log(
        LONG_TAIL
    )
    return Slope(
        "both" if alpha > 0 and beta > 0 else "alpha" if alpha > 0 else "beta",
        alpha,
        beta,
        1 + beta / usual if usual else 1.0,
        bool(long_tail),
    )


def _fit(size: Floats, extra: Floats, error: Floats, worth: Floats) -> tuple[float, float] | None:
    """Return alpha and beta, 0 for the term that is not needed; None if neither is needed. Neither is negative."""
    from scipy.special import ndtri

    needed = ndtri(CHANCE / 2) ** 2  # increase of chi-square
    line, step, slope = np.stack([np.ones_like(size), size], axis=1), np.ones((size.size, 1)), size[:, None]
    both, misfit = _line(line, extra, error)
    scale = max(1.0, misfit / max(1, size.size - 2))  # the errors may be larger than estimated
    (alpha,), without_beta = _line(step, extra, error)
    (beta,), without_alpha = _line(slope, extra, error)
    visible = (both[0] > worth).any() and (both[1] * size > worth).any()
    if visible and min(without_alpha, without_beta) - misfit > needed * scale:
        return float(both[0]), float(both[1])
    best, cost = ((alpha, 0.0), without_beta) if without_beta <= without_alpha else ((0.0, beta), without_alpha)
    scale = max(1.0, cost / max(1, size.size - 1))
    is_needed = _cost(extra / error) - cost > needed * scale
    return (float(best[0]), float(best[1])) if is_needed and (line @ best > worth).any() else None


def _line(terms: Floats, extra: Floats, error: Floats) -> tuple[Floats, float]:
    """Return coefficients and misfit of the line with the least sum of Huber's function of the errors (Huber 1964)."""
    from scipy.optimize import least_squares

    scale = np.abs(terms).max(axis=0)
    design, target = terms / scale / error[:, None], extra / error
    start = np.linalg.lstsq(design, target, rcond=None)[0]
    fitted = least_squares(
        lambda line: design @ line - target,
        start,
        jac=lambda _: design,
        loss="huber",
        f_scale=BENDS_AT,
        ftol=PRECISION,
        xtol=PRECISION,
        gtol=PRECISION,
    )
    return fitted.x / scale, 2 * float(fitted.cost)


def _cost(off: Floats) -> float:
    """Return the sum of Huber's function of the (k,) errors: squares of small errors, linear in large errors."""
    off = np.abs(off)
    return float(np.where(off <= BENDS_AT, off**2, 2 * BENDS_AT * off - BENDS_AT**2).sum())


def _seconds_per_byte(size: Floats, healthy: Floats) -> float | None:
    """Return the time per byte of a healthy message, from the largest sizes; None if it does not rise."""
    order = np.argsort(size)[-FEWEST_PEERS:]
    steps = np.diff(healthy[order]) / np.diff(size[order])
    slope = float(np.median(steps))
    return slope if slope > 0 else None
