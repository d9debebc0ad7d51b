"""How many links were judged, in words: all in one measure may be judged and some in another one not."""

from __future__ import annotations

from fablint.model import State, Verdict
from fablint.text import evidence as seen, units


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
