"""A matrix of ranks x ranks as pixels: the slowest pair of each cell, as measured and against the fitted model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fablint.model import SCOPES, Fit, Placement, Row
from fablint.report.survey.row_survey import blocks

EDGE = 800  # cells a side at most: more than a printed page resolves
FEWEST = 64  # cells a side at least, where there are so many ranks

_NOT_MEASURED = (0.88, 0.88, 0.88)
_SEQUENTIAL = ((0.27, 0.0, 0.33), (0.13, 0.57, 0.55), (0.99, 0.91, 0.15))  # short to long times
_DIVERGING = ((0.13, 0.40, 0.67), (0.97, 0.97, 0.97), (0.70, 0.09, 0.17))  # faster, as the model, slower


@dataclass(frozen=True)
class DrawnMatrix:
    """Logarithms of times of one size of a row, NaN where nothing was measured: (cells, cells) float32.

    Lines are senders, columns receivers, both in `order` (ranks) with `side` ranks to a cell.
    """

    order: np.ndarray
    side: int
    log_time: np.ndarray
    deviation: np.ndarray | None  # log of the time over that of a healthy pair; None without a model


def drawn_matrix(row: Row, size: int, fit: Fit | None, placement: Placement, order: np.ndarray) -> DrawnMatrix:
    """Read one size of a row, in blocks; of a list of pairs all rounds together.

    Few rounds measure a small share of all pairs: a cell then has as many ranks as make a measured pair probable.
    """
    ranks = len(order)
    rounds = row.arrays["dst"].shape[1] if row.layout == "list" else ranks
    sparse = math.ceil(math.sqrt(ranks / max(1, rounds)))
    side = max(-(-ranks // EDGE), min(sparse, max(1, ranks // FEWEST)))
    cells = -(-ranks // side)
    cell = np.empty(ranks, np.int64)
    cell[order] = np.arange(ranks) // side
    index = row.sizes.index(size)
    worst = [np.full(cells * cells, -np.inf, np.float32) for _ in range(2 if fit else 1)]
    for block in blocks(row):
        log_time = block.log_time[:, :, index]
        dst = np.broadcast_to(block.dst, log_time.shape)
        measured = np.isfinite(log_time) & (dst >= 0)
        src = np.broadcast_to(block.src[:, None], log_time.shape)[measured]
        dst, times = dst[measured], log_time[measured]
        place = cell[src] * cells + cell[dst]
        np.maximum.at(worst[0], place, times)
        if fit is not None:
            expected = np.array([fit.class_time.get(scope, np.nan) for scope in SCOPES], np.float32)
            tx, rx = (np.asarray(effect, np.float32) for effect in fit.healthy)
            with np.errstate(all="ignore"):
                residual = times - np.log(expected)[placement.scopes(src, dst)] - tx[src] - rx[dst]
            np.maximum.at(worst[1], place, np.nan_to_num(residual, nan=-np.inf))
    maps = [np.where(np.isfinite(values), values, np.nan).reshape(cells, cells) for values in worst]
    return DrawnMatrix(order, side, maps[0], maps[1] if fit else None)


def sequential_pixels(log_time: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """Colours of times, (n, n, 3) uint8, and the times in seconds at both ends: the bulk, not single spikes."""
    known = log_time[np.isfinite(log_time)]
    low, middle, high = np.quantile(known, (0.005, 0.5, 0.995)) if known.size else (-1.0, 0.0, 1.0)
    high = max(high, middle + np.log(1.05))
    return _pixels((log_time - low) / (high - low), _SEQUENTIAL), (float(np.exp(low)), float(np.exp(high)))


def diverging_pixels(deviation: np.ndarray, scale: float) -> np.ndarray:
    """Colours of deviations from -`scale` to `scale`, (n, n, 3) uint8."""
    return _pixels(0.5 + 0.5 * deviation / scale, _DIVERGING)


def ramp_pixels(length: int, *, is_diverging: bool) -> np.ndarray:
    """Colours of a scale from its low end to its high end, (1, length, 3) uint8."""
    return _pixels(np.linspace(0.0, 1.0, length)[None], _DIVERGING if is_diverging else _SEQUENTIAL)


def _pixels(share: np.ndarray, stops: tuple[tuple[float, float, float], ...]) -> np.ndarray:
    places = np.linspace(0.0, 1.0, len(stops))
    known = np.clip(np.nan_to_num(share, nan=0.0), 0.0, 1.0)
    channels = [np.interp(known, places, [stop[channel] for stop in stops]) for channel in range(3)]
    colours = np.stack(channels, axis=-1)
    colours[np.isnan(share)] = _NOT_MEASURED
    return np.asarray(np.rint(255 * colours), dtype=np.uint8)
