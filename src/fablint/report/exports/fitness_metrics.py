"""Preflight results for the textfile collector of Prometheus' node exporter: a figure for each host and check."""

from __future__ import annotations

from fablint.model.preflight_results import Fitness, Outcome
from fablint.report.exports.metric_families import families_text, gauges

VALUES = {
    Outcome.SKIP: -1,
    Outcome.PASS: 0,
    Outcome.SUPPRESSED: 0,
    Outcome.WARN: 1,
    Outcome.ERROR: 2,
    Outcome.FAIL: 3,
}
_RESULT = "Result of a check on a host: -1 skipped, 0 pass, 1 warning, 2 not understood, 3 not fit."
_UNFIT = "Whether a host should not be measured; a host that gave no answer should not."
_SUPPRESSED = "Whether the site file suppresses a finding of a check on a host; its result does not count it."
_MOMENT = "When the hosts were examined, in seconds since 1970."


def prometheus_text(fitness: Fitness, moment: float) -> str:
    """Metrics in the text format, sorted; for each host and check the worst result of its NICs and other components.

    Checks that passed are included: a metric that disappears raises no alarm. `moment` is the time at which the hosts
    were examined, in seconds since 1970.
    """
    worst: dict[tuple[str, str], int] = {}
    for result in fitness.results:
        key = (result.check, result.host)
        worst[key] = max(worst.get(key, -1), VALUES[result.outcome])
    unfit = fitness.unfit
    suppressed = {(result.check, result.host): 1 for result in fitness.results if result.suppressed}
    families = [
        gauges("preflight_result", _RESULT, ("check", "host"), worst),
        gauges("preflight_unfit", _UNFIT, ("host",), {(host,): int(host in unfit) for host in fitness.hosts}),
        *([gauges("preflight_suppressed", _SUPPRESSED, ("check", "host"), suppressed)] if suppressed else []),
        gauges("preflight_last_run_timestamp_seconds", _MOMENT, (), {(): round(moment, 3)}),
    ]
    return families_text(families)
