"""What the history says, as text and as data for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fablint.model.registry import moves_nothing
from fablint.text import units
from fablint.text.units import plural

if TYPE_CHECKING:
    from fablint.history.queries import KeptRun, RepeatedFinding, Trend

_SHOWN_POINTS = 5  # of the last runs


def runs_text(runs: Sequence[KeptRun]) -> str:
    """One line for each run: start, verdict, hosts, path."""
    lines = [f"{_date(run.moment):<16}  {run.verdict:<10}  {plural(run.hosts, 'host'):<13}  {run.path}" for run in runs]
    return "\n".join(lines) or "no runs"


def runs_facts(runs: Sequence[KeptRun]) -> dict[str, Any]:
    """Return the facts for programs."""
    return {"runs": [{**vars(run), "started": _iso(run.moment)} for run in runs]}


def trends_text(trends: Sequence[Trend], repeated: Sequence[RepeatedFinding]) -> str:
    """Return for each series its level, change points and last runs; then components with findings in several runs."""
    lines = []
    for trend in trends:
        medium, kernel, size, quantity = trend.metric
        show = units.rate if quantity == "bandwidth" else units.duration
        over = "" if moves_nothing(medium) else f" over {medium}"  # a simulated run has no transport
        lines.append(f"{trend.component}: {kernel} {units.size(size)}{over}, {plural(len(trend.points), 'run')}")
        lines += [f"  {line}" for line in _series(trend, show)]
    if repeated:
        lines += ["", "findings in several runs:"] if lines else ["findings in several runs:"]
    for item in repeated:
        effect = f" {units.percent(item.effect)}" if item.effect is not None else ""
        lines.append(f"  {item.component}: {item.worst}{effect} in {item.runs} runs, last {_date(item.last)}")
    return "\n".join(lines) or "no runs"


def _series(trend: Trend, show: Callable[[float], str]) -> list[str]:
    points = trend.points
    lines = []
    for change in trend.changes:
        when = _date(points[change.index].moment)
        step = f"{show(change.before)} -> {show(change.after)} ({units.percent(change.change)})"
        lines.append(f"change {when}: {step}, p {change.p:.1g}")
    last = ", ".join(show(point.median) for point in points[-_SHOWN_POINTS:])
    final = points[-1]
    lines.append(f"last {last}; pairs of the last run 10 to 90 %: {show(final.p10)} to {show(final.p90)}")
    return lines


def trends_facts(trends: Sequence[Trend], repeated: Sequence[RepeatedFinding]) -> dict[str, Any]:
    """Return all points for programs; seconds or bytes/s."""
    series = []
    for trend in trends:
        medium, kernel, size, quantity = trend.metric
        names = {"component": trend.component, "medium": medium, "kernel": kernel, "size": size, "quantity": quantity}
        points = [{**vars(point), "started": _iso(point.moment)} for point in trend.points]
        changes = [
            {**vars(change), "change": change.change, "run": trend.points[change.index].run} for change in trend.changes
        ]
        series.append({**names, "points": points, "changes": changes})
    return {"trends": series, "repeated": [vars(one) for one in repeated]}


def _date(moment: float) -> str:
    """`2026-01-05 02:30` in UTC; `-` for a run without a start."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M}" if moment > 0 else "-"


def _iso(moment: float) -> str | None:
    return datetime.fromtimestamp(moment, UTC).isoformat() if moment > 0 else None
