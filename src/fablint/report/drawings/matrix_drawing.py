"""Matrices of pairs as pixels, with names of hosts at the axes and words at their scale of colours."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fablint.model import Fit, Placement, Row
from fablint.report.drawings.palette import DIVERGING, NOT_MEASURED, SEQUENTIAL, Stops
from fablint.report.survey.drawn_matrix import DrawnMatrix
from fablint.text import units

_MOST_LABELS = 32


@dataclass(frozen=True)
class ColourScale:
    """Pixels of a matrix, (n, n, 3) uint8, and the words at the ends and the middle of its scale."""

    pixels: np.ndarray
    ends: tuple[str, str, str]
    is_diverging: bool


def colour_scales(row: Row, size: int, fit: Fit | None, matrix: DrawnMatrix) -> list[ColourScale]:
    """The matrix as measured and, with a model, as deviation from it."""
    quantity = row.quantity
    pixels, (low, high) = sequential_pixels(matrix.log_time)
    words = (units.figure(row, size, low), "as measured", units.figure(row, size, high))
    scales = [ColourScale(pixels, words, False)]
    if matrix.deviation is not None and np.isfinite(matrix.deviation).any():
        noise = fit.noise if fit is not None and np.isfinite(fit.noise) else 0.05
        scale = float(max(0.02, min(1.0, 8 * noise)))
        faster, slower = (units.percent(units.change(quantity, sign * scale)) for sign in (-1, 1))
        words = (f"{quantity} {faster}", "against healthy pairs", f"{quantity} {slower}")
        scales.append(ColourScale(diverging_pixels(matrix.deviation, scale), words, True))
    return scales


class AxisLabel(NamedTuple):
    """Name of a host at a place (0..1) of an axis, and whether a finding names it."""

    place: float
    name: str
    is_named: bool


def axis_labels(placement: Placement, matrix: DrawnMatrix, named: Collection[str]) -> list[AxisLabel]:
    """Labels of hosts beside an axis: those `named` by findings, then as many others as have room."""
    names = [placement.hosts[host] for host in placement.host[matrix.order]]
    return labels_of(names, matrix.side * len(matrix.log_time), named)


def labels_of(names: Sequence[str], places: int, named: Collection[str]) -> list[AxisLabel]:
    """Labels of an axis with a name at each of the first of its `places`; equal names that are adjacent share one."""
    starts = [at for at, name in enumerate(names) if not at or names[at - 1] != name]
    step = -(-len(starts) // _MOST_LABELS)
    last = [*starts[1:], len(names)]
    named_starts = [index for index, at in enumerate(starts) if names[at] in named]
    labels: list[AxisLabel] = []
    for index in [*named_starts, *range(0, len(starts), step)]:
        middle = (starts[index] + last[index]) / 2 if step == 1 else starts[index] + 0.5
        place = middle / places
        if all(abs(place - other.place) > 0.7 / _MOST_LABELS for other in labels):
            labels.append(AxisLabel(place, names[starts[index]], names[starts[index]] in named))
    return labels


def sequential_pixels(log_time: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """Colours of times, (n, n, 3) uint8, and the times in seconds at both ends: the bulk, not single spikes."""
    finite_times = log_time[np.isfinite(log_time)]
    low, middle, high = np.quantile(finite_times, (0.005, 0.5, 0.995)) if finite_times.size else (-1.0, 0.0, 1.0)
    high = max(high, middle + np.log(1.05))
    return _pixels((log_time - low) / (high - low), SEQUENTIAL), (float(np.exp(low)), float(np.exp(high)))


def diverging_pixels(deviation: np.ndarray, scale: float) -> np.ndarray:
    """Colours of deviations from -`scale` to `scale`, (n, n, 3) uint8."""
    return _pixels(0.5 + 0.5 * deviation / scale, DIVERGING)


def ramp_pixels(length: int, *, is_diverging: bool) -> np.ndarray:
    """Colours of a scale from its low end to its high end, (1, length, 3) uint8."""
    return _pixels(np.linspace(0.0, 1.0, length)[None], DIVERGING if is_diverging else SEQUENTIAL)


def _pixels(share: np.ndarray, stops: Stops) -> np.ndarray:
    places = np.linspace(0.0, 1.0, len(stops))
    clipped_share = np.clip(np.nan_to_num(share, nan=0.0), 0.0, 1.0)
    channels = [np.interp(clipped_share, places, [stop[channel] for stop in stops]) for channel in range(3)]
    colours = np.stack(channels, axis=-1)
    colours[np.isnan(share)] = NOT_MEASURED
    return np.asarray(np.rint(255 * colours), dtype=np.uint8)
