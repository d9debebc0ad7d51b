"""Tables of osu_init and osu_hello, which measure the start of the ranks."""

from __future__ import annotations

from fablint.errors import UsageError
from fablint.model import Run
from fablint.report.tables.osu_names import VERSION
from fablint.report.tables.table import Rendered

_MS = 1000.0


def osu_init(run: Run) -> Rendered:
    """Return the time of MPI_Init: of the fastest and slowest rank, and the mean of all; whole ms, as in OSU.

    Raises
    ------
    UsageError
        The run has no start times of MPI.
    """
    mpi = run.facts.launch.mpi
    durations_s = mpi.init_s if mpi else ()
    if not durations_s:
        raise UsageError("table osu_init needs the time of MPI_Init, which the run does not have", "measure it again")
    least, most, mean = min(durations_s), max(durations_s), sum(durations_s) / len(durations_s)
    words = ", ".join(f"{name}: {value * _MS:.0f} ms" for name, value in (("min", least), ("max", most), ("avg", mean)))
    lines = (f"# OSU MPI Init Test v{VERSION}", f"nprocs: {run.ranks}, {words}")
    return Rendered(lines, {"table": "osu_init", "ranks": run.ranks, "min_s": least, "max_s": most, "mean_s": mean})


def osu_hello(run: Run) -> Rendered:
    """Return the number of ranks that started."""
    lines = (f"# OSU MPI Hello World Test v{VERSION}", f"This is a test with {run.ranks} processes")
    return Rendered(lines, {"table": "osu_hello", "ranks": run.ranks})
