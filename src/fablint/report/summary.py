"""What a run directory holds, without judging it: the data of `fablint show`, and of the last section of the report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fablint.model import Row, Run
from fablint.model.facts.failed_rank import FailedRank
from fablint.model.figures.percentiles import stored_percentiles
from fablint.report import run_facts
from fablint.report.tables.connections import connection_words
from fablint.text import units

# Variables that name a job, its user and its partition, and what the scheduler calls a partition.
_SCHEDULERS = (
    ("SLURM_JOB_ID", "SLURM_JOB_USER", "SLURM_JOB_PARTITION", "partition"),
    ("PBS_JOBID", "PBS_O_LOGNAME", "PBS_QUEUE", "queue"),
)
_SKEW_ROUNDS = 64  # rounds that stand for all when the skew of their starts is looked up


@dataclass(frozen=True)
class RowSummary:
    """Facts of one row. `skew_s` and `overhead` are None where the row cannot tell them."""

    name: str
    options: str
    state: str
    reason: str
    sizes: str
    planned: int  # measurements: directed pairs, repeats included
    measured: int  # those of all sizes
    skew_s: float | None
    overhead: float | None
    devices: str = ""  # that carried the messages, with the ranks that had them
    connections: str = ""  # what two starts differ by
    percentiles: str = ""  # of the time of a message, that are stored beside the usual statistics

    @property
    def measurements(self) -> str:
        """Number of measurements that were made and planned, with the percentage: `12 of 24 (50 %)`."""
        share = self.measured / self.planned if self.planned else 0.0
        return f"{self.measured:,} of {self.planned:,} ({units.share_text(share)})"

    @property
    def timing(self) -> str:
        """Start skew and schedule overhead, as far as known."""
        words = [f"start skew {units.duration(self.skew_s)}"] if self.skew_s is not None else []
        words += [f"schedule overhead {units.share_text(self.overhead)}"] if self.overhead is not None else []
        return ", ".join(words)


def run_summary(run: Run, missing_levels: Sequence[str] = ()) -> str:
    """Text of `fablint show`: state, launch, rows with measurements made of planned, start skew, overhead, notes.

    `missing_levels` are those that the check of the run planned and never began.
    """
    launch = launch_facts(run)
    if missing_levels:
        launch |= {"missing": f"levels planned and never begun: {', '.join(missing_levels)}"}
    lines = [f"{label:<12}{units.printable(words)}" for label, words in launch.items()]
    table = [("row", "sizes", "measurements", "state")]
    rows = [row_summary(row) for row in run.rows]
    table += [(row.name, row.sizes, row.measurements, row.state) for row in rows]
    lines += ["", *units.columns(table, left=2), ""]
    for row in rows:
        lines.append(f"{units.printable(row.name)}: {units.printable(row.options)}")
        details = (row.devices, row.timing, row.connections, row.percentiles, row.reason)
        lines += [f"    {units.printable(words)}" for words in details if words]
    lines += [f"{'note':<12}{units.printable(words)}" for words in run.notes]
    return "\n".join(lines) + "\n"


def launch_facts(run: Run) -> dict[str, str]:
    """Facts of the launch as label and words, those that are known."""
    launch = run.facts.launch
    words_by_label = {
        "state": run.state,
        "started": _started(run),
        "duration": _duration(run),
        "job": _job(launch.environment or {}),
        "hosts": f"{len(run.hosts):,}: {units.fold(run.hosts, ', ')}",
        "ranks": _ranks(run),
        "mpi": " ".join(launch.mpi.library.split()) if launch.mpi else "",
        "instrument": run_facts.instrument(run),
        "creator": launch.creator,
        "command": " ".join(launch.command),
        "simulated": _simulated(run.facts.simulated or {}),
        "lost": "; ".join(map(_lost, run.facts.lost)),
    }
    return {label: words for label, words in words_by_label.items() if words}


def head_facts(run: Run) -> list[str]:
    """Facts that identify a run beside its name: when it was started, how long it measured, job, versions."""
    facts, mpi = launch_facts(run), run.facts.launch.mpi
    duration = f"measured for {facts['duration']}" if "duration" in facts else ""
    job = f"job {facts['job']}" if "job" in facts else ""
    library = " ".join(mpi.library.partition(",")[0].split()) if mpi and run.facts.simulated is None else ""
    return [words for words in (facts.get("started", ""), duration, job, run.facts.launch.creator, library) if words]


def _started(run: Run) -> str:
    """`2026-11-29 09:38:44 UTC`; empty for a simulated run."""
    started = run.facts.launch.started if run.facts.simulated is None else ""
    return re.sub(r"(?<=\d)T(?=\d)", " ", started).replace("Z", " UTC")


def _duration(run: Run) -> str:
    """Time that the rows took together; empty where it is not known, or none passed."""
    seconds = sum(row.facts.result.wall_s or 0.0 for row in run.rows)
    return units.duration(seconds) if seconds and run.facts.simulated is None else ""


def _job(environment: Mapping[str, str]) -> str:
    """`1234, user alice, partition batch`; empty without a scheduler."""
    for job, user, partition, name in _SCHEDULERS:
        if number := environment.get(job):
            others = (("user", environment.get(user)), (name, environment.get(partition)))
            return ", ".join([number, *(f"{label} {value}" for label, value in others if value)])
    return ""


def measurements_of_run(run: Run) -> tuple[int, int]:
    """Return the measurements of all rows that were made, and those that were planned."""
    return sum(map(run_facts.measured_pairs, run.rows)), sum(map(run_facts.planned_pairs, run.rows))


def row_summary(row: Row) -> RowSummary:
    """Facts of a row. Reads `count` and, in part, `started`."""
    wall, measuring = row.facts.result.wall_s, row.facts.result.measuring_s
    return RowSummary(
        name=row.name,
        options=row.facts.options,
        state=row.facts.state,
        reason=row.facts.reason,
        sizes=_sizes(row),
        planned=run_facts.planned_pairs(row),
        measured=run_facts.measured_pairs(row),
        skew_s=start_skew(row),
        overhead=(wall - measuring) / measuring if wall and measuring else None,
        devices=_over(row),
        connections=connection_words(row),
        percentiles=_percentiles(row),
    )


def _percentiles(row: Row) -> str:
    """`percentiles of the time: 50, 90, 99`, of a row that has others than the usual statistics."""
    percentiles = stored_percentiles(row) if "percentile" in row.arrays else {}
    return f"percentiles of the time: {', '.join(f'{at:g}' for at in percentiles)}" if percentiles else ""


def _over(row: Row) -> str:
    """`over tcp: ipv4/hsn0`; '' where the devices are not known."""
    chosen = devices(row)
    return f"over {row.facts.carrier.transport}: {chosen}" if chosen else ""


def devices(row: Row) -> str:
    """Return what the transport of a row has chosen, such as `ipv4/hsn0`; '' where it is not known."""
    chosen = row.facts.carrier.devices or {}
    named = chosen if len(chosen) == 1 else [f"{name} (ranks {ranks})" for name, ranks in chosen.items()]
    return "; ".join(named)


def start_skew(row: Row) -> float | None:
    """Time in seconds between the first and the last pair that start in a round, median over rounds.

    A pair starts when the first of its two directions does. None for serial rows, and where it is not known
    which pairs ran at the same time.
    Large runs are sampled at `_SKEW_ROUNDS` rounds.
    """
    if "started" not in row.arrays or row.facts.schedule.order in ("serial", "unknown"):
        return None
    starts = _starts_of_list(row) if row.layout == "list" else _starts_of_matrix(row)
    finite = np.isfinite(starts)
    several = finite.sum(axis=1) > 2  # two ranks are one pair, whose start has no skew
    if not several.any():
        return None
    starts, finite = starts[several], finite[several]
    spread = np.where(finite, starts, -np.inf).max(axis=1) - np.where(finite, starts, np.inf).min(axis=1)
    return float(np.median(spread))


def _starts_of_list(row: Row) -> np.ndarray:
    """Start of every rank's pair: (round, rank), NaN where idle."""
    partner, started = np.asarray(row.arrays["dst"][:]), np.asarray(row.arrays["started"][:])
    theirs = np.take_along_axis(started, np.maximum(partner, 0), axis=0)
    return np.asarray(np.where(partner < 0, started, np.fmin(started, theirs)).T)


