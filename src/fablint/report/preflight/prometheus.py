"""Preflight results for the textfile collector of Prometheus' node exporter: a figure for each host and check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from fablint.model.preflight_results import Fitness, Outcome

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
        _family("result", _RESULT, ("check", "host"), worst),
        _family("unfit", _UNFIT, ("host",), {(host,): int(host in unfit) for host in fitness.hosts}),
        *([_family("suppressed", _SUPPRESSED, ("check", "host"), suppressed)] if suppressed else []),
        _family("last_run_timestamp_seconds", _MOMENT, (), {(): round(moment, 3)}),
    ]
    registry = CollectorRegistry()
    registry.register(_Families(families))
    return generate_latest(registry).decode()


class _Families(Collector):
    """Metrics as they are written: a `Gauge` object for each of a million values would take gigabytes."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _family(name: str, text: str, labels: Sequence[str], values: Mapping[Any, float]) -> Metric:
    """Return a gauge with a value for each combination of labels, sorted; half of a surrogate pair becomes `?`."""
    family = GaugeMetricFamily(f"fablint_preflight_{name}", text, labels=labels)
    for key in sorted(values):
        family.add_metric([label.encode("utf-8", "replace").decode() for label in key], values[key])
    return family
