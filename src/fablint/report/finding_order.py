"""Findings in the order in which a reader needs them; similar findings are merged."""

from __future__ import annotations

from collections.abc import Sequence

from fablint.model import EvidenceRecord, Finding, State, Verdict
from fablint.model.verdict import NamedLoss
from fablint.text import evidence as seen, units
from fablint.text.actions import advice
from fablint.text.evidence_sentences import sentences

MOST_REASONS = 3  # why components were not judged, that are named of many
_FOLDED = (State.NOT_JUDGED, State.OK)


def ordered(verdict: Verdict) -> list[Finding]:
    """Worst first: by state, then by loss times pairs affected. Healthy and unjudged parts are folded."""
    findings = [finding for finding in verdict.findings if finding.state not in _FOLDED]
    findings += _fold([finding for finding in verdict.findings if finding.state in _FOLDED])
    return sorted(findings, key=lambda finding: finding.rank)


def word(verdict: Verdict) -> str:
    """Return the verdict in capitals."""
    if is_not_judged(verdict):
        return "NOT JUDGED"
    return "LOCAL OK" if verdict.verdict == "local" else verdict.verdict.upper()


def is_not_judged(verdict: Verdict) -> bool:
    """Return whether nothing could be judged although what was measured is complete."""
    return verdict.verdict == "incomplete" and bool(verdict.not_judged)


def is_meant_to_be_judged(verdict: Verdict) -> bool:
    """Return whether the run was to show components of a network: not one host, and not figures only."""
    return verdict.verdict != "local" and not is_not_judged(verdict)


def headline(verdict: Verdict, local_figures: str = "") -> str:
    """Return what was found, in one sentence without the verdict word; of one host after its figures."""
    counts = [
        (state, sum(finding.state is state for finding in verdict.findings))
        for state in (State.FAULT, State.SUSPECT, State.CONFOUNDED)
    ]
    named = {State.CONFOUNDED: "confounded finding"}
    parts = [units.plural(count, named.get(state, state.lower())) for state, count in counts if count]
    if is_not_judged(verdict) and not parts:
        return verdict.not_judged
    suppressed_count = sum(finding.state is State.SUPPRESSED for finding in verdict.findings)
    if suppressed_count:
        parts = [*(parts or ["no fault that counts"]), f"{units.plural(suppressed_count, 'known finding')} suppressed"]
    judged = f"{units.plural(verdict.coverage.hosts_judged, 'host')} judged"
    if verdict.verdict == "local":
        return "; ".join(filter(None, [local_figures, "no network was measured", *(parts if suppressed_count else [])]))
    if missing := verdict.coverage.hosts - verdict.coverage.hosts_judged:
        judged += f", {missing:,} not"
    return f"{', '.join(parts) or 'no fault found'}; {judged}"


def limits(verdict: Verdict) -> str:
    """Return which losses are named, and which bound a component needs to pass; empty where no component was judged."""
    if verdict.limits is None or not is_meant_to_be_judged(verdict):
        return ""
    passed = f"OK: losses above {units.percent(verdict.limits.passed).lstrip('+')} would be seen"
    named = named_losses(verdict.limits.named)
    return f"loss named in 9 of 10 cases: {named}; {passed}" if named else passed


def named_losses(losses: Sequence[NamedLoss]) -> str:
    """Return `bandwidth of a host 7.1 %, link 6.0 %; latency of a host 12 %`."""
    by_quantity: dict[str, list[str]] = {}
    for item in losses:
        by_quantity.setdefault(item.quantity, []).append(f"{item.component} {units.percent(item.loss).lstrip('+')}")
    return "; ".join(f"{quantity} of a {', '.join(parts)}" for quantity, parts in by_quantity.items())


def subject(finding: Finding) -> str:
    """The part and its direction: `host nid000231 rx`."""
    is_titled = finding.component == "config" and all(one.title for one in finding.components)
    if is_titled or finding.component in finding.name:  # `one host`; `56 links` says it already
        return finding.name
    direction = {"tx": " tx (sending)", "rx": " rx (receiving)", "both": " tx and rx", None: ""}[finding.direction]
    return f"{finding.component} {finding.name}{direction}"


