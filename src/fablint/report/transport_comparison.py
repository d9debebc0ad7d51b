"""Rows that measured the same over several transports or memories, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fablint.model import Medium, Row
from fablint.report.conditions import conditions
from fablint.text import units

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """A figure as a multiple of that of the first medium; `low` and `high` are None with fewer than two blocks."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ComparedMedium:
    """What was measured over one medium, per size: seconds or bytes/s, and the ratio to the first medium."""

    medium: Medium
    rows: tuple[str, ...]
    rma: tuple[str, str]  # creation and synchronisation of its RMA windows
    figures: tuple[float | None, ...]
    ratios: tuple[Ratio | None, ...]


@dataclass(frozen=True)
class TransportComparison:
    """One measurement over several media; the first of them is the reference."""

    kernel: str
    condition: str  # of victims: alone or loaded; otherwise empty
    quantity: str
    sizes: tuple[int, ...]
    pairs: int
    blocks: int
    media: tuple[ComparedMedium, ...]

    @property
    def rma(self) -> tuple[tuple[str, str], ...]:
        """The windows of the media in their order, where these differ."""
        each = tuple(one.rma for one in self.media)
        return each if len({*each}) > 1 else ()

    @property
    def unit(self) -> str:
        """`us`, or `MB/s` (10^6 bytes/s)."""
        return "MB/s" if units.is_rate(self.quantity) else "us"

    def in_unit(self, figure: float | None) -> float | None:
        """Return a figure in the unit of the tables."""
        return figure and figure * (1e-6 if units.is_rate(self.quantity) else 1e6)


def are_compared(rows: Sequence[Row]) -> bool:
    """Return whether the rows are over several media, or blocks of one measurement over the only one that started."""
    workloads = {part.workload for row in rows for part in conditions(row)}
    return len({row.medium for row in rows}) > 1 or (len(rows) > 1 and len(workloads) == 1)


def transport_comparisons(rows: Sequence[Row], fewest: int = 2) -> list[TransportComparison]:
    """Return a comparison for each measurement that several of the rows did over at least `fewest` different media.

    The figure of a block (a row) is the geometric mean of its pairs, each with the median of its samples. The figure of
    a medium is the geometric mean of its blocks, its ratio the mean of the ratios of blocks with the same number, with
    the interval of Student's t distribution over these blocks.
    """
    tasks: dict[str, list[Row]] = {}
    for row in rows:
        for part in conditions(row) if row.statistic and not row.facts.schedule.retest_of else ():
            tasks.setdefault(part.task, []).append(replace(part, name=row.name))
    groups = (rows_by_medium for parts in tasks.values() for rows_by_medium in _by_medium(parts))
    return [_comparison(rows_by_medium) for rows_by_medium in groups if len(rows_by_medium) >= fewest]


def _by_medium(rows: Sequence[Row]) -> list[dict[Medium, list[Row]]]:
    """Return the rows of one task by their media; a group for each kind of RMA window where a medium has several."""
    rows_by_medium: dict[Medium, list[Row]] = {}
    for row in rows:
        rows_by_medium.setdefault(row.medium, []).append(row)
    if all(len({row.rma for row in medium_rows}) == 1 for medium_rows in rows_by_medium.values()):
        return [rows_by_medium]
    kinds = dict.fromkeys(row.rma for row in rows)
    return [group for kind in kinds for group in _by_medium([row for row in rows if row.rma == kind])]


def _comparison(rows_by_medium: dict[Medium, list[Row]]) -> TransportComparison:
    rows_by_medium = {medium: _measured(rows) for medium, rows in rows_by_medium.items()}
    blocks = min(map(len, rows_by_medium.values()))
    first = next(iter(rows_by_medium.values()))[0]
    log_figures = {medium: _log_figures(rows) for medium, rows in rows_by_medium.items()}
    reference = next(iter(log_figures.values()))
    media = tuple(
        ComparedMedium(
            medium,
            tuple(row.name for row in rows),
            rows[0].rma,
            tuple(_figure(values) for values in log_figures[medium].T),
            tuple(map(_ratio, (log_figures[medium][:blocks] - reference[:blocks]).T)),
        )
        for medium, rows in rows_by_medium.items()
    )
    condition = first.facts.condition
    return TransportComparison(first.kernel, condition, first.quantity, first.sizes, _pairs(first), blocks, media)


def _measured(rows: list[Row]) -> list[Row]:
    """Return the rows with figures, the first one where none has: the last block of an interrupted run has none."""
    return [row for row in rows if any(_is_measured(row, at).any() for at in range(len(row.sizes)))] or rows[:1]


def _pairs(row: Row) -> int:
    """Return the number of directed pairs that were measured, each once whatever its rounds or repeats."""
    is_measured = _is_measured(row, 0)
    if row.layout == "matrix":
        return int(np.count_nonzero(is_measured.any(axis=0)))
    src = np.nonzero(is_measured)[0]
    return len({*zip(src.tolist(), np.asarray(row.arrays["dst"][:])[is_measured].tolist(), strict=True)})


def _is_measured(row: Row, index: int) -> np.ndarray:
    """Return the mask of the cells of a size that were measured, of the shape of a statistic."""
    times = np.asarray(row.times[..., index], dtype=np.float64)
    return np.isfinite(times) & (times > 0)


def _log_figures(rows: Sequence[Row]) -> np.ndarray:
    """Return (blocks, sizes): the logarithm of the seconds, or of the bytes/s; NaN where nothing was measured."""
    log_figures = np.full((len(rows), len(rows[0].sizes)), np.nan)
    for block, row in enumerate(rows):
        for index, size in enumerate(row.sizes):
            times = np.asarray(row.times[..., index], dtype=np.float64)
            measured = times[_is_measured(row, index)]
            if not measured.size:
                continue
            log_time = float(np.log(measured).mean())
            moved = row.counted_bytes(size)
            if not units.is_rate(row.quantity):
                log_figures[block, index] = log_time
            elif moved:
                log_figures[block, index] = math.log(moved) - log_time
    return log_figures


def _figure(values: np.ndarray) -> float | None:
    finite_values = values[np.isfinite(values)]
    return float(np.exp(finite_values.mean())) if finite_values.size else None


def _ratio(values: np.ndarray) -> Ratio | None:
    from scipy.special import stdtrit

    finite_values = values[np.isfinite(values)]
    if not finite_values.size:
        return None
    mean = float(finite_values.mean())
    if finite_values.size < 2:
        return Ratio(math.exp(mean))
    half = (
        float(stdtrit(finite_values.size - 1, (1 + CONFIDENCE) / 2))
        * float(finite_values.std(ddof=1))
        / math.sqrt(finite_values.size)
    )
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half))
