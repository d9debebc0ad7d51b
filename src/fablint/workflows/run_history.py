"""The history of runs: adding runs, and baselines for later checks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import FablintError, UsageError
from fablint.workflows.run_files import load_thresholds, save_text

if TYPE_CHECKING:
    from fablint.history.database import Database
    from fablint.model.limits.thresholds import Threshold
    from fablint.system import System

FILE = "history.sqlite"
_BASELINES = "baselines"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Added:
    """What became of a run."""

    path: Path
    is_new: bool = False
    error: str = ""


@contextmanager
def opened(system: System, file: Path | None, *, create: bool = False) -> Iterator[Database]:
    """Open a history, and close it at the end of the block.

    Parameters
    ----------
    system
        This machine.
    file
        The history; None: `history.sqlite` below FABLINT_HOME.
    create
        Whether a missing history is made.

    Raises
    ------
    UsageError
        There is no history, or the file is not one.
    """
    from fablint.history.database import Database

    database = Database(file or system.home_folder(".") / FILE, create=create)
    try:
        yield database
    finally:
        database.close()


def add_runs(database: Database, paths: Sequence[Path], topology: Path | None) -> Iterator[Added]:
    """Analyse runs and add each; a run that cannot be read is reported, and the others are added.

    Parameters
    ----------
    database
        The history.
    paths
        Run directories, or files of other tools, as for fablint import.
    topology
        Topology file of all; None: of each run its own.
    """
    from fablint.history.database import add
    from fablint.history.records import record_of
    from fablint.workflows.analysis import judge
    from fablint.workflows.run_formats import read

    for path in paths:
        try:
            run = read(path)
            diagnosis = judge(run, topology)
            where = os.fsencode(path.absolute()).decode(errors="backslashreplace")  # SQLite's texts are UTF-8
            yield Added(path, is_new=add(database, record_of(run, diagnosis, where)))
        except FablintError as error:
            yield Added(path, error=str(error))


def save_baseline(system: System, name: str, thresholds: Sequence[Threshold]) -> Path:
    """Write a baseline below FABLINT_HOME.

    Parameters
    ----------
    system
        This machine.
    name
        Of the baseline; an older one of this name is replaced.
    thresholds
        Its contents.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    UsageError
        The file cannot be written.
    """
    from fablint.history.baselines import baseline_text

    path = _baseline_path(system, name)
    save_text(path, baseline_text(name, thresholds))
    return path


def site_with_baseline(system: System, name: str | None, site: Path | None) -> Path | None:
    """Return a site file with the thresholds of a baseline.

    Parameters
    ----------
    system
        This machine.
    name
        Of a baseline; None: the site file is returned.
    site
        The site file, if there is one.

    Raises
    ------
    UsageError
        There is no such baseline, or one of the files is wrong.
    """
    from fablint.history.baselines import with_baseline

    if name is None:
        return site
    path = _baseline_path(system, name)
    site_path = system.home / _BASELINES / path.name
    path = site_path if site_path.exists() and not path.exists() else path
    if not path.exists():
        baseline_names = sorted(file.stem for file in path.parent.glob("*.toml"))
        hint = (
            f"there are {', '.join(baseline_names)}" if baseline_names else f"fablint history baseline {name} makes it"
        )
        raise UsageError(f"--baseline {name}: there is no such baseline", hint)
    if site is None:
        return path
    site_thresholds = load_thresholds(site)
    both = system.home_folder(_BASELINES) / f"{name}+{re.sub('[^A-Za-z0-9._-]', '_', site.stem)}.site"
    save_text(both, with_baseline(site.read_text(encoding="utf-8"), site_thresholds, load_thresholds(path)))
    return both


def _baseline_path(system: System, name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise UsageError(f"'{name[:64]}' is not a name of a baseline", "use letters, digits, dot, dash and underscore")
    return system.home_folder(_BASELINES) / f"{name}.toml"
