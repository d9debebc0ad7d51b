"""Charts over time: the pairs of a finding beside the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fablint.model import Row
from fablint.model.arrays import Codes, Floats, Mask, Values
from fablint.model.figures.grouped_values import GroupedValues
from fablint.report.drawings.plots import HEIGHT, WIDTH, Plot, PlotLayer, band, dots, points
from fablint.report.drawings.scales import bulk_ends, position, ticks
from fablint.report.survey.measured_cells import MeasuredCells
from fablint.text import units

MOST_DOTS = 500  # of a finding
_BINS = 60
_OF_A_BAND = 150  # cells of a bin of a band: of fewer, some single measurements would be an end of the middle 90 %
_FEWEST = 5  # cells of a bin


@dataclass(frozen=True)
class Background:
    """The cells of a row that no finding explains: what each finding of the row is compared with."""

    row: Row
    size: int
    is_late: bool  # are the values shares of late messages, and not deviations?
    at: Floats  # (k,) when each cell of the row was measured, explained or not
    x: list[float]  # labels of the axis of time
    unit_of_time: str
    value: Floats  # (k,) percent, NaN where unknown
    cells: int
    median: float
    bulk: tuple[float, float]  # ends of the middle 96 %
    bands: tuple[Codes, Floats, Floats]  # places of the middle 90 % on the axis, its lower and its upper ends

    @classmethod
    def of(
        cls, row: Row, size: int, cells: MeasuredCells, explained: Codes, late: Values | None = None
    ) -> Background | None:
        """Return the background of a row; None where no such cell is known, or not when it was measured.

        `explained` (k,) is negative where no finding explains a cell. `late` (k,) are shares of late messages, which
        are shown instead of the deviations.
        """
        value = 100 * np.asarray(_changes(row, cells.residual) if late is None else late, dtype=float)
        at, unit_of_time = when(row, cells)
        rest = np.flatnonzero(np.isfinite(value) & (explained < 0))
        if not rest.size or at is None:
            return None
        x = np.linspace(at.min(), at.max(), 6).tolist()
        low, median, high = np.quantile(value[rest], (0.02, 0.5, 0.98)).tolist()
        bands = _bands(at[rest], value[rest], x)
        return cls(row, size, late is not None, at, x, unit_of_time, value, rest.size, median, (low, high), bands)


def strip(background: Background, is_of_finding: Mask) -> Plot | None:
    """The cells `is_of_finding` (k,) over time, against those that no finding explains; None without any."""
    row, at, value, x = background.row, background.at, background.value, background.x
    finding_cells = np.flatnonzero(np.isfinite(value) & is_of_finding)
    if not finding_cells.size:
        return None
    drawn = finding_cells[
        np.unique(np.linspace(0, finding_cells.size - 1, min(finding_cells.size, MOST_DOTS)).astype(int))
    ]
    low, high = background.bulk
    least, first, last, most = np.quantile(value[finding_cells], (0.0, 0.1, 0.9, 1.0)).tolist()
    ends = bulk_ends(least, first, last, most, narrowest=high - low)
    y = ticks(min(low, ends[0], 0.0), max(high, ends[1], 0.0))
    across, down = position(at[drawn], x, WIDTH), HEIGHT - position(value[drawn], y, HEIGHT)
    layers = _band_layer(background.bands, y), dots("fault-mark", across, down)
    middle = float(np.median(value[finding_cells])), background.median
    figures = [f"{one:.1f} %" if background.is_late else percent_of(one) for one in middle]
    shown = "late messages" if background.is_late else f"{row.quantity} against the model"
    title = f"{shown}, {units.size(background.size)}"
    words = (
        f"{title}: median {figures[0]} of {units.plural(finding_cells.size, 'measurement')} of these pairs,"
        f" {figures[1]} of {background.cells:,} that no finding explains"
    )
    labels = tuple(f"{one:g} %" for one in reversed(y))
    return Plot(title, words, labels, time_labels(x, background.unit_of_time), layers)


def percent_of(value: float) -> str:
    """A change with its sign and one decimal; nothing is `+0.0 %`."""
    return f"{round(value, 1) + 0.0:+.1f} %"


def _changes(row: Row, residual: np.ndarray) -> np.ndarray:
    """Relative change of the figure for logarithms of time ratios."""
    return np.asarray(np.expm1(-residual if units.is_rate(row.quantity) else residual))


def when(row: Row, cells: MeasuredCells) -> tuple[np.ndarray | None, str]:
    """(k,) when cells were measured: seconds since the first, or rounds; None where neither is known."""
    has_moment = np.isfinite(cells.started)
    if has_moment.all() and has_moment.size and np.ptp(cells.started) > 0:
        return cells.started - cells.started.min(), "s"
    if row.layout == "list" and row.facts.schedule.order != "unknown" and cells.at[1].size and np.ptp(cells.at[1]):
        return cells.at[1].astype(float), "round"
    return None, ""


def time_labels(x: list[float], name: str) -> tuple[str, ...]:
    """Labels of an axis of times or rounds."""
    if name == "round":
        return tuple(f"round {one:.0f}" if index == 0 else f"{one:.0f}" for index, one in enumerate(x))
    return tuple(units.duration(one) if one else "0" for one in x)


def _bands(at: np.ndarray, value: np.ndarray, x: list[float]) -> tuple[Codes, Floats, Floats]:
    """Return places on the axis of time, and the ends of the middle 90 % of the values there."""
    bins = int(np.clip(value.size // _OF_A_BAND, 8, _BINS))
    groups = GroupedValues.of(value, np.minimum(position(at, x, bins), bins - 1), bins)
    used = np.flatnonzero(groups.count >= min(_FEWEST, value.size))
    low, high = (groups.at((share * (groups.count - 1)).astype(int))[used] for share in (0.05, 0.95))
    return np.rint((used + 0.5) * WIDTH / bins).astype(int), low, high


def _band_layer(bands: tuple[Codes, Floats, Floats], y: list[float]) -> PlotLayer:
    across, low, high = bands
    return band(across, HEIGHT - position(low, y, HEIGHT), HEIGHT - position(high, y, HEIGHT))


def timeline(row: Row, size: int, cells: MeasuredCells, residual: Values) -> Plot | None:
    """Median and middle 90 % of the deviations (k,) of all pairs over time: drift and bursts.

    None where the times are unknown, or no part of the time has enough measurements for a median.
    """
    is_finite = np.isfinite(residual)
    at, name = when(row, cells)
    if at is None or is_finite.sum() < 10 * _FEWEST:
        return None
    at, value = at[is_finite], 100 * _changes(row, residual[is_finite])
    low, high = np.quantile(value, (0.04, 0.96))
    y, x = ticks(min(low, -1.0), max(high, 1.0)), np.linspace(at.min(), at.max(), 6).tolist()
    bin_medians = GroupedValues.of(value, np.minimum(position(at, x, _BINS), _BINS - 1), _BINS).medians(_FEWEST)
    used = np.flatnonzero(np.isfinite(bin_medians))
    if not used.size:
        return None
    medians = bin_medians[used]
    across = np.rint((used + 0.5) * WIDTH / _BINS).astype(int)
    layers = [
        _band_layer(_bands(at, value, x), y),
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
