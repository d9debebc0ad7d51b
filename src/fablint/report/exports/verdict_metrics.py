"""A verdict for the textfile collector of Prometheus' node exporter."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, get_args

from fablint.model import State, VerdictWord
from fablint.report.exports.finding_subjects import subjects
from fablint.report.exports.metric_families import families_text, gauges

if TYPE_CHECKING:
    from fablint.model import Diagnosis, Run

VALUES = {
    State.OK: 0,
    State.SUPPRESSED: 0,
    State.SUSPECT: 1,
    State.CONFOUNDED: 1,
    State.NOT_JUDGED: 2,
    State.FAULT: 3,
}
_OF_COMPONENT = ("component", "name")
_EXIT = "Exit code of the verdict: 0 pass, 1 fault, 3 incomplete or undecided."
_VERDICT = "1 for the verdict of the last run, 0 for the others."
_FINDINGS = "Findings by state."
_RESULT = "Worst finding about a component: 0 healthy or a known fault, 1 suspect or confounded, 2 not judged, 3 fault."
_EFFECT = "Relative change of a reported component: -0.2 is 20 % less bandwidth, 0.3 is 30 % more latency."
_SUPPRESSED = "1 for a known fault, which the site file suppresses."
_COVERAGE = "Ordered pairs and hosts: planned or present, and measured or judged."
_MOMENT = "Start of the run, in seconds since 1970."


def verdict_metrics(run: Run, diagnosis: Diagnosis) -> str:
    """Return metrics in the text format; for each component the worst finding.

    Healthy components are included: a metric that disappears raises no alarm.
    """
    verdict, coverage = diagnosis.verdict, diagnosis.verdict.coverage
    worst: dict[tuple[str, str], int] = {}
    effects: dict[tuple[str, ...], float] = {}
    suppressed: dict[tuple[str, str], int] = {}
    for finding in verdict.findings:
        for subject in subjects(finding):
            worst[subject] = max(worst.get(subject, 0), VALUES[finding.state])
            if finding.suppressed is not None:
                suppressed[subject] = 1
            if finding.effect is not None and finding.state is not State.OK:
                labels = (*subject, finding.quantity or "", finding.direction or "")
                effects[labels] = max(effects.get(labels, 0.0), finding.effect, key=abs)
    counts = Counter(finding.state for finding in verdict.findings)
    covered = {
        ("pairs", "planned"): coverage.pairs_planned,
        ("pairs", "measured"): coverage.pairs_measured,
        ("hosts", "present"): coverage.hosts,
        ("hosts", "judged"): coverage.hosts_judged,
    }
    started = run.facts.launch.started_epoch_s or 0.0
    words = {(word,): int(word == verdict.verdict) for word in get_args(VerdictWord)}
    families = [
        gauges("check_exit_code", _EXIT, (), {(): verdict.exit_code}),
        gauges("check_verdict", _VERDICT, ("verdict",), words),
        gauges("check_findings", _FINDINGS, ("state",), {(str(state),): counts[state] for state in State}),
        gauges("check_result", _RESULT, _OF_COMPONENT, worst),
        gauges("check_effect_ratio", _EFFECT, (*_OF_COMPONENT, "quantity", "direction"), effects),
        *([gauges("check_suppressed", _SUPPRESSED, _OF_COMPONENT, suppressed)] if suppressed else []),
        gauges("check_coverage", _COVERAGE, ("of", "count"), covered),
        *([gauges("check_run_timestamp_seconds", _MOMENT, (), {(): float(started)})] if started else []),
    ]
    return families_text(families)
