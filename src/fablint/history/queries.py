"""What the history says: its runs, the series of a figure, and components with repeated findings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fablint.errors import UsageError
from fablint.history.change_points import ChangePoint, change_points
from fablint.history.database import Database
from fablint.history.records import Metric
from fablint.text import units
from fablint.text.suggestions import did_you_mean

LEAST_REPEATS = 2  # runs with a finding about the same component


@dataclass(frozen=True)
class KeptRun:
    """A run of the history."""

    id: int
    path: str
    moment: float  # seconds since 1970
    verdict: str
    hosts: int
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Point:
    """A figure of one run: seconds, or bytes/s."""

    run: int
    moment: float
    pairs: int
    p10: float
    median: float
    p90: float


@dataclass(frozen=True)
class Trend:
    """The figures of a component in the order of time."""

    component: str
    metric: Metric
    points: Sequence[Point]
    changes: Sequence[ChangePoint]


@dataclass(frozen=True)
class RepeatedFinding:
    """A component with findings in several runs."""

    component: str
    runs: int
    last: float  # start of the last of these runs
    worst: str  # state
    effect: float | None  # median


def kept_runs(database: Database) -> list[KeptRun]:
    """Return all runs, the oldest first."""
    rows = database.rows("SELECT id, path, moment, verdict, hosts, facts FROM run ORDER BY moment, id")
    return [
        KeptRun(number, path, moment, verdict, hosts, json.loads(facts))
        for number, path, moment, verdict, hosts, facts in rows
    ]


def metrics(database: Database) -> list[tuple[int, Metric]]:
    """Return the ids of what was measured, with medium, kernel, size and quantity."""
    rows = database.rows("SELECT id, medium, kernel, size, quantity FROM metric ORDER BY medium, kernel, size")
    return [(number, (medium, kernel, size, quantity)) for number, medium, kernel, size, quantity in rows]


def trends(database: Database, component: str | None, kernel: str | None, size: int | None) -> list[Trend]:
    """Return the series of figures of a host or scope over the runs of a history.

    Parameters
    ----------
    database
        The history.
    component
        Host or scope; None: all scopes.
    kernel
        None: all kernels.
    size
        Bytes of a message; None: all sizes.

    Raises
    ------
    UsageError
        The history has no such host or scope, or no figure of the kernel and size.
    """
    chosen = _components(database, component)
    wanted = _metrics_of(database, kernel, size)
    result = []
    for number, name in chosen:
        for metric_id, metric in wanted:
            points = _points(database, number, metric_id)
            if points:
                medians = np.array([point.median for point in points])
                result.append(Trend(name, metric, points, change_points(medians)))
    return result


def _metrics_of(database: Database, kernel: str | None, size: int | None) -> list[tuple[int, Metric]]:
    """Return the metrics of one kernel and size, or of all. Raises UsageError where the history has none."""
    listed = metrics(database)
    kernels, sizes = ({metric[column] for _, metric in listed} for column in (1, 2))
    if kernel is not None and kernel not in kernels:
        hint = did_you_mean(kernel, map(str, kernels), "fablint history trend lists the kernels")
        raise UsageError(f"the history has no figures of a kernel {kernel}", hint)
    if size is not None and size not in sizes:
        raise UsageError(f"the history has no figures at {units.size(size)}", "fablint history trend lists the sizes")
    return [(number, metric) for number, metric in listed if kernel in (None, metric[1]) and size in (None, metric[2])]


def _components(database: Database, name: str | None) -> list[tuple[int, str]]:
    if name is None:
        rows = database.rows("SELECT id, name FROM component WHERE kind = 'scope' ORDER BY name")
        return [(number, label) for number, label in rows]
    rows = database.rows("SELECT id, name FROM component WHERE name = ?", (name,))
    if not rows:
        names = [label for (label,) in database.rows("SELECT name FROM component")]
        raise UsageError(
            f"the history has no host or scope {name}",
            did_you_mean(name, names, "fablint history trend lists the scopes"),
        )
    return [(number, label) for number, label in rows]


def _points(database: Database, component: int, metric: int) -> list[Point]:
    rows = database.rows(
        "SELECT run.id, run.moment, pairs, p10, median, p90 FROM figure JOIN run ON run.id = figure.run"
        " WHERE component = ? AND metric = ? ORDER BY run.moment, run.id",
        (component, metric),
    )
    return [Point(*row) for row in rows]


def repeated_findings(database: Database, since: float = 0.0) -> list[RepeatedFinding]:
    """Return components with findings in at least two runs since a moment, those of most runs first."""
    rows = database.rows(
        "SELECT finding.component, run.id, run.moment, finding.state, finding.effect FROM finding"
        " JOIN run ON run.id = finding.run WHERE run.moment >= ? ORDER BY run.moment",
        (since,),
    )
    by_component: dict[str, list[Any]] = {}
    for row in rows:
        by_component.setdefault(row[0], []).append(row)
    repeated = []
    for component, findings in by_component.items():
        runs = {run for _, run, *_ in findings}
        effects = [effect for *_, effect in findings if effect is not None]
        worst = "FAULT" if any(state == "FAULT" for *_, state, _ in findings) else str(findings[-1][3])
        if len(runs) >= LEAST_REPEATS:
            median = float(np.median(effects)) if effects else None
            repeated.append(RepeatedFinding(component, len(runs), findings[-1][2], worst, median))
    return sorted(repeated, key=lambda one: (-one.runs, one.component))
