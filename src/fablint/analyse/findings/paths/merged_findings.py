"""Findings about paths from all views of a run: each component once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fablint.model import EvidenceRecord, Finding


def _once(*evidence: Sequence[EvidenceRecord]) -> list[EvidenceRecord]:
    """Every piece of evidence once."""
    evidence_records: list[EvidenceRecord] = []
    for item in (one for each in evidence for one in each):
        if item not in evidence_records:
            evidence_records.append(item)
    return evidence_records


def merge_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Each component once: its worst state, its largest effect, the evidence of all views.

    What round trips show of a cable is part of what streams show of one of its directions.
    """
    by_name: dict[str, list[Finding]] = {}
    for finding in findings:
        by_name.setdefault(finding.name, []).append(finding)
    one_way = {component.cable for same in by_name.values() for component in same[0].components if component.directed}
    merged = []
    for same in by_name.values():
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
