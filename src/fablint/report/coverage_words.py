"""How much was measured and judged, in words: the same in text, page and PDF. Its unit is that of `Coverage`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fablint.model import Run, State, Verdict
from fablint.report import finding_order
from fablint.report.summary import measurements_of_run
from fablint.report.survey.report_source import ReportSource
from fablint.text import evidence as seen, units


def coverage_words(run: Run, verdict: Verdict) -> str:
    """`3,072 of 3,072 planned measurements, 64 of 64 hosts judged, 128 of 128 links`; empty where nothing was planned
    that shows a component.
    """
    return ", ".join([*_measured(run, verdict), *_judged(verdict)])


def _measured(run: Run, verdict: Verdict) -> Iterator[str]:
    """Measurements that were made of those planned: of judged rows, and where a run ended early of all rows."""
    measured, planned = verdict.coverage.pairs_measured, verdict.coverage.pairs_planned
    if run.state != "complete":
        measured, planned = measurements_of_run(run)
    if planned:
        yield f"{measured:,} of {planned:,} planned measurements"
    requested = run.facts.rows
    if missing := set(requested) - {row.name for row in run.rows}:
        yield f"{len(missing)} of {units.plural(len(requested), 'row')} missing"


def _judged(verdict: Verdict) -> Iterator[str]:
    """Hosts and links that were judged, of a run that was meant to be."""
    if finding_order.is_meant_to_be_judged(verdict):
        yield f"{verdict.coverage.hosts_judged:,} of {units.plural(verdict.coverage.hosts, 'host')} judged"
        if links := links_judged(verdict):
            yield links


def links_judged(verdict: Verdict) -> str:
    """`128 of 128 links, 1 of them not in bandwidth`; empty where no links are known."""
    coverage = verdict.coverage
    if not coverage.links:
        return ""
    hidden: dict[str, int] = {}
    for finding in verdict.findings:
        quantity = next((one.values["quantity"] for one in seen.hidden_loss.among(finding.evidence)), None)
        if finding.state is State.NOT_JUDGED and quantity and finding.component in ("link", "cable"):
            links = sum(component.count or len(component.directions) for component in finding.components)
            hidden[str(quantity)] = hidden.get(str(quantity), 0) + links
    words = f"{coverage.links_judged:,} of {units.plural(coverage.links, 'link')}"
    return words + "".join(f", {count:,} of them not in {quantity}" for quantity, count in hidden.items())


def coverage_of_fabric(source: ReportSource) -> str:
    """`3,072 of 3,072 planned measurements, 64 of 64 hosts judged; 1,536 of 4,032 ordered pairs (38.1 %)`."""
    words = coverage_words(source.run, source.diagnosis.verdict)
    pairs = pairs_words(_pairs(source), source.run.ranks) if source.cells else ""
    return "; ".join(filter(None, (words, pairs)))


def pairs_words(measured: int, ranks: int) -> str:
    """`98,304 of 16,773,120 ordered pairs (0.6 %)`; without a share where all were measured."""
    total = ranks * (ranks - 1)
    words = f"{measured:,} of {total:,} ordered pairs"
    return words if measured >= total else f"{words} ({units.share_text(measured / total)})"


def _pairs(source: ReportSource) -> int:
    """Ordered pairs of ranks that some row measured."""
    keys = [
        cell_set.cells.src.astype(np.int64) * source.run.ranks + cell_set.cells.dst
        for cell_set in source.cells.values()
        if cell_set.cells.complete
    ]
    ordered = np.sort(np.concatenate(keys)) if keys else np.empty(0)  # `np.unique` takes ten times as long
    whole = int(np.count_nonzero(np.diff(ordered))) + 1 if ordered.size else 0
    sampled = (source.surveys[name] for name, cell_set in source.cells.items() if not cell_set.cells.complete)
    return max([whole, *(max(one.distribution.pairs() for one in sizes) for sizes in sampled)])
