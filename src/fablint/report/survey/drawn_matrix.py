"""A matrix of ranks x ranks as it is drawn: the slowest pair of each cell, as measured and against the fitted model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fablint.model import SCOPES, Fit, Placement, Row
from fablint.report.survey.row_survey import blocks

EDGE = 800  # cells a side at most: more than a printed page resolves
FEWEST = 64  # cells a side at least, where there are so many ranks


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