def details(finding: Finding) -> tuple[str, str, str, str]:
    """Return until when a finding is known, its evidence, what else it could be, and the next step; '' for each that
    it lacks.
    """
    group = ", ".join(component.text for component in finding.ambiguity_group)
    return (
        finding.suppressed.words if finding.suppressed else "",
        sentences(finding.evidence),
        f"indistinguishable from: {group}" if group else "",
        f"next: {advice(finding.next_step)}" if finding.next_step else "",
    )


def effect(finding: Finding) -> str:
    """The size of the loss, beside both figures where they are known; of a healthy part, the loss that could hide."""
    if finding.state is State.OK and finding.effect is not None:
        loss = {"latency": "added latency", "bandwidth": "lost bandwidth", None: "loss"}[finding.quantity]
        return f"{loss} below {units.percent(abs(finding.effect)).lstrip('+')}"
    figures = finding.damage.figures if finding.damage is not None else None
    if figures is None or finding.quantity is None:
        return units.effect(finding.effect, finding.interval, finding.quantity)
    both = units.of_expected(figures.measured, figures.expected, finding.quantity)
    return f"{both} ({units.effect(finding.effect, finding.interval, None)})"


def damage(finding: Finding) -> str:
    """Return how many hosts are behind a component, and how many pairs use it: `16 hosts, 7,680 pairs`; the pairs alone
    of one of many cables that all hosts share; empty if unknown.
    """
    if finding.damage is None:
        return ""
    pairs = units.plural(finding.damage.pairs, "pair")
    return f"{units.plural(finding.damage.hosts, 'host')}, {pairs}" if finding.damage.hosts else pairs


def healthy(findings: Sequence[Finding]) -> list[tuple[str, str, str]]:
    """Parts that are OK (`host h[00-63]`), the losses that could hide (`added latency below 2.3 %`), the evidence."""
    same: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.state is State.OK:
            same.setdefault(subject(finding), []).append(finding)
    return [
        (
            part,
            _losses(findings_of_part),
            "; ".join(dict.fromkeys(sentences(one.evidence) for one in findings_of_part)),
        )
        for part, findings_of_part in same.items()
    ]


def _losses(findings: Sequence[Finding]) -> str:
    """The losses that could hide, and whether those of some measurements could be larger."""
    is_of_medians = any(seen.in_the_median.among(one.evidence) for one in findings)
    losses = ", ".join(filter(None, map(effect, findings)))
    return f"in the median {losses}" if is_of_medians and losses else losses


def faulty(findings: Sequence[Finding]) -> list[Finding]:
    """All that is not OK."""
    return [finding for finding in findings if finding.state is not State.OK]


def faulty_hosts(verdict: Verdict) -> frozenset[str]:
    """Names of the hosts that are at fault or suspect by themselves."""
    findings = (
        item for item in verdict.findings if item.state in (State.FAULT, State.SUSPECT) and item.component != "route"
    )
    return frozenset(host for finding in findings for host in finding.hosts)


def ends(finding: Finding) -> list[list[str]]:
    """Names at the ends of a part: two lists for a link or a cable (`s3>s5`, `nid001=s3`), else one."""
    return [list(end.nodes) for end in finding.components[0].ends]


def _fold(findings: Sequence[Finding]) -> list[Finding]:
    """Findings that differ in name and effect only become one, with the largest effect.

    Those with a number of components (`36 links`) instead of names keep their own reasons.
    """
    similar: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        reasons = sentences(finding.evidence) if any(one.count for one in finding.components) else ""
        kind = (finding.state, finding.component, finding.direction, finding.quantity, reasons)
        similar.setdefault((*kind, finding.next_step, finding.ambiguity_group), []).append(finding)
    return [group[0] if len(group) == 1 else _merge(group) for group in similar.values()]


def _merge(group: Sequence[Finding]) -> Finding:
    worst = max(group, key=lambda finding: abs(finding.effect or 0.0))
    evidence = _reasons(group, MOST_REASONS if worst.state is State.NOT_JUDGED else len(worst.evidence))
    components = tuple(dict.fromkeys(component for finding in group for component in finding.components))
    return worst.model_copy(update={"components": components, "evidence": evidence})


def _reasons(group: Sequence[Finding], most: int) -> tuple[EvidenceRecord, ...]:
    """Return the distinct evidence of all findings; empty if there is more than `most`, as of thousands of hosts."""
    reasons: list[EvidenceRecord] = []
    for item in (one for finding in group for one in finding.evidence):
        if item in reasons:
            continue
        if len(reasons) == most:
            return ()
        reasons.append(item)
    return tuple(reasons)
