"""The record of a run: figures of each scope and each host as quantiles over pairs, and the findings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np

from fablint.model import SCOPES, Diagnosis, Placement, Row, Run, State
from fablint.model.arrays import Codes, Floats
from fablint.model.facts.json_objects import document_of
from fablint.model.figures.grouped_values import GroupedValues
from fablint.model.figures.pair_metrics import PairMetrics, figures_of, joined, quotable

QUANTILES = (0.05, 0.1, 0.5, 0.9, 0.95, 0.99)  # columns of the table `figure`
KEPT_STATES = (State.FAULT, State.SUSPECT, State.CONFOUNDED, State.SUPPRESSED)
FACTS = ("creator", "mpi", "command")  # root attributes of the run

Kind = Literal["scope", "host"]
Metric = tuple[str, str, int, str]  # medium, kernel, size in bytes, quantity


@dataclass(frozen=True)
class Figure:
    """Quantiles over the ordered pairs of a scope, or of a host with all other hosts: seconds, or bytes/s."""

    kind: Kind
    component: str  # `edge`, `n017`
    metric: Metric
    pairs: int
    quantiles: tuple[float, ...]  # at QUANTILES


@dataclass(frozen=True)
class KeptFinding:
    """A finding of a run: state, label of the components, relative effect."""

    state: str
    kind: str
    component: str
    effect: float | None


@dataclass(frozen=True)
class RunRecord:
    """What is kept of a run."""

    key: str  # equal for the same measurement only
    path: str
    moment: float  # start, seconds since 1970; 0 if the run does not have it
    verdict: str
    hosts: int
    facts: Mapping[str, Any]
    figures: tuple[Figure, ...]
    findings: tuple[KeptFinding, ...]


def record_of(run: Run, diagnosis: Diagnosis, path: str) -> RunRecord:
    """Return the record of a run.

    Parameters
    ----------
    run
        The run; only rows whose pairs have quotable figures are kept.
    diagnosis
        Its diagnosis: topology (for scopes), verdict and findings.
    path
        Where the run is, for people.
    """
    placement = Placement.of(run, diagnosis.topology)
    document = document_of(run.facts)
    findings = [one for one in diagnosis.verdict.findings if one.state in KEPT_STATES]
    return RunRecord(
        key=_key(run),
        path=path,
        moment=_moment(run),
        verdict=diagnosis.verdict.verdict,
        hosts=len(run.hosts),
        facts={name: document[name] for name in FACTS if document.get(name)},
        figures=tuple(_figures(run, placement)),
        findings=tuple(KeptFinding(str(one.state), one.component, one.name, one.effect) for one in findings),
    )


def _figures(run: Run, placement: Placement) -> Iterator[Figure]:
    parts: dict[Metric, list[PairMetrics]] = {}
    for row in quotable(run):
        if row.purpose != "measure":  # pairs of bisection rows, retests and follow-ups are chosen, not typical
            continue
        for size in row.sizes:
            metric: Metric = (row.medium.label, row.kernel, size, str(row.quantity))
            parts.setdefault(metric, []).append(figures_of(row, size, placement))
    for measured, metrics in parts.items():
        if not sum(one.value.size for one in metrics):
            continue
        pairs = joined(metrics).by_pair()
        yield from _of_groups("scope", [str(scope) for scope in SCOPES], measured, pairs.scope, pairs.value)
        src, dst = placement.host[pairs.src], placement.host[pairs.dst]
        between = src != dst
        ends = np.concatenate([src[between], dst[between]])
        yield from _of_groups("host", run.hosts, measured, ends, np.tile(pairs.value[between], 2))


def _of_groups(kind: Kind, names: Any, metric: Metric, group: Codes, value: Floats) -> Iterator[Figure]:
    grouped = GroupedValues.of(value, group, len(names))
    ranks = [np.rint(share * (grouped.count - 1)).astype(np.int64) for share in QUANTILES]
    columns = np.stack([grouped.at(rank) for rank in ranks], axis=1)
    for code in np.flatnonzero(grouped.count).tolist():
        yield Figure(kind, names[code], metric, int(grouped.count[code]), tuple(columns[code].tolist()))


def _moment(run: Run) -> float:
    seconds = run.facts.launch.started_epoch_s
    if seconds is not None:
        return float(seconds)
    try:
        return datetime.fromisoformat(run.facts.launch.started).timestamp()
    except ValueError:
        return 0.0


def _key(run: Run) -> str:
    """Hash of what was measured: the hosts, the rows and their times. A run that was resumed has another key."""
    digest = hashlib.sha256(json.dumps([list(run.hosts), run.facts.launch.started or None]).encode())
    for row in run.rows:
        digest.update(row.name.encode())
        for name in _times(row):
            digest.update(np.ascontiguousarray(row.arrays[name][:]).tobytes())
    return digest.hexdigest()[:32]


def _times(row: Row) -> list[str]:
    """The statistic that stands for a pair, and the partners of a list."""
    statistic = "median" if "median" in row.statistics else next(iter(row.statistics), "")
    return [name for name in (f"time_{statistic}", "dst") if name in row.arrays]
