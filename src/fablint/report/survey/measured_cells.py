"""The cells of one row and size as flat arrays: what matrices of switches, strip charts and tables are made of."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from fablint.model import SCOPES, Fit, Placement, Row
from fablint.model.arrays import Codes, Floats, Mask, Values

MOST_CELLS = 4_000_000  # of a matrix; of a larger one, every k-th receiver of each sender
_BLOCK = 1 << 24  # cells that are read at a time
_GOLDEN = 0.618  # shift of the receivers from one sender to the next, in steps: each block of pairs has its share


@dataclass(frozen=True)
class MeasuredCells:
    """Measured cells, each of (k,): repeats of a pair are several cells.

    `residual` is the logarithm of the time over the model's, NaN where there is no model.
    """

    src: Codes
    dst: Codes
    time: Values  # logarithm of seconds
    residual: Values
    started: Floats  # seconds since the run's start, NaN where it is not known
    at: tuple[Codes, ...]  # indices into the row's arrays, without the size
    complete: bool = True  # all cells of the row

    @classmethod
    def of(cls, row: Row, size: int, fit: Fit | None, placement: Placement) -> Self:
        """Read the measured cells of one size of a row; cells without a partner (collectives) are left out.

        Parameters
        ----------
        row
            Row of pairs, as matrix or as list.
        size
            Message size in bytes, one of the row's.
        fit
            Model of the healthy times; None: `residual` is NaN.
        placement
            Host and switch of each rank.

        Raises
        ------
        ValueError
            The row does not have this size.
        """
        times, index = row.times, row.sizes.index(size)
        started = row.arrays.get("started")
        step = 1
        if row.layout == "list":
            dst = np.asarray(row.arrays["dst"][:])
            value = np.asarray(times[:, :, index])
            at: tuple[np.ndarray, ...] = np.nonzero((value > 0) & (dst >= 0))
            src, partner, value = at[0], dst[at], value[at]
            begun = None if started is None else np.asarray(started[:])[at]
        else:
            step = math.ceil(times.shape[0] * times.shape[1] ** 2 / MOST_CELLS)
            blocks = list(_blocks_of_matrix(times, index, started, step))
            at = tuple(np.concatenate(one) for one in zip(*(block[0] for block in blocks), strict=True))
            _, src, partner = at
            value = np.concatenate([block[1] for block in blocks])
            begun = None if started is None else np.concatenate([block[2] for block in blocks])
        time = np.log(value).astype(np.float32)
        begun = np.full(time.size, np.nan) if begun is None else begun
        sender, receiver = (np.asarray(one, dtype=np.int32) for one in (src, partner))
        residual = time - model_log(fit, placement, sender, receiver)
        return cls(sender, receiver, time, residual, begun, tuple(one.astype(np.int32) for one in at), step == 1)

    def where(self, mask: Mask | Codes) -> Self:
        """The cells of a mask (k,), or of positions."""
        picked = {name: getattr(self, name)[mask] for name in ("src", "dst", "time", "residual", "started")}
        return replace(self, **picked, at=tuple(one[mask] for one in self.at))


def _blocks_of_matrix(
    times: Any, index: int, started: Any, step: int
) -> Iterator[tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray, np.ndarray]]:
    """Read the measured cells of a matrix in blocks of senders, of each sender every `step`-th receiver.

    Yields
    ------
    tuple
        Repeat, sender and receiver of the cells, their times, and when they were started; empty where it is not known.
    """
    repeats, ranks = times.shape[:2]
    most = max(1, _BLOCK // (repeats * ranks))
    shift = next(one for one in range(round(_GOLDEN * step), 2 * step + 1) if math.gcd(one, step) == 1)
    receiver = np.arange(ranks)
    for first in range(0, ranks, most):
        value = np.asarray(times[:, first : first + most, :, index])
        sender = np.arange(first, first + value.shape[1])[:, None]
        chosen = ((receiver + sender * shift) % step == 0) & (receiver != sender)
        repeat, line, partner = np.nonzero((value > 0) & chosen)
        begun = np.empty(0) if started is None else np.asarray(started[:, first : first + most])[repeat, line, partner]
        yield (repeat, first + line, partner), value[repeat, line, partner], begun


def model_log(fit: Fit | None, placement: Placement, src: np.ndarray, dst: np.ndarray) -> Values:
    """Logarithm of the time of pairs (k,) on a healthy fabric: scope, and what a healthy sender and receiver add."""
    if fit is None:
        return np.full(src.size, np.nan, dtype=np.float32)
    with np.errstate(all="ignore"):
        classes = np.log(np.array([fit.class_time.get(scope, np.nan) for scope in SCOPES], dtype=np.float32))
    tx, rx = (np.asarray(effect, dtype=np.float32) for effect in fit.healthy)
    return np.asarray(classes[placement.scopes(src, dst)] + tx[src] + rx[dst], dtype=np.float32)
