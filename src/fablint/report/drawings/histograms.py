"""Histograms of the pairs of a row and size, one for each scope, all on the same axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fablint.model import Scope
from fablint.report.scopes import HEADINGS
from fablint.report.survey.row_survey import SizeSurvey, counted
from fablint.text import units

_BEYOND = 3.0  # the axis ends at so many medians; what is above stands in the last bin


@dataclass(frozen=True)
class Histogram:
    """Pairs of one scope over time. Heights are logarithms of the counts, 0..1: a single pair stays visible."""

    scope: Scope
    unit: str  # what is counted
    pairs: int
    counts: tuple[int, ...]
    heights: tuple[float, ...]
    labels: tuple[str, ...]  # figures at equal distances along the axis
    is_clipped: bool  # does the last bin hold everything beyond the axis?

    @property
    def bare_labels(self) -> tuple[str, ...]:
        """The labels; where all have the same unit, the first one keeps it."""
        figures, labels_units = zip(*(label.rpartition(" ")[::2] for label in self.labels), strict=True)
        return (self.labels[0], *figures[1:]) if len({*labels_units}) == 1 else self.labels

    @property
    def title(self) -> str:
        """Scope and counts."""
        pairs = units.plural(self.pairs, self.unit)
        return f"{HEADINGS.get(self.scope, self.scope)}: {pairs}, highest bar {max(self.counts):,} (log)"


def histograms(size_survey: SizeSurvey, bins: int = 48, steps: int = 1) -> tuple[Histogram, ...]:
    """Count the pairs in `bins`; the labels of the axis divide it into `steps`."""
    distribution = size_survey.distribution
    if not distribution.pairs():
        return ()
    low, median, high = (distribution.quantile(share) for share in (0.0, 0.5, 1.0))
    end = min(high * 1.001, max(_BEYOND * median, distribution.quantile(0.9)))
    edges = np.geomspace(low * 0.999, max(end, low * 1.01), bins + 1)
    labels = tuple(units.figure(size_survey.row, size_survey.size, float(at)) for at in edges[:: bins // steps])
    drawn, unit = [], counted(size_survey.row)
    for scope in distribution.scopes():
        counts = distribution.histogram(scope, edges)
        heights = np.log1p(counts) / np.log1p(counts.max())
        whole = tuple(int(count) for count in counts)
        pairs = distribution.pairs(scope)
        is_clipped = high > edges[-1]
        drawn.append(Histogram(scope, unit, pairs, whole, tuple(heights.tolist()), labels, is_clipped))
    return tuple(drawn)
