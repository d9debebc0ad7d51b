"""What kind of slow: so much more for every message, or so much more for every byte?

    extra(m) = alpha + beta m

over the sizes m of one row, where `extra` is what the part adds to the time of a healthy message. The healthy curve may
change its protocol with the size (eager, rendezvous): the fit is to what is added to it, not to the curve. The sizes of
one launch are one observation of the fabric: this explains a finding, it is no evidence for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.robust_stats import Floats

FEWEST_SIZES = 3
WIDEST = 8  # times the smallest size, which the largest must be
NEEDED = 6.63  # increase of chi-square from which a term is needed: one in a hundred by chance
WORTH = 0.03  # of a healthy message at some size, which a term must be to be spoken of
BENDS_AT = 1.5  # standard deviations from which a size has less say
PASSES = 20
FINEST = 1e-3  # of a time: none is known better
LONG_TAIL = np.log(1.5)  # beyond the median's loss: messages that were sent again
UNTIL_95 = 1.96  # standard deviations from the middle to the end of a 95 % interval

MEANS = {
    "alpha": "an extra hop, where its processes are placed, or a power state",
    "beta": "a link that lost width or speed, PCIe, or a share of something",
    "both": "a host or NIC that is slow in all it does",
}
RETRIES = "with a long tail: messages are sent again (read the retry and error counters)"


@dataclass(frozen=True)
class Slope:
    """How the time that a part adds grows with the size of the message."""

    kind: Literal["alpha", "beta", "both"]
    alpha_s: float  # seconds per message, 0 for `beta`
    beta_s: float  # seconds per byte, 0 for `alpha`
    factor: float  # time per byte, as a multiple of a healthy one's
    retries: bool  # are the slowest messages slower by much more?

    @property
    def text(self) -> str:
        """As a finding quotes it."""
        each = f"{self.alpha_s * 1e6:+.2g} us a message"
        if self.kind == "alpha":
            each += " at every size"
        byte = f"time per byte x{self.factor:.2f}"
        found = {"alpha": each, "beta": byte, "both": f"{each} and {byte}"}[self.kind]
        return f"{found}: {RETRIES if self.retries else MEANS[self.kind]}"


def explain(
    sizes: npt.ArrayLike,
    healthy_seconds: npt.ArrayLike,
    loss: npt.ArrayLike,
    bounds: npt.ArrayLike,
    tail: npt.ArrayLike | None = None,
) -> Slope | None:
    """Alpha or beta, for one part; None for fewer than three sizes, sizes too alike, or nothing that stands out.

    Args:
        sizes: (k,) bytes.
        healthy_seconds: (k,) time of a healthy message of its class.
        loss: (k,) log-effect of the part on the time.
        bounds: (2, k) 95 % interval of the loss.
        tail: (k,) the same log-effect on the slowest messages (p99), where known.
    """
    size, healthy, middle = (np.asarray(values, dtype=np.float64) for values in (sizes, healthy_seconds, loss))
    lower, upper = np.asarray(bounds, dtype=np.float64)
    known = np.isfinite(healthy) & np.isfinite(middle) & np.isfinite(lower) & np.isfinite(upper)
    size, healthy, middle = size[known], healthy[known], middle[known]
    if size.size < FEWEST_SIZES or size.max() < WIDEST * max(1.0, size.min()):
        return None
    extra = healthy * np.expm1(middle)
    error = healthy * (np.exp(upper[known]) - np.exp(lower[known])) / (2 * UNTIL_95)
    usual = _seconds_per_byte(size, healthy)
    fitted = _fit(size, extra, np.maximum(error, FINEST * healthy), WORTH * healthy)
    if fitted is None or (usual is None and fitted[1] > 0):
        return None
    alpha, beta = fitted
    long_tail = tail is not None and np.nanmedian(np.asarray(tail, dtype=np.float64)[known] - middle) > LONG_TAIL
    return Slope(
        "both" if alpha > 0 and beta > 0 else "alpha" if alpha > 0 else "beta",
        alpha,
        beta,
        1 + beta / usual if usual else 1.0,
        bool(long_tail),
    )


def _fit(size: Floats, extra: Floats, error: Floats, worth: Floats) -> tuple[float, float] | None:
    """Alpha and beta, 0 for the one that is not needed; None if neither is. Never below 0: parts are not faster."""
    line, step, slope = np.stack([np.ones_like(size), size], axis=1), np.ones((size.size, 1)), size[:, None]
    both, misfit = _line(line, extra, error)
    scale = max(1.0, misfit / max(1, size.size - 2))  # the errors may be larger than they look
    (alpha,), without_beta = _line(step, extra, error)
    (beta,), without_alpha = _line(slope, extra, error)
    visible = (both[0] > worth).any() and (both[1] * size > worth).any()
    if visible and min(without_alpha, without_beta) - misfit > NEEDED * scale:
        return float(both[0]), float(both[1])
    best, cost = ((alpha, 0.0), without_beta) if without_beta <= without_alpha else ((0.0, beta), without_alpha)
    scale = max(1.0, cost / max(1, size.size - 1))
    needed = _cost(extra / error) - cost > NEEDED * scale
    return (float(best[0]), float(best[1])) if needed and (line @ best > worth).any() else None


def _line(terms: Floats, extra: Floats, error: Floats) -> tuple[Floats, float]:
    """Coefficients and misfit by iterated least squares in which what lies far off has less say (Huber 1964)."""
    weight = np.ones_like(extra)
    scale = np.abs(terms).max(axis=0)
    design = terms / scale / error[:, None]
    for _ in range(PASSES):
        root = np.sqrt(weight)
        found = np.linalg.lstsq(design * root[:, None], extra / error * root, rcond=None)[0]
        off = np.abs(extra / error - design @ found)
        weight = np.minimum(1, BENDS_AT / np.maximum(off, BENDS_AT))
    return found / scale, _cost(off)


def _cost(off: Floats) -> float:
    """Squares of small misfits, in line with large ones."""
    off = np.abs(off)
    return float(np.where(off <= BENDS_AT, off**2, 2 * BENDS_AT * off - BENDS_AT**2).sum())


def _seconds_per_byte(size: Floats, healthy: Floats) -> float | None:
    """Of a healthy message, by the largest sizes: there the bytes take the time."""
    order = np.argsort(size)[-FEWEST_SIZES:]
    steps = np.diff(healthy[order]) / np.diff(size[order])
    slope = float(np.median(steps))
    return slope if slope > 0 else None
