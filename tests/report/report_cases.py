"""Runs and diagnoses for the reports: measured on the simulated fabric, judged by a minimal fit of their own."""

from __future__ import annotations

import html
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fablint.model import (
    SCOPES,
    Coverage,
    Diagnosis,
    Finding,
    Fit,
    Placement,
    Row,
    Run,
    State,
    Topology,
    Verdict,
    VerdictWord,
)
from fablint.simulate import Fabric, Fault, full_mesh, simulate
from fablint.text import notes as noted
from fact_cases import attributes_of, row_facts, run_facts, with_facts
from finding_cases import component, finding, ref

EXIT_CODES = {"pass": 0, "fault": 1, "incomplete": 3}
SLOW_HOST = finding(
    State.FAULT,
    "host",
    "h13",
    direction="tx",
    quantity="bandwidth",
    effect=-0.31,
    interval=(-0.33, -0.29),
    evidence="63 of 63 partners on 8 switches are slow when h13 sends; the same partners are healthy with each other",
    ambiguity_group=(component("nic", "h13/nic0"), component("cable", "h13=s1"), component("port", "s1")),
    next_step="measure h13 in loopback; if that is healthy, swap the cable h13=s1",
)
HEALTHY = finding(State.OK, "host", "h[00-12,14-63]", quantity="bandwidth", effect=-0.021)


def readable(page: str) -> str:
    """The source of a page as a person reads the text: entities resolved, no-break spaces as spaces."""
    return html.unescape(page).replace("\N{NO-BREAK SPACE}", " ")


def fit(row: Row, size: int, placement: Placement) -> Fit:
    """Class medians, then medians of the rows and columns: enough for a picture."""
    seen = row.observations(size, statistic="median").sent
    log_time = np.log(np.where(seen > 0, seen, np.nan))
    ranks = np.arange(len(log_time))
    scope = placement.scopes(ranks[:, None], ranks[None])
    classes = {code: np.nanmedian(log_time[scope == code]) for code in np.unique(scope[np.isfinite(log_time)])}
    left = log_time - np.vectorize(lambda code: classes.get(code, np.nan))(scope)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a rank without a single measurement
        tx = np.nan_to_num(np.nanmedian(left, axis=1))
        rx = np.nan_to_num(np.nanmedian(left - tx[:, None], axis=0))
    left -= tx[:, None] + rx
    noise = float(1.4826 * np.nanmedian(np.abs(left)))
    times = {SCOPES[code]: float(np.exp(value)) for code, value in classes.items()}
    return Fit(row.name, row.kernel, size, times, tx, rx, noise)


def diagnose(
    run: Run,
    topology: Topology | None,
    word: VerdictWord = "pass",
    findings: Sequence[Finding] = (HEALTHY,),
    notes: Sequence[str] = (),
) -> Diagnosis:
    """A diagnosis with the given findings and honest fits."""
    placement = Placement.of(run, topology)
    fits = [
        fit(row, size, placement)
        for row in run.rows
        if row.layout == "matrix" and "time_median" in row.arrays
        for size in row.sizes
    ]
    pairs = run.ranks * (run.ranks - 1)
    measured = min((int((row.arrays["count"][..., 0] > 0).sum()) for row in run.rows), default=0)
    coverage = Coverage(pairs_planned=pairs, pairs_measured=measured, hosts=len(run.hosts), hosts_judged=len(run.hosts))
    verdict = Verdict(
        verdict=word,
        exit_code=EXIT_CODES[word],
        findings=tuple(findings),
        coverage=coverage,
        notes=tuple(map(noted.message, notes)),
    )
    return Diagnosis(verdict, tuple(fits), topology)


def healthy_case(fabric: Fabric | None = None) -> tuple[Run, Diagnosis]:
    fabric = fabric or full_mesh()
    run = simulate(fabric, seed=7)
    return run, diagnose(run, fabric.topology)


def fault_case() -> tuple[Run, Diagnosis]:
    fabric = full_mesh()
    faults = [Fault(ref("host", "h13"), "tx", bandwidth_factor=0.69, added_latency_s=0.5e-6)]
    run = simulate(fabric, faults=faults, seed=7)
    return run, diagnose(run, fabric.topology, "fault", (SLOW_HOST, HEALTHY))


def incomplete_case() -> tuple[Run, Diagnosis]:
    """Host h05 died in round 20: nothing of it was measured, and the rounds after 40 are missing."""
    fabric = full_mesh()
    run = simulate(fabric, seed=7)
    lost = {"rank": 5, "host": "h05", "round": 20, "partner": 12, "reason": "no message for 60 s"}
    rows = tuple(without(row, (row.arrays["round"][0] > 40) | of_rank(row, 5)) for row in run.rows)
    run = replace(with_facts(run, state="interrupted", lost=[lost]), rows=rows)
    unjudged = finding(
        State.NOT_JUDGED,
        "host",
        "h05",
        evidence="lost in round 20 while paired with h12: no message for 60 s",
        next_step="look at h05, then fablint resume",
    )
    notes = ("the run was interrupted: 40 of 63 rounds were measured",)
    return run, diagnose(run, fabric.topology, "incomplete", (unjudged, HEALTHY), notes)