def _starts_of_matrix(row: Row) -> np.ndarray:
    """Start of every rank's pair in a sample of the rounds: (round, rank), NaN where idle."""
    started, rounds = row.arrays["started"], row.arrays["round"]
    repeats, ranks = started.shape[:2]
    total = row.facts.schedule.rounds
    sampled = np.unique(np.linspace(0, total - 1, min(total, _SKEW_ROUNDS)).astype(int))
    earliest = np.full((len(sampled), ranks), np.inf)
    block = max(1, (1 << 22) // ranks)
    for repeat in range(repeats):
        for start in range(0, ranks, block):
            numbers = np.asarray(rounds[repeat, start : start + block])
            times = np.asarray(started[repeat, start : start + block])
            src, dst = np.nonzero(np.isin(numbers, sampled) & np.isfinite(times))
            line = np.searchsorted(sampled, numbers[src, dst])
            for rank in (src + start, dst):
                np.minimum.at(earliest, (line, rank), times[src, dst])
    return np.where(np.isfinite(earliest), earliest, np.nan)


def _sizes(row: Row) -> str:
    sizes = [units.size(size) for size in row.sizes]
    return ", ".join(sizes) if len(sizes) <= 3 else f"{sizes[0]} .. {sizes[-1]} ({len(sizes)})"


def _ranks(run: Run) -> str:
    counts = np.bincount(np.asarray(run.facts.rank_host, dtype=int), minlength=len(run.hosts))
    low, high = int(counts.min()), int(counts.max())
    return f"{run.ranks:,}, {low if low == high else f'{low} to {high}'} per host"


def _simulated(facts: Mapping[str, Any]) -> str:
    """`simulated tree of 64 hosts; faults: host h13 tx: bandwidth -31 %; noise normal, scatter 0.02; seed 7`."""
    if not facts:
        return ""
    faults = "; ".join(map(_fault, facts.get("faults", ()))) or "none"
    others = {key: value for key, value in facts.items() if key not in ("topology", "faults")}
    return f"{facts.get('topology', '')}; faults: {faults}; {_plainly(others)}"


def _fault(fault: Mapping[str, Any]) -> str:
    """`host h13 tx: bandwidth -31 %, latency +500 ns`: what differs from a healthy component."""
    direction = "" if fault.get("direction", "both") == "both" else f" {fault['direction']}"
    retry = units.duration(float(fault.get("retry_s", 0)))
    words = (
        ("bandwidth_factor", 1.0, "bandwidth {0}"),
        ("added_latency_s", 0.0, "latency +{1}"),
        ("duplex_factor", 1.0, "bandwidth {0} in both directions at once"),
        ("retry_share", 0.0, f"{{4}} of the messages {retry} later"),
        ("flapping", 1.0, "in {4} of the rounds"),
        ("moved_to", "", "connected to {3}"),
        ("scatter", 1.0, "scatter times {2:g}"),
    )
    effects = []
    for key, healthy, template in words:
        value = fault.get(key, healthy)
        if value != healthy:
            size = 0.0 if isinstance(value, str) else float(value)
            figures = units.percent(size - 1), units.duration(size), size, value, units.share_text(size)
            effects.append(template.format(*figures))
    from fablint.model import ComponentRef  # imports pydantic, which other summaries do not need

    name = ComponentRef.model_validate(fault["component"]).text
    return f"{name}{direction}: {', '.join(effects)}"


def _plainly(value: Any) -> str:
    """Nested facts without the signs of a programming language."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plainly(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(f"({_plainly(inner)})" for inner in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"({value})" if " " in str(value) else str(value)


def _lost(entry: FailedRank) -> str:
    rank = "a rank" if entry.rank is None else f"rank {entry.rank}"
    when = [f"{name} {at}" for name, at in (("round", entry.round), ("partner", entry.partner)) if at is not None]
    return ", ".join([f"{rank} ({entry.host})", *when]) + f": {entry.reason}"
