"""Figures for the textfile collector of Prometheus' node exporter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector


def families_text(families: Sequence[Metric]) -> str:
    """Return metrics in the text format."""
    registry = CollectorRegistry()
    registry.register(_Families(families))
    return generate_latest(registry).decode()


def gauges(name: str, text: str, labels: Sequence[str], values: Mapping[Any, float]) -> Metric:
    """Return a gauge with a value for each combination of labels, sorted; half of a surrogate pair becomes `?`."""
    family = GaugeMetricFamily(f"fablint_{name}", text, labels=labels)
    for key in sorted(values):
        family.add_metric([label.encode("utf-8", "replace").decode() for label in key], values[key])
    return family


class _Families(Collector):
    """Metrics as they are written: a `Gauge` object for each of a million values would take gigabytes."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families
