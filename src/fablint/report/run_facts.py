"""What was measured, and with what: facts of a run that every report shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fablint.model import Row, Run, Scope
from fablint.model.figures.pair_metrics import PREFERRED_STATISTICS
from fablint.model.figures.percentiles import Statistic, times_at
from fablint.report.conditions import conditions
from fablint.text import units

if TYPE_CHECKING:
    from fablint.model import Diagnosis, Fit

SAMPLED_ROWS = 256  # source ranks that stand for all where a median over everything would mean reading gigabytes


def title(run: Run) -> str:
    """Return the name of the run directory, or of the files of other tools that were imported into memory."""
    files = run.facts.imported.files if run.facts.imported else ()
    return run.path.name if run.path else ", ".join(Path(one).name for one in files) or "a run in memory"


def statistic(row: Row) -> str | None:
    """The stored statistic that stands for a pair's time; None where the row stored no times."""
    return next((name for name in PREFERRED_STATISTICS if name in row.statistics), None)


def planned_pairs(row: Row) -> int:
    """Directed pairs that the row's plan measures, repeats included."""
    return sum(row.facts.schedule.planned_cells)


def measured_cells(row: Row) -> int:
    """Cells (pair, size, repeat) with at least one sample and a known time. Reads both in blocks."""
    counts, known = row.arrays["count"], statistic(row)
    times = None if known is None else row.arrays[f"time_{known}"]
    repeats, ranks, receivers = counts.shape[:3] if row.layout == "matrix" else (1, *counts.shape[:2])
    block = max(1, (1 << 24) // max(1, receivers * counts.shape[-1]))
    measured = 0
    for repeat in range(repeats):
        for start in range(0, ranks, block):
            senders = slice(start, start + block)
            place = (repeat, senders) if row.layout == "matrix" else senders
            cells = counts[place] > 0
            measured += int(np.count_nonzero(cells if times is None else cells & ~np.isnan(times[place])))
    return measured


def fit_of(diagnosis: Diagnosis, row: Row, size: int) -> Fit | None:
    """The fitted model of a row and size."""
    return next((fit for fit in diagnosis.fits if (fit.row, fit.size) == (row.name, size)), None)


def informative_size(row: Row) -> int:
    """The size whose figure says most about a row: the smallest for a latency, the largest for a bandwidth."""
    return max(row.sizes) if units.is_rate(row.quantity) else min(row.sizes)


def typical(row: Row, size: int, fit: Fit | None) -> str:
    """The healthy figure: per scope where a model was fitted, else the median of what was measured.

    Of a row measured under several conditions the median under each.
    """
    if len(parts := conditions(row)) > 1:
        return ", ".join(f"{part.facts.condition} {typical(part, size, None)}" for part in parts)
    times = {scope: time for scope, time in (fit.class_time if fit else {}).items() if np.isfinite(time)}
    if times:
        named = len(times) > 1 or Scope.UNKNOWN not in times
        return ", ".join(
            (f"{scope} " if named else "") + units.figure(row, size, time)
            for scope, time in sorted(times.items(), key=lambda item: list(Scope).index(item[0]))
        )
    median = sampled_median(row, size)
    return "nothing measured" if median is None else units.figure(row, size, median)


def sampled_median(row: Row, size: int, of: Statistic | None = None) -> float | None:
    """Median over pairs of a statistic of their times, seconds: by default of the one that stands for a pair.

    Of all pairs up to `SAMPLED_ROWS` source ranks, beyond that of so many.
    """
    of = statistic(row) if of is None else of
    if of is None:
        return None
    every, index, is_list = slice(None), row.sizes.index(size), row.layout == "list"
    ranks = row.arrays["count"].shape[0 if is_list else 1]
    sources = np.unique(np.linspace(0, ranks - 1, min(ranks, SAMPLED_ROWS)).astype(int)).tolist()
    places = [(source, every, index) if is_list else (every, source, every, index) for source in sources]
    times = np.concatenate([times_at(row, of, place).ravel() for place in places])
    times = times[np.isfinite(times)]
    return float(np.median(times)) if times.size else None


def notes(run: Run, diagnosis: Diagnosis) -> list[str]:
    """What the judgement and the reader of the run have to say, each once."""
    from fablint.text.notes import note_text

    return list(dict.fromkeys([*map(note_text, diagnosis.verdict.notes), *run.notes]))


def instrument(run: Run) -> str:
    """What the instrument says about itself, in one line."""
    facts, mpi = run.facts.instrument, run.facts.launch.mpi
    words = [f"clock {facts.clock}"] if facts.clock else []
    named = (
        (facts.resolution_s, "resolution"),
        (facts.overhead_s, "overhead"),
        (facts.empty_kernel_s, "empty kernel"),
        (facts.barrier_skew_s, "barrier skew"),
    )
    words += [f"{label} {units.duration(seconds)}" for seconds, label in named if seconds is not None]
    if mpi and mpi.thread_level != "single":
        words.append(f"MPI_THREAD_{mpi.thread_level.upper()}: figures include the locks of the MPI library")
    if facts.oversubscribed:
        words.append("OVERSUBSCRIBED: more ranks than CPUs")
    return ", ".join(words) or "unknown"
