"""Files with a result for other programs: for each format, the renderer of a verdict and that of preflight's result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from fablint.report.exports.fitness_junit import junit_text
from fablint.report.exports.fitness_metrics import prometheus_text
from fablint.report.exports.verdict_junit import verdict_junit
from fablint.report.exports.verdict_metrics import verdict_metrics

if TYPE_CHECKING:
    from fablint.model import Diagnosis, Run
    from fablint.model.preflight_results import Fitness


class ResultFormat(NamedTuple):
    """Renderers of one format; each returns the text of a file."""

    verdict: Callable[[Run, Diagnosis], str]
    fitness: Callable[[Fitness, float], str]  # with the time at which the hosts were examined, seconds since 1970


RESULT_FORMATS: Mapping[str, ResultFormat] = {
    "junit": ResultFormat(verdict_junit, lambda fitness, _: junit_text(fitness)),
    "prometheus": ResultFormat(verdict_metrics, prometheus_text),
}
