"""Findings about paths from all views of a run: each component once, without differences that geometry explains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from fablint.analyse.explain.view import ViewResult
from fablint.model import EvidenceRecord, Finding, Note
from fablint.text import notes as noted


def without_geometry(findings: Sequence[Finding], views: Sequence[ViewResult]) -> tuple[list[Finding], list[Note]]:
    """The findings without those of latency that a longer cable or more switches explain, and notes on these.

    A constant that messages of any size take longer is not a fault of a path whose streams are as fast as others. Where
    no streams were measured, the finding stays.
    """
    streams = any(view.quantity == "bandwidth" for view in views)
    medians = [case.component() for view in views for case in (*view.detections, *view.candidates) if case.late is None]
    times = [list(view.fit.class_time.values()) for view in views if view.quantity == "latency"]
    far_s = [float(np.median(some)) for some in times if some]  # of a row of which little was measured there are none
    most_s = min((view.geometry_s for view in views if view.quantity == "latency"), default=0.0)
    kept, notes = [], []
    for finding in findings:
        extra_s = (finding.effect or 0.0) * min(far_s, default=np.inf)
        of_path = finding.component in ("link", "cable") and finding.components[0] in medians
        if streams and of_path and finding.quantity == "latency" and extra_s <= most_s:
            notes.append(noted.later_by_geometry(finding.name, extra_s * 1e9))
        else:
            kept.append(finding)
    return kept, notes


def _once(*evidence: Sequence[EvidenceRecord]) -> list[EvidenceRecord]:
    """Every piece of evidence once."""
    evidence_records: list[EvidenceRecord] = []
    for one in (one for each in evidence for one in each):
        if one not in evidence_records:
            evidence_records.append(one)
    return evidence_records


def merge_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Each component once: its worst state, its largest effect, the evidence of all views.

    What round trips show of a cable is part of what streams show of one of its directions.
    """
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.name, []).append(finding)
    one_way = {component.cable for same in found.values() for component in same[0].components if component.directed}
    merged = []
    for same in found.values():
        both = same[0].components[0]
        if not both.directed and both.cable in one_way and all(one.quantity == "latency" for one in same):
            continue
        worst = min(same, key=lambda finding: finding.rank).state
        main = max(
            (one for one in same if one.state is worst),
            key=lambda one: (one.quantity == "bandwidth", abs(one.effect or 0)),
        )
        evidence = tuple(_once(main.evidence, *(one.evidence for one in same)))
        merged.append(main.model_copy(update={"evidence": evidence}))
    return merged
