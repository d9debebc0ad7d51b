"""Figures of a row, size by size: what the page and the PDF have as a table."""

from __future__ import annotations

from dataclasses import dataclass

from fablint.model import Row
from fablint.model.figures.percentiles import Statistic, stored_percentiles
from fablint.report import run_facts
from fablint.report.group_rates import group_figures
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
    # Rates of all ranks together; statistics of the messages of a pair, the median over pairs.
    messages: tuple[tuple[str, str], ...]


def _of_messages(row: Row) -> dict[Statistic, str]:
    """Return what a row stores of the messages of a pair, and its label: percentiles in order, the mean at the
    median.
    """
    statistics = [(at, statistic, _EXTREMES.get(at, f"P{at:g}")) for at, statistic in stored_percentiles(row).items()]
    statistics += [(50.0, "mean", "mean")] if "mean" in row.statistics else []
    return {statistic: label for _, statistic, label in sorted(statistics, key=lambda one: one[0])}


def size_line(size_survey: SizeSurvey) -> SizeLine:
    """Return the figures of a size of a row; of few pairs also the mean and the extremes of their messages."""
    distribution, row = size_survey.distribution, size_survey.row
    quantiles = (distribution.quantile(share) for share in (0.0, 0.5, 0.99, 1.0))
    several = distribution.pairs() >= FEWEST_PAIRS
    shown = {statistic: label for statistic, label in _of_messages(row).items() if label.startswith("P") or not several}
    if group := group_figures(row, size_survey.size, run_facts.sampled_median(row, size_survey.size)):
        shown = {statistic: label for statistic, label in shown.items() if label != "mean"}
    times = {label: run_facts.sampled_median(row, size_survey.size, statistic) for statistic, label in shown.items()}
    messages = tuple(group.items()) + tuple(
        (f"{label} of messages", "–" if time is None else units.figure(row, size_survey.size, time))
        for label, time in times.items()
    )
    best, median, p99, worst = (units.figure(row, size_survey.size, time) for time in quantiles)
    return SizeLine(units.size(size_survey.size), distribution.pairs(), best, median, p99, worst, messages)