def of_rank(row: Row, rank: int) -> np.ndarray:
    mask = np.zeros(row.arrays["round"].shape[1:], dtype=bool)
    mask[rank] = mask[:, rank] = True
    return mask


def without(row: Row, missing: np.ndarray) -> Row:
    """The row without the cells (src, dst) in `missing`."""
    arrays = dict(row.arrays)
    arrays["time_median"] = np.where(missing[None, :, :, None], np.nan, arrays["time_median"]).astype(np.float32)
    arrays["count"] = np.where(missing[None, :, :, None], 0, arrays["count"])
    arrays["started"] = np.where(missing[None], np.nan, arrays["started"])
    return replace(with_facts(row, state="interrupted"), arrays=arrays)


def bench_run(kernel: str, *, samples: np.ndarray, histogram: bool = True, ranks: int = 2, size: int = 8) -> Run:
    """A `pairs` run in list layout whose pairs all drew the same samples (seconds)."""
    edges = 1e-9 * 2 ** (np.arange(128 * 22) / 128)
    counts, _ = np.histogram(samples, bins=np.append(edges, np.inf))
    figures = {
        "min": samples.min(),
        "median": np.median(samples),
        "mean": samples.mean(),
        "p99": np.quantile(samples, 0.99),
        "max": samples.max(),
    }
    arrays = {f"time_{name}": np.full((ranks, 1, 1), value, dtype=np.float32) for name, value in figures.items()}
    arrays |= {
        "count": np.full((ranks, 1, 1), samples.size, dtype=np.uint32),
        "dst": (np.arange(ranks, dtype=np.int32) ^ 1)[:, None],
        "started": np.zeros((ranks, 1)),
        "size": np.array([size]),
    }
    if histogram:
        arrays |= {"histogram": np.broadcast_to(counts, (ranks, 1, 1, len(counts))), "bucket": edges}
    attributes = {
        "kernel": kernel,
        "pattern": "pairs",
        "order": "parallel",
        "layout": "list",
        "state": "complete",
        "options": f"{kernel} --pattern pairs --sizes {size}",
        "rounds": 1,
        "cells_per_round": ranks,
        "repeats": 1,
    }
    root = {
        "format": 1,
        "state": "complete",
        "ranks": ranks,
        "hosts": [f"n{rank}" for rank in range(ranks)],
        "rank_host": list(range(ranks)),
    }
    return Run(None, run_facts(root), (Row(kernel, row_facts(attributes), arrays),))


def sparse_case(rounds: int = 6) -> tuple[Run, Diagnosis]:
    """A few random matchings of the faulty run, as a pair list; rank 0 is idle in the first round."""
    run, diagnosis = fault_case()
    rng, ranks = np.random.default_rng(1), np.arange(run.ranks)
    partner = np.empty((run.ranks, rounds), dtype=np.int32)
    for column in range(rounds):
        shuffled = rng.permutation(run.ranks)
        partner[shuffled[0::2], column], partner[shuffled[1::2], column] = shuffled[1::2], shuffled[0::2]
    idle = np.isin(ranks, (0, partner[0, 0]))
    rows = []
    for row in run.rows:
        time = row.arrays["time_median"][0][ranks[:, None], partner]
        time[idle, 0] = np.nan
        arrays = {
            "time_median": time,
            "count": np.where(np.isnan(time), 0, 100),
            "dst": np.where(idle[:, None] & (np.arange(rounds) == 0), -1, partner),
            "started": np.where(np.isnan(time[..., 0]), np.nan, np.arange(rounds) * 1e-3),
            "size": row.arrays["size"],
        }
        attributes = {**attributes_of(row), "layout": "list", "pattern": "random", "rounds": rounds}
        rows.append(replace(row, facts=row_facts(attributes), arrays=arrays))
    return replace(run, rows=tuple(rows)), diagnosis


def large_case(ranks: int) -> tuple[Run, Diagnosis]:
    """One latency row of so many hosts, identical but for one bad pair: 11 -> 7. No model was fitted."""
    rng = np.random.default_rng(1)
    time = np.float32(1.5e-6) * np.exp(np.float32(0.02) * rng.standard_normal((ranks, ranks), dtype=np.float32))
    time[np.arange(ranks), np.arange(ranks)] = np.nan
    time[11, 7] = 6.25e-6
    small = bench_run("latency", samples=np.ones(1), ranks=2).rows[0]
    attributes = {**attributes_of(small), "layout": "matrix", "pattern": "all-pairs", "rounds": ranks - 1}
    arrays = {"time_median": time[None, :, :, None], "count": (time > 0)[None, :, :, None], "size": np.array([8])}
    hosts = [f"nid{rank:06d}" for rank in range(ranks)]
    root = {"format": 1, "state": "complete", "ranks": ranks, "hosts": hosts, "rank_host": list(range(ranks))}
    run = Run(None, run_facts(root), (Row("latency", row_facts(attributes | {"cells_per_round": ranks}), arrays),))
    return run, replace(diagnose(replace(run, rows=()), None), fits=())
