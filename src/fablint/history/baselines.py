"""Baselines: thresholds of a site file (docs/reference/site-file.md) from the figures of earlier runs.

The limit of a scope is the worst 5th percentile of its pairs in any of the runs, for a latency the worst 95th
percentile, less a margin. A baseline is about scopes and hosts: most pairs of a scope or of a host are then outside.
Single pairs are compared with other pairs of their own run, which is more sensitive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fablint.errors import UsageError
from fablint.history.database import Database
from fablint.model import Scope
from fablint.model.limits.thresholds import Threshold

LEAST_RUNS = 3
MARGIN = 0.05  # relative loss beyond the limit of the runs


def baseline_thresholds(database: Database, name: str, runs: Sequence[int], margin: float = MARGIN) -> list[Threshold]:
    """Return what is normal in runs: for each scope, kernel and size that at least three of the runs measured.

    Rows over the transport and memory that most of the runs share are used.

    Parameters
    ----------
    database
        The history.
    name
        Name of the baseline.
    runs
        Ids of the runs.
    margin
        Relative loss beyond the limit of the runs.

    Raises
    ------
    UsageError
        Fewer than three runs have a figure in common.
    """
    chosen = ", ".join(str(int(run)) for run in runs)
    rows: list[Any] = database.rows(
        "SELECT component.name, medium, kernel, size, quantity, p05, median, p95 FROM figure"
        " JOIN component ON component.id = component JOIN metric ON metric.id = metric"
        f" WHERE component.kind = 'scope' AND run IN ({chosen})"
    )
    media = [medium for _, medium, *_ in rows]
    usual = max(sorted(set(media)), key=media.count, default="")
    by_figure: dict[tuple[str, str, int, Any], list[tuple[float, float, float]]] = {}
    for scope, medium, kernel, size, quantity, low, median, high in rows:
        if medium == usual:
            by_figure.setdefault((scope, kernel, size, quantity), []).append((low, median, high))
    thresholds = [
        Threshold(_scope(scope), kernel, size, quantity, *_limits(quantity, values, margin), f"baseline {name}", False)
        for (scope, kernel, size, quantity), values in sorted(by_figure.items())
        if len(values) >= LEAST_RUNS
    ]
    if not thresholds:
        raise UsageError(f"fewer than {LEAST_RUNS} of the chosen runs have a figure in common", "add more runs")
    return thresholds


def _scope(name: str) -> Scope | None:
    """Return the scope of a threshold: None, any scope, for pairs of a run without a topology."""
    scope = Scope(name)
    return None if scope is Scope.UNKNOWN else scope


def _limits(
    quantity: str, values: Sequence[tuple[float, float, float]], margin: float
) -> tuple[float, float | None, float | None]:
    """Return the typical value, the lowest and the highest."""
    medians = sorted(median for _, median, _ in values)
    typical = medians[len(medians) // 2]
    if quantity == "bandwidth":
        return typical, min(low for low, _, _ in values) * (1.0 - margin), None
    return typical, None, max(high for _, _, high in values) / (1.0 - margin)


def baseline_text(name: str, thresholds: Sequence[Threshold]) -> str:
    """Return a baseline as a site file."""
    heading = [f"# baseline {name}, written by fablint history baseline", "format = 1", ""]
    return "\n".join([*heading, *_tables(thresholds)])


def with_baseline(site: str, thresholds: Iterable[Threshold], baseline: Sequence[Threshold]) -> str:
    """Return the text of a site file with the thresholds of a baseline.

    Parameters
    ----------
    site
        Text of the site file.
    thresholds
        Those that the site file has: they take precedence.
    baseline
        Thresholds of the baseline.
    """
    present = {(one.scope, one.kernel, one.size) for one in thresholds}
    new = [one for one in baseline if (one.scope, one.kernel, one.size) not in present]
    return "\n".join([site.rstrip("\n"), "", *_tables(new)])


def _tables(thresholds: Sequence[Threshold]) -> list[str]:
    lines = []
    for threshold in thresholds:
        unit = "B/s" if threshold.quantity == "bandwidth" else "s"
        limits = {"lower": threshold.lowest, "upper": threshold.highest}
        lines += [
            "[[threshold]]",
            f'scope = "{threshold.scope or "any"}"',
            f'kernel = "{threshold.kernel}"',
            f"size = {threshold.size}",
            f'value = "{threshold.value:.9g} {unit}"',
            *(f'{side} = "{abs(threshold.value - at):.9g} {unit}"' for side, at in limits.items() if at is not None),
            "single_pairs = false",
            "",
        ]
    return lines
