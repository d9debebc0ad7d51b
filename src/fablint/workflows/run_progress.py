"""How far a run directory is: whether something measures into it, and how it ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from fablint.errors import IncompleteError, UsageError
from fablint.system import System
from fablint.workflows import analysis
from fablint.workflows.check.check_record import load_check
from fablint.workflows.run_files import CHECK, LAUNCHES

SILENCE_S = 600.0  # without a write, after which nothing measures into a run any more: a row writes far more often
POLL_S = 2.0
MOST_FILES = 5000  # of a run, of which the last write is looked for

Word = Literal["measuring", "complete", "interrupted", "abandoned"]


@dataclass(frozen=True)
class RunProgress:
    """State of a run directory. `abandoned`: it is not complete, and was not written for `SILENCE_S`."""

    path: Path
    word: Word
    hosts: int
    rows: tuple[int, int]  # complete, and planned so far
    written_s: float  # seconds since the last write
    exit_code: int | None = None  # of its verdict; None: there is none

    @property
    def over(self) -> bool:
        """Return whether nothing measures into the run any more."""
        return self.word != "measuring"

    @property
    def text(self) -> str:
        """One line for people."""
        rows = f"{self.rows[0]} of {self.rows[1]} rows" if self.rows[1] else "no row yet"
        verdict = f"  verdict with exit code {self.exit_code}" if self.over and self.exit_code is not None else ""
        written = "" if self.over and self.word != "abandoned" else f"  written {self.written_s:.0f} s ago"
        return f"{self.path}  {self.word}  {self.hosts} hosts  {rows}{written}{verdict}"

    def facts(self) -> dict[str, Any]:
        """Return the state as JSON."""
        complete, planned = self.rows
        kept = {name: value for name, value in vars(self).items() if name not in ("path", "rows")}
        return {"run": str(self.path), **kept, "rows_complete": complete, "rows_planned": planned}


def progress_of(system: System, path: Path) -> RunProgress:
    """Return how far a run is.

    Raises
    ------
    UsageError
        There is no run directory at `path`.
    BrokenRunError
        The metadata of the run is damaged.
    """
    from fablint.model.facts.run_attributes import RunFacts
    from fablint.store.facts.stored_facts import read_run_facts

    is_begun = (path / "zarr.json").exists()
    if not is_begun and not (path / CHECK).exists():
        what = "is no run directory" if path.exists() else "does not exist"
        raise UsageError(f"{path}: {what}, and no job for it was submitted from here", "give a run, or the id of a job")
    facts = read_run_facts(path) if is_begun else RunFacts(state="measuring")
    record = load_check(path)
    verdict = analysis.page_of(path).with_name("verdict.json")
    is_judged = verdict.exists() and (not is_begun or verdict.stat().st_mtime >= _newest(_files(path)))
    is_over = is_judged if record is not None else facts.state != "measuring"
    written_s = max(0.0, system.now().timestamp() - _newest(chain([path], islice(path.rglob("*"), MOST_FILES))))
    word: Word = "complete" if facts.state == "complete" else "interrupted"
    if not is_over:
        word = "measuring" if written_s < SILENCE_S else "abandoned"
    complete = sum(_is_complete(path / name) for name in facts.rows)
    rows = complete, len(facts.rows)
    return RunProgress(path, word, len(facts.hosts), rows, written_s, _exit_code(verdict) if is_over else None)


def await_run(
    system: System, say: Callable[[str], None], path: Path, pause: Callable[[float], None], poll_s: float = POLL_S
) -> RunProgress:
    """Wait until nothing measures into a run any more, twice in a row: a check goes from launch to launch.

    Parameters
    ----------
    system
        This machine.
    say
        Called with each line for the user.
    path
        The run directory.
    pause
        Waits for seconds.
    poll_s
        Seconds between two looks.

    Raises
    ------
    IncompleteError
        The run was not written for `SILENCE_S`.
    """
    said, over = "", 0
    while True:
        progress = progress_of(system, path)
        if progress.word == "abandoned":
            raise IncompleteError(
                f"{path}: was not written for {progress.written_s:.0f} s, nothing measures into it any more",
                f"continue with fablint resume {path}",
            )
        over = over + 1 if progress.over else 0
        if over > 1 or (progress.over and not said):
            return progress
        words = f"{path} {progress.word}: {progress.rows[0]} of {progress.rows[1]} rows"
        if words != said and not progress.over:
            say(words)
        said = words
        pause(poll_s)


def _files(path: Path) -> Iterator[Path]:
    """Metadata that change while something measures into a run, also into the runs of single launches."""
    yield path / "zarr.json"
    yield from path.glob("*/zarr.json")
    yield from path.glob(f"{LAUNCHES}/*/zarr.json")


def _newest(files: Iterable[Path]) -> float:
    """Return the time of the last change of some files, seconds since 1970."""
    times = [0.0]
    for file in files:
        with suppress(OSError):
            times.append(file.stat().st_mtime)
    return max(times)


def _is_complete(row: Path) -> bool:
    from fablint.store.facts.stored_facts import read_row_facts

    try:
        return read_row_facts(row).state == "complete"
    except (UsageError, IncompleteError, KeyError, OSError):
        return False


def _exit_code(verdict: Path) -> int | None:
    try:
        return int(json.loads(verdict.read_text(encoding="utf-8"))["exit_code"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
