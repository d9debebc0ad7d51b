"""Runs from and to other formats: files of other tools are read or imported, runs are exported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import UsageError
from fablint.workflows.measurement import free_output
from fablint.workflows.run_files import refuse_unbegun, with_own_counters

if TYPE_CHECKING:
    from fablint.model import Run
    from fablint.system import System


def read(*paths: Path) -> Run:
    """Read one run directory, several that measured a fabric in parts as one run, or the files of another tool.

    Raises
    ------
    UsageError
        Run directories measured different things or are of the same hosts, or a path cannot be read.
    IncompleteError
        The check of a run directory ended before it measured anything between hosts.
    """
    from fablint.store import read_run

    if any(path.exists() and not path.is_dir() for path in paths):
        from fablint.store import import_run

        return import_run(paths)
    for number, path in enumerate(paths):
        if path in paths[:number]:
            raise UsageError(f"{path} is named twice", "name each run once")
        refuse_unbegun(path)
    runs = [read_run(path) for path in paths]
    return runs[0] if len(runs) == 1 else _joined(runs)


def _joined(runs: Sequence[Run]) -> Run:
    """Return the runs of several allocations as one; a host that they spell differently has the name of the first."""
    from fablint.model.host_name import HostNames
    from fablint.store import join_runs

    renamed: list[Run] = []
    for run in runs:
        names = HostNames(host for one in renamed for host in one.hosts)
        spelled = {host: name for host in run.hosts if (name := names.find(host)) is not None}
        renamed.append(with_own_counters(run.renamed(spelled)))
    for run in renamed:
        others = {host for other in renamed if other is not run for host in other.hosts}
        if others.isdisjoint(run.hosts):
            raise UsageError(
                f"{run.path} has no host in common with the other runs",
                "plan with fablint plan --split, which gives each allocation hosts of another",
            )
    return join_runs(renamed)


def import_files(system: System, files: Sequence[Path], output: Path, hosts: str | None = None) -> Run:
    """Write files of another tool as a run directory and return the run.

    Parameters
    ----------
    system
        The machine.
    files
        Output files of one tool.
    output
        Run directory to create.
    hosts
        Hosts of the ranks in rank order, such as `n[1-4]`, for files that do not name them.
    """
    from fablint.plan import parse_rank_hosts
    from fablint.store import import_run, write_run

    free_output(system, output)
    run = import_run(files, parse_rank_hosts(hosts) if hosts else ())
    write_run(output, run)
    return run
