"""The cells of one row and size as flat arrays: what matrices of switches, strip charts and tables are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from fablint.model import SCOPES, Fit, Placement, Row
from fablint.report import run_facts

MOST_CELLS = 4_000_000  # of a matrix; of a larger one, source ranks at equal distances stand for all


@dataclass(frozen=True)
class MeasuredCells:
    """Measured cells, each of (k,): repeats of a pair are several cells.

    `residual` is the logarithm of the time over the model's, NaN where there is no model.
    """

    src: npt.NDArray[np.int32]
    dst: npt.NDArray[np.int32]
    time: npt.NDArray[np.float32]  # logarithm of seconds
    residual: npt.NDArray[np.float32]
    started: npt.NDArray[np.float64]  # seconds since the run's start, NaN where it is not known
    at: tuple[npt.NDArray[np.int32], ...]  # indices into the row's arrays, without the size
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
        times, index = row.arrays[f"time_{run_facts.statistic(row)}"], row.sizes.index(size)
        if row.layout == "list":
            dst = np.asarray(row.arrays["dst"][:])
            value = np.asarray(times[:, :, index])
            rank, column = np.nonzero((value > 0) & (dst >= 0))
            at: tuple[np.ndarray, ...] = (rank, column)
            src, partner, step = rank, dst[at], 1
        else:
            repeats, ranks = times.shape[:2]
            step = math.ceil(repeats * ranks * ranks / MOST_CELLS)
            value = np.asarray(times[:, ::step, :, index])
            repeat, line, partner = np.nonzero((value > 0) & (np.arange(ranks) != np.arange(0, ranks, step)[:, None]))
            src, at = line * step, (repeat, line, partner)
        time = np.log(value[at]).astype(np.float32)
        started = row.arrays.get("started")
        begun = np.full(time.size, np.nan)
        if started is not None:
            begun = np.asarray(started[:] if row.layout == "list" else started[:, ::step])[at]
        sender, receiver = (np.asarray(one, dtype=np.int32) for one in (src, partner))
        at = (at[0], sender, receiver) if row.layout == "matrix" else at
        residual = time - model_log(fit, placement, sender, receiver)
        return cls(sender, receiver, time, residual, begun, tuple(one.astype(np.int32) for one in at), step == 1)

    def where(self, mask: npt.NDArray[np.bool_] | npt.NDArray[np.integer]) -> Self:
        """The cells of a mask (k,), or of positions."""
        picked = {name: getattr(self, name)[mask] for name in ("src", "dst", "time", "residual", "started")}
        return replace(self, **picked, at=tuple(one[mask] for one in self.at))


def model_log(fit: Fit | None, placement: Placement, src: np.ndarray, dst: np.ndarray) -> npt.NDArray[np.float32]:
    """Logarithm of the time of pairs (k,) on a healthy fabric: scope, and what a healthy sender and receiver add."""
    if fit is None:
        return np.full(src.size, np.nan, dtype=np.float32)
    with np.errstate(all="ignore"):
        classes = np.log(np.array([fit.class_time.get(scope, np.nan) for scope in SCOPES], dtype=np.float32))
    tx, rx = (np.asarray(effect, dtype=np.float32) for effect in fit.healthy)
    return np.asarray(classes[placement.scopes(src, dst)] + tx[src] + rx[dst], dtype=np.float32)
