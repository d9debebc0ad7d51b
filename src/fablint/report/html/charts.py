"""Distributions and host effects, reduced to what the page draws as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fablint.model import Finding, Fit, Row, Run, Scope, State
from fablint.report import finding_order, run_facts
from fablint.report.survey.row_survey import SizeSurvey, counted
from fablint.report.survey.size_lines import FEWEST_PAIRS, SizeLine, size_line
from fablint.text import units

BINS = 72
_TICKS = 4  # distances between the labels of an axis
RANKED_HOSTS = 15
_BEYOND = 3.0  # the axis ends at so many medians; what is above stands in the last bin
_PAIRS_OF_EFFECT = 3  # measured pairs for each effect of a rank, from which the rest of the model is the scatter


@dataclass(frozen=True)
class Histogram:
    """Pairs of one scope over time. Heights are logarithms of the counts, 0..1: a single pair stays visible."""

    scope: Scope
    pairs: int
    heights: tuple[float, ...]
    counts: tuple[int, ...]
    labels: tuple[str, ...]  # figures at equal distances along the axis
    highest: int  # count of the highest bar
    clipped: bool  # does the last bin hold everything beyond the axis?


@dataclass(frozen=True)
class HostEffect:
    """What a host adds to its pairs, as relative change of the figure, with bar lengths from -1 to 1."""

    host: str
    tx: float
    rx: float
    tx_bar: float
    rx_bar: float
    explained: str = ""  # the findings that name the host


@dataclass(frozen=True)
class RowCharts:
    """What the page shows of one row."""

    name: str
    kernel: str
    unit: str  # what is counted
    size: str
    lines: tuple[SizeLine, ...]
    over_pairs: bool  # is there a distribution over pairs?
    histograms: tuple[Histogram, ...]
    hosts: tuple[HostEffect, ...]
    noise: float | None

    @classmethod
    def of(cls, run: Run, row: Row, surveys: Sequence[SizeSurvey], found: Sequence[Finding]) -> RowCharts:
        shown = next(one for one in surveys if one.size == run_facts.informative_size(row))
        fit = shown.fit
        return cls(
            name=row.name,
            kernel=row.kernel,
            unit=counted(row),
            size=units.size(shown.size),
            lines=tuple(size_line(one) for one in surveys),
            over_pairs=any(one.distribution.pairs() >= FEWEST_PAIRS for one in surveys),
            histograms=histograms(shown) if shown.distribution.pairs() >= FEWEST_PAIRS else (),
            hosts=host_effects(run, fit, found) if fit and _has_hosts_to_compare(run, shown) else (),
            noise=fit.noise if fit and _shows_scatter(fit, shown.distribution.pairs()) else None,
        )


def _has_hosts_to_compare(run: Run, shown: SizeSurvey) -> bool:
    return len(run.hosts) > 1 and shown.distribution.pairs() >= FEWEST_PAIRS


def _shows_scatter(fit: Fit, pairs: int) -> bool:
    """Whether what a model leaves of the pairs is their scatter: the effects of few ranks explain most of it."""
    return bool(np.isfinite(fit.noise)) and pairs >= _PAIRS_OF_EFFECT * (fit.tx.size + fit.rx.size)


def histograms(one: SizeSurvey) -> tuple[Histogram, ...]:
    """One histogram per scope, all on the same axis."""
    distribution = one.distribution
    if not distribution.pairs():
        return ()
    low, median, high = (distribution.quantile(share) for share in (0.0, 0.5, 1.0))
    end = min(high * 1.001, max(_BEYOND * median, distribution.quantile(0.9)))
    bins = _TICKS * int(np.clip(np.sqrt(distribution.pairs()) / 2, 3, BINS // _TICKS))
    edges = np.geomspace(low * 0.999, max(end, low * 1.01), bins + 1)
    labels = _with_one_unit([units.figure(one.row.quantity, one.size, float(at)) for at in edges[:: bins // _TICKS]])
    drawn = []
    for scope in distribution.scopes():
        counts = distribution.histogram(scope, edges)
        heights = np.log1p(counts) / np.log1p(counts.max())
        drawn.append(
            Histogram(
                scope=scope,
                pairs=distribution.pairs(scope),
                heights=tuple(round(float(height), 4) for height in heights),
                counts=tuple(int(count) for count in counts),
                labels=labels,
                highest=int(counts.max()),
                clipped=high > edges[-1],
            )
        )
    return tuple(drawn)


def _with_one_unit(labels: list[str]) -> tuple[str, ...]:
    """Labels of an axis; where all have the same unit, the first one keeps it."""
    words = [label.split(" ", 1) for label in labels]
    if any(len(one) < 2 or one[1] != words[0][1] for one in words):
        return tuple(labels)
    return labels[0], *(one[0] for one in words[1:])


def host_effects(run: Run, fit: Fit, found: Sequence[Finding] = ()) -> tuple[HostEffect, ...]:
    """The hosts with the largest effects, slowest first. A host with several ranks counts with its slowest."""
    host = np.asarray(run.attributes["rank_host"])
    quantity = run.row(fit.row).quantity
    slowest = np.full((2, len(run.hosts)), -np.inf)
    for side, effect in enumerate((fit.tx, fit.rx)):
        np.maximum.at(slowest[side], host, np.nan_to_num(np.asarray(effect, dtype=float), nan=-np.inf))
    slowest[np.isneginf(slowest)] = 0.0
    ranked = np.argsort(-slowest.max(axis=0), kind="stable")[:RANKED_HOSTS]
    noise = 4 * fit.noise if np.isfinite(fit.noise) else 0.0  # effects within the noise draw short bars
    longest = max(float(np.abs(slowest[:, ranked]).max(initial=0.0)), noise, 0.02)
    known = [one for one in finding_order.faulty(found) if _explains(one, fit.row)]
    return tuple(
        HostEffect(
            host=run.hosts[index],
            tx=units.change(quantity, float(slowest[0, index])),
            rx=units.change(quantity, float(slowest[1, index])),
            tx_bar=round(float(slowest[0, index]) / longest, 4),
            rx_bar=round(float(slowest[1, index]) / longest, 4),
            explained=", ".join(
                f"{one.state} {finding_order.subject(one)}" for one in known if run.hosts[index] in one.hosts
            ),
        )
        for index in ranked
    )


def _explains(finding: Finding, row: str) -> bool:
    """Whether a finding explains effects in a row: it was seen in this row, or not by measurements of pairs."""
    rows = {one.row for one in finding.evidence if one.row}
    return finding.state is not State.NOT_JUDGED and (not rows or row in rows)
