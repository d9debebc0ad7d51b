"""Runs from and to other formats: files of other tools are read or imported, runs are exported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import UsageError
from fablint.workflows.measurement import free_output
from fablint.workflows.run_files import refuse_unbegun

if TYPE_CHECKING:
    from fablint.model import Run
    from fablint.system import System


def read(*paths: Path) -> Run:
    """Read one run directory, or the files of another tool as one run.

    Raises
    ------
    UsageError
        There is more than one run directory, or a path cannot be read.
    IncompleteError
        The check of a run directory ended before it measured anything between hosts.
    """
    from fablint.store import import_run, read_run

    if any(path.exists() and not path.is_dir() for path in paths):
        return import_run(paths)
    if len(paths) > 1:
        raise UsageError(f"{paths[1]}: a second run", "give one run; -o names a file to write")
    refuse_unbegun(paths[0])
    return read_run(paths[0])


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
    from fablint.plan import parse_hosts
    from fablint.store import import_run, write_run

    free_output(system, output)
    run = import_run(files, parse_hosts(hosts) if hosts else ())
    write_run(output, run)
    return run
