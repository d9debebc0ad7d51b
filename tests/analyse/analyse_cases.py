"""Runs to be judged: simulated ones, and what can happen to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fablint.model import Diagnosis, Fit, Row, Run, State
from fact_cases import attributes_of, row_facts, with_facts

Key = tuple[str, str, str | None]


def named(diagnosis: Diagnosis, *states: State) -> set[Key]:
    """Component, name and direction of the findings in these states (default: FAULT)."""
    wanted = states or (State.FAULT,)
    return {(f.component, f.name, f.direction) for f in diagnosis.verdict.findings if f.state in wanted}


def reported(diagnosis: Diagnosis) -> set[Key]:
    """Whatever is worse than NOT JUDGED."""
    return named(diagnosis, State.FAULT, State.SUSPECT, State.CONFOUNDED)


def changed(run: Run, change: Callable[[np.ndarray, str], np.ndarray]) -> Run:
    """The run with `change(times (n, n), row name)` in place of its times; NaN is not measured."""
    rows = []
    for row in run.rows:
        times = np.array(row.arrays["time_median"])
        for size in range(times.shape[3]):
            times[0, :, :, size] = change(times[0, :, :, size], row.name)
        count = np.where(np.isnan(times), 0, 100).astype(np.uint32)
        rows.append(replace(row, arrays={**row.arrays, "time_median": times, "count": count}))
    return replace(run, rows=tuple(rows))


def deleted(run: Run, share: float, seed: int) -> Run:
    """A random share of the cells was never measured."""
    rng = np.random.default_rng(seed)
    return changed(run, lambda times, _: np.where(rng.random(times.shape) < share, np.nan, times))


def attributed(run: Run, **attributes: Any) -> Run:
    """The run with other root attributes."""
    return with_facts(run, **attributes)


def row_attributed(run: Run, row: str, **attributes: Any) -> Run:
    """The run with other attributes of one row."""
    return replace(
        run,
        rows=tuple(with_facts(r, **attributes) if r.name == row else r for r in run.rows),
    )


def permuted(run: Run, order: Sequence[int]) -> Run:
    """The same hosts, started in another order."""
    moved = changed(run, lambda times, _: times[np.ix_(order, order)])
    return attributed(moved, hosts=[run.hosts[host] for host in order])


def in_rounds(run: Run, rounds: int, seed: int) -> Run:
    """What a few random matchings would have measured of the run, as a list of rounds."""
    rng = np.random.default_rng(seed)
    rows = []
    for row in run.rows:
        dst = np.full((run.ranks, rounds), -1, dtype=np.int32)
        for number in range(rounds):
            order = rng.permutation(run.ranks)
            a, b = order[: run.ranks // 2], order[run.ranks // 2 : run.ranks // 2 * 2]
            dst[a, number], dst[b, number] = b, a
        full = np.asarray(row.arrays["time_median"])[0]
        times = np.where(dst[..., None] < 0, np.nan, full[np.arange(run.ranks)[:, None], dst]).astype(np.float32)
        count = np.where(np.isnan(times), 0, 100).astype(np.uint32)
        attributes = {**attributes_of(row), "layout": "list", "pattern": "random", "rounds": rounds}
        arrays = {"time_median": times, "count": count, "dst": dst, "size": row.arrays["size"]}
        rows.append(Row(row.name, row_facts(attributes), arrays))
    return replace(run, rows=tuple(rows))


def fit_of(diagnosis: Diagnosis, row: str) -> Fit:
    """The fit of a row with one size."""
    return next(fit for fit in diagnosis.fits if fit.row == row)
