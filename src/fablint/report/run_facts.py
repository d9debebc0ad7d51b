"""What was measured, and with what: facts of a run that every report shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fablint.model import Row, Run, Scope
from fablint.model.figures.percentiles import Statistic, times_at
from fablint.report.conditions import conditions
from fablint.report.group_rates import group_figures, group_rates
from fablint.text import units

if TYPE_CHECKING:
    from fablint.model import Diagnosis, Fit

SAMPLED_ROWS = 256  # source ranks that stand for all where a median over everything would mean reading gigabytes


def title(run: Run) -> str:
    """Return the name of the run directory, or of the files of other tools that were imported into memory."""
    files = run.facts.imported.files if run.facts.imported else ()
    return run.path.name if run.path else ", ".join(Path(one).name for one in files) or "a run in memory"


def planned_pairs(row: Row) -> int:
    """Directed pairs that the row's plan measures, repeats included."""
    return sum(row.facts.schedule.planned_cells)


def measured_pairs(row: Row) -> int:
    """Directed pairs, repeats included, of which all sizes have a sample and a known time. Reads both in blocks."""
    counts = row.arrays["count"]
    times = row.times if row.statistic else None
    repeats, ranks, receivers = counts.shape[:3] if row.layout == "matrix" else (1, *counts.shape[:2])
    block = max(1, (1 << 24) // max(1, receivers * counts.shape[-1]))
    measured = 0
    for repeat in range(repeats):
        for start in range(0, ranks, block):
            senders = slice(start, start + block)
            place = (repeat, senders) if row.layout == "matrix" else senders
            cells = counts[place] > 0
            cells = cells if times is None else cells & ~np.isnan(times[place])
            measured += int(np.count_nonzero(cells.all(axis=-1)))
    return measured


def fit_of(diagnosis: Diagnosis, row: Row, size: int) -> Fit | None:
    """The fitted model of a row and size."""
    return next((fit for fit in diagnosis.fits if (fit.row, fit.size) == (row.name, size)), None)


def informative_size(row: Row) -> int:
    """The size whose figure says most about a row: the smallest for a latency, the largest for a bandwidth."""
    return max(row.sizes) if units.is_rate(row.quantity) or group_rates(row) else min(row.sizes)


def typical(row: Row, size: int, fit: Fit | None) -> str:
    """The healthy figure: per scope where a model was fitted, else the median of what was measured.

    Of a row measured under several conditions the median under each, of all ranks together their rates.
    """
    if figures := group_figures(row, size, sampled_median(row, size) if group_rates(row) else None):
        return ", ".join(f"{name} {words}" for name, words in figures.items())
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


def sampled_median(row: Row, size: int, statistic: Statistic = "") -> float | None:
    """Median over pairs of a statistic of their times, seconds: by default of the one that stands for a pair.

    Of all pairs up to `SAMPLED_ROWS` source ranks, beyond that of so many.
    """
    statistic = statistic or row.statistic
    if not statistic:
        return None
    whole_axis, index, is_list = slice(None), row.sizes.index(size), row.layout == "list"
    ranks = row.arrays["count"].shape[0 if is_list else 1]
    sources = np.unique(np.linspace(0, ranks - 1, min(ranks, SAMPLED_ROWS)).astype(int)).tolist()
    places = [(source, whole_axis, index) if is_list else (whole_axis, source, whole_axis, index) for source in sources]
    times = np.concatenate([times_at(row, statistic, place).ravel() for place in places])
    times = times[np.isfinite(times)]
    return float(np.median(times)) if times.size else None


def local_figures(run: Run, diagnosis: Diagnosis) -> str:
    """Return the latency and the bandwidth between ranks of one host: the typical figure of the first row of each.

    Empty where several hosts were measured.
    """
    if diagnosis.verdict.verdict != "local":
        return ""
    figures: dict[str, str] = {}
    for row in run.rows:
        if row.is_of_network:
            continue
        size = informative_size(row)
        fit = fit_of(diagnosis, row, size)
        times = [time for time in (fit.class_time if fit else {}).values() if np.isfinite(time)]
        time = times[0] if len(times) == 1 else sampled_median(row, size)
        if time is not None:
            figures.setdefault(row.quantity, units.figure(row, size, time))
    return ", ".join(f"{quantity} {figure}" for quantity, figure in figures.items())


def notes(run: Run, diagnosis: Diagnosis) -> list[str]:
    """Return what the judgement and the reader of the run have to say, each once."""
    from fablint.text.notes import note_text

    return list(dict.fromkeys([*map(note_text, diagnosis.verdict.notes), *run.notes]))


def instrument(run: Run) -> str:
    """Return what the instrument says about itself, in one line."""
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
