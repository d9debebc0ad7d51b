"""Figures of a row, size by size: what the page and the PDF have as a table."""

from __future__ import annotations

from dataclasses import dataclass

from fablint.model import Row
from fablint.model.figures.percentiles import Statistic, stored_percentiles
from fablint.report import run_facts
from fablint.report.survey.row_survey import SizeSurvey
from fablint.text import units

FEWEST_PAIRS = 3  # of a distribution
_EXTREMES = {0.0: "fastest", 50.0: "median", 100.0: "slowest"}


@dataclass(frozen=True)
class SizeLine:
    """Figures of one size over all pairs; `p99` is the slow end, both for times and for bandwidths."""

    size: str
    pairs: int
    best: str
    median: str
    p99: str
    worst: str
    messages: tuple[tuple[str, str], ...]  # statistics of the messages of a pair, the median over pairs


def _of_messages(row: Row) -> dict[Statistic, str]:
    """What a row stores of the messages of a pair, and its label: percentiles in order, the mean at the median."""
    found = [(at, of, _EXTREMES.get(at, f"P{at:g}")) for at, of in stored_percentiles(row).items()]
    found += [(50.0, "mean", "mean")] if "mean" in row.statistics else []
    return {of: label for _, of, label in sorted(found, key=lambda one: one[0])}


def size_line(one: SizeSurvey) -> SizeLine:
    """Return the figures of a size of a row; of few pairs also the mean and the extremes of their messages."""
    distribution, row = one.distribution, one.row
    quantiles = (distribution.quantile(share) for share in (0.0, 0.5, 0.99, 1.0))
    several = distribution.pairs() >= FEWEST_PAIRS
    shown = {of: label for of, label in _of_messages(row).items() if label.startswith("P") or not several}
    times = {label: run_facts.sampled_median(row, one.size, of) for of, label in shown.items()}
    messages = tuple(
        (f"{label} of messages", "–" if time is None else units.figure(row, one.size, time))
        for label, time in times.items()
    )
    best, median, p99, worst = (units.figure(row, one.size, time) for time in quantiles)
    return SizeLine(units.size(one.size), distribution.pairs(), best, median, p99, worst, messages)
