"""Distributions and host effects, reduced to what the page draws as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fablint.model import Finding, Fit, Row, Run, State
from fablint.report import finding_order, run_facts
from fablint.report.drawings.histograms import Histogram, histograms
from fablint.report.survey.row_survey import SizeSurvey, counted
from fablint.report.survey.size_lines import FEWEST_PAIRS, SizeLine, size_line
from fablint.text import units

BINS = 72
STEPS = 4  # distances between the labels of an axis
RANKED_HOSTS = 15
_LEAST = 0.01  # of the logarithm, that a host differs from the others
_PAIRS_OF_EFFECT = 3  # measured pairs for each effect of a rank, from which the rest of the model is the scatter


@dataclass(frozen=True)
class HostEffect:
    """What a host adds to its pairs, as relative change of the figure, with bar lengths from -1 to 1."""

    host: str
    tx: float
    rx: float
    tx_bar: float
    rx_bar: float
    explained: str = ""  # the findings that name the host
    is_beyond_noise: bool = True


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
    hosts: tuple[HostEffect, ...]  # beyond the noise, or named by a finding
    usual: HostEffect | None  # the largest effect, where no host has one beyond the noise
    noise: float | None

    @classmethod
    def of(cls, run: Run, row: Row, surveys: Sequence[SizeSurvey], findings: Sequence[Finding]) -> RowCharts:
        shown = next(one for one in surveys if one.size == run_facts.informative_size(row))
        fit, pairs = shown.fit, shown.distribution.pairs()
        effects = host_effects(run, fit, pairs, findings) if fit and _has_hosts_to_compare(run, shown) else ()
        hosts = tuple(effect for effect in effects if effect.is_beyond_noise or effect.explained)
        return cls(
            name=row.name,
            kernel=row.kernel,
            unit=counted(row),
            size=units.size(shown.size),
            lines=tuple(size_line(one) for one in surveys),
            over_pairs=any(one.distribution.pairs() >= FEWEST_PAIRS for one in surveys),
            histograms=histograms(shown, _bins(pairs), STEPS) if pairs >= FEWEST_PAIRS else (),
            hosts=hosts,
            usual=effects[0] if effects and not hosts else None,
            noise=fit.noise if fit and _shows_scatter(fit, pairs) else None,
        )


def _has_hosts_to_compare(run: Run, shown: SizeSurvey) -> bool:
    return len(run.hosts) > 1 and shown.distribution.pairs() >= FEWEST_PAIRS


def _shows_scatter(fit: Fit, pairs: int) -> bool:
    """Tell whether what a model leaves of the pairs is their scatter: the effects of few ranks explain most of it."""
    return bool(np.isfinite(fit.noise)) and pairs >= _PAIRS_OF_EFFECT * (fit.tx.size + fit.rx.size)


def _bins(pairs: int) -> int:
    return STEPS * int(np.clip(np.sqrt(pairs) / 2, 3, BINS // STEPS))


def host_effects(run: Run, fit: Fit, pairs: int, findings: Sequence[Finding] = ()) -> tuple[HostEffect, ...]:
    """The hosts with the largest effects, slowest first. A host with several ranks counts with its slowest.

    The noise of an effect is that of the `pairs` that were measured, and the spread of the hosts.
    """
    host = np.asarray(run.facts.rank_host)
    quantity = run.row(fit.row).quantity
    slowest = np.full((2, len(run.hosts)), -np.inf)
    for side, effect in enumerate((fit.tx, fit.rx)):
        np.maximum.at(slowest[side], host, np.nan_to_num(np.asarray(effect, dtype=float), nan=-np.inf))
    slowest[np.isneginf(slowest)] = 0.0
    ranked = np.argsort(-slowest.max(axis=0), kind="stable")[:RANKED_HOSTS]
    noise = 4 * fit.noise if np.isfinite(fit.noise) else 0.0  # effects within the noise draw short bars
    longest = max(float(np.abs(slowest[:, ranked]).max(initial=0.0)), noise, 0.02)
    limit = max(_beyond_spread(slowest.max(axis=0)), noise * np.sqrt(run.ranks / pairs))
    explanations = [one for one in finding_order.faulty(findings) if _explains(one, fit.row)]
    return tuple(
        HostEffect(
            host=run.hosts[index],
            tx=units.change(quantity, float(slowest[0, index])),
            rx=units.change(quantity, float(slowest[1, index])),
            tx_bar=round(float(slowest[0, index]) / longest, 4),
            rx_bar=round(float(slowest[1, index]) / longest, 4),
            explained=", ".join(
                f"{finding.state} {finding_order.subject(finding)}"
                for finding in explanations
                if run.hosts[index] in finding.hosts
            ),
            is_beyond_noise=bool(slowest[:, index].max() > limit),
        )
        for index in ranked
    )


def _beyond_spread(effects: np.ndarray) -> float:
    """Return the effect beyond which a host differs from the others: three robust standard deviations."""
    middle = float(np.median(effects))
    return middle + max(3 * 1.4826 * float(np.median(np.abs(effects - middle))), _LEAST)


def _explains(finding: Finding, row: str) -> bool:
    """Tell whether a finding explains effects in a row: it was seen in this row, or not by measurements of pairs."""
    rows = {one.row for one in finding.evidence if one.row}
    return finding.state is not State.NOT_JUDGED and (not rows or row in rows)
