"""What preflight found, for the textfile collector of Prometheus' node exporter: a figure for each host and check."""

from __future__ import annotations

from collections.abc import Mapping

from fablint.model.preflight_results import Fitness, Outcome

VALUES = {
    Outcome.SKIP: -1,
    Outcome.PASS: 0,
    Outcome.SUPPRESSED: 0,
    Outcome.WARN: 1,
    Outcome.ERROR: 2,
    Outcome.FAIL: 3,
}
_RESULT = "fablint_preflight_result"
_UNFIT = "fablint_preflight_unfit"
_SUPPRESSED = "fablint_preflight_suppressed"
_MOMENT = "fablint_preflight_last_run_timestamp_seconds"
_HELP = {
    _RESULT: "What a check came to on a host: -1 skipped, 0 pass, 1 warning, 2 not understood, 3 not fit.",
    _UNFIT: "Whether a host should not be measured; those that gave no answer should not.",
    _SUPPRESSED: "Whether the site file suppresses a finding of a check on a host; its result does not count it.",
    _MOMENT: "When the hosts were asked, in seconds since 1970.",
}


def prometheus_text(fitness: Fitness, moment: float) -> str:
    """Metrics in the text format, sorted; of the parts of a host the worst counts.

    Checks that passed are there as well: what vanishes raises no alarm.
    """
    worst: dict[tuple[str, str], int] = {}
    for one in fitness.results:
        key = (one.host, one.check)
        worst[key] = max(worst.get(key, -1), VALUES[one.outcome])
    unfit = fitness.unfit
    results = {
        f'{_RESULT}{{check="{_escaped(check)}",host="{_escaped(host)}"}}': value
        for (host, check), value in worst.items()
    }
    hosts = {f'{_UNFIT}{{host="{_escaped(host)}"}}': int(host in unfit) for host in fitness.hosts}
    quiet = dict.fromkeys((one.host, one.check) for one in fitness.results if one.suppressed)
    hidden = {f'{_SUPPRESSED}{{check="{_escaped(check)}",host="{_escaped(host)}"}}': 1 for host, check in quiet}
    lines = _metric(_RESULT, results) + _metric(_UNFIT, hosts) + (_metric(_SUPPRESSED, hidden) if hidden else [])
    lines += _metric(_MOMENT, {_MOMENT: round(moment, 3)})
    return "\n".join(lines) + "\n"


def _metric(name: str, samples: Mapping[str, float]) -> list[str]:
    head = [f"# HELP {name} {_HELP[name]}", f"# TYPE {name} gauge"]
    return head + [f"{key} {samples[key]}" for key in sorted(samples)]


def _escaped(label: str) -> str:
    """A label's value as the text format wants it."""
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
