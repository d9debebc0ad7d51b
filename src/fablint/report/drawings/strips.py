"""Charts over time: the pairs of a finding beside the rest."""

from __future__ import annotations

import numpy as np

from fablint.model import Row
from fablint.model.arrays import Codes, Mask, Values
from fablint.report.drawings.plots import HEIGHT, WIDTH, Plot, PlotLayer, band, dots, points
from fablint.report.drawings.scales import bulk_ends, position, ticks
from fablint.report.survey.measured_cells import MeasuredCells
from fablint.text import units

MOST_DOTS = 500  # of a finding
_BINS = 60
_OF_A_BAND = 150  # cells of a bin of a band: of fewer, some single measurements would be an end of the middle 90 %
_FEWEST = 5  # cells of a bin


def strip(
    row: Row,
    size: int,
    cells: MeasuredCells,
    mine: Mask,
    explained: Codes,
    late: np.ndarray | None = None,
) -> Plot | None:
    """The cells `mine` (k,) of a finding over time, against those that no finding explains; None without either.

    `explained` (k,) is negative where no finding explains a cell. `late` (k,) are shares of late messages, which are
    shown instead of the deviations.
    """
    known = np.isfinite(cells.residual) if late is None else np.isfinite(late)
    at, name = when(row, cells)
    if late is None:
        value = 100 * np.asarray(_changes(row, cells.residual), dtype=float)
        title = f"{row.quantity} against the model, {units.size(size)}"
    else:
        value, title = 100 * late, f"late messages, {units.size(size)}"
    own, rest = np.flatnonzero(known & mine), np.flatnonzero(known & (explained < 0))
    if not own.size or not rest.size or at is None:
        return None
    drawn = own[np.unique(np.linspace(0, own.size - 1, min(own.size, MOST_DOTS)).astype(int))]
    low, high = np.quantile(value[rest], (0.02, 0.98))
    least, first, last, most = np.quantile(value[own], (0.0, 0.1, 0.9, 1.0)).tolist()
    ends = bulk_ends(least, first, last, most, narrowest=high - low)
    y = ticks(min(low, ends[0], 0.0), max(high, ends[1], 0.0))
    x = np.linspace(at.min(), at.max(), 6).tolist()
    across, down = position(at[drawn], x, WIDTH), HEIGHT - position(value[drawn], y, HEIGHT)
    layers = _quantiles(at[rest], value[rest], x, y), dots("fault-mark", across, down)
    middle = np.median(value[own]), np.median(value[rest])
    figures = [percent_of(one) if late is None else f"{one:.1f} %" for one in middle]
    words = (
        f"{title}: median {figures[0]} of {units.plural(own.size, 'measurement')} of these pairs,"
        f" {figures[1]} of {rest.size:,} that no finding explains"
    )
    labels = tuple(f"{one:g} %" for one in reversed(y))
    return Plot(title, words, labels, time_labels(x, name), layers)


def percent_of(value: float) -> str:
    """A change with its sign and one decimal; nothing is `+0.0 %`."""
    return f"{round(value, 1) + 0.0:+.1f} %"


def _changes(row: Row, residual: np.ndarray) -> np.ndarray:
    """Relative change of the figure for logarithms of time ratios."""
    return np.asarray(np.expm1(-residual if units.is_rate(row.quantity) else residual))


def when(row: Row, cells: MeasuredCells) -> tuple[np.ndarray | None, str]:
    """(k,) when cells were measured: seconds since the first, or rounds; None where neither is known."""
    known = np.isfinite(cells.started)
    if known.all() and known.size and np.ptp(cells.started) > 0:
        return cells.started - cells.started.min(), "s"
    if row.layout == "list" and row.facts.schedule.order != "unknown" and cells.at[1].size and np.ptp(cells.at[1]):
        return cells.at[1].astype(float), "round"
    return None, ""


def time_labels(x: list[float], name: str) -> tuple[str, ...]:
    """Labels of an axis of times or rounds."""
    if name == "round":
        return tuple(f"round {one:.0f}" if index == 0 else f"{one:.0f}" for index, one in enumerate(x))
    return tuple(units.duration(one) if one else "0" for one in x)


def _quantiles(at: np.ndarray, value: np.ndarray, x: list[float], y: list[float]) -> PlotLayer:
    """Return the band of the middle 90 %."""
    bins = int(np.clip(value.size // _OF_A_BAND, 8, _BINS))
    place = np.minimum(position(at, x, bins), bins - 1)
    order = np.lexsort((value, place))
    count = np.bincount(place, minlength=bins)
    first = np.cumsum(count) - count
    used = np.flatnonzero(count >= min(_FEWEST, value.size))
    picks = [value[order[first[used] + (share * (count[used] - 1)).astype(int)]] for share in (0.05, 0.95)]
    low, high = (HEIGHT - position(one, y, HEIGHT) for one in picks)
    middle = np.rint((used + 0.5) * WIDTH / bins).astype(int)
    return band(middle, low, high)


def timeline(row: Row, size: int, cells: MeasuredCells, residual: Values) -> Plot | None:
    """Median and middle 90 % of the deviations (k,) of all pairs over time: drift and bursts.

    None where the times are unknown, or no part of the time has enough measurements for a median.
    """
    known = np.isfinite(residual)
    at, name = when(row, cells)
    if at is None or known.sum() < 10 * _FEWEST:
        return None
    at, value = at[known], 100 * _changes(row, residual[known])
    low, high = np.quantile(value, (0.04, 0.96))
    y, x = ticks(min(low, -1.0), max(high, 1.0)), np.linspace(at.min(), at.max(), 6).tolist()
    place = np.minimum(position(at, x, _BINS), _BINS - 1)
    bins = [np.flatnonzero(place == one) for one in range(_BINS)]
    used = [one for one in range(_BINS) if bins[one].size >= _FEWEST]
    if not used:
        return None
    medians = np.array([np.median(value[bins[one]]) for one in used])
    across = np.rint((np.array(used) + 0.5) * WIDTH / _BINS).astype(int)
    layers = [
        _quantiles(at, value, x, y),
        PlotLayer("line", "quiet", points(across, HEIGHT - position(medians, y, HEIGHT))),
    ]
    scatter = 1.4826 * float(np.median(np.abs(medians - np.median(medians))))
    bursts = np.flatnonzero(np.abs(medians - np.median(medians)) > max(6 * scatter, 1.0))
    if bursts.size:
        layers.append(dots("fault-mark", across[bursts], HEIGHT - position(medians[bursts], y, HEIGHT)))
    third = max(1, medians.size // 3)
    drift = float(np.median(medians[-third:]) - np.median(medians[:third]))
    words = f"{row.name}, {units.size(size)}: from the first third to the last {percent_of(drift)}" + (
        f", {units.plural(int(bursts.size), 'burst')} (red)" if bursts.size else ", no bursts"
    )
    labels = tuple(f"{one:g} %" for one in reversed(y))
    return Plot("over time", words, labels, time_labels(x, name), tuple(layers))
