"""Programs that refuse to start, or print no figure: they are reported with the reason, and the others are measured."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from fablint.measure.engine import first_error
from fablint.system import Completed

Figure = TypeVar("Figure")


class FailedStart(Exception):
    """A program ended without a figure; the text is the reason."""


def output_of(
    words: Sequence[str], environ: Mapping[str, str] | None = None, *, both: bool = False, limit_s: float | None = None
) -> str:
    """Return what a program prints on stdout, or on stdout and stderr. Raises FailedStart where it fails."""
    errors = subprocess.STDOUT if both else subprocess.PIPE
    try:
        done = subprocess.run(
            words, env=environ, check=False, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=limit_s
        )
    except OSError as error:
        raise FailedStart(f"{words[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise FailedStart(f"{Path(words[0]).name} did not end within {limit_s:g} s") from None
    if done.returncode != 0:
        raise FailedStart(first_error(Completed(tuple(words), done.returncode, done.stdout, done.stderr or "")))
    return done.stdout


def read_from(read: Callable[[str, int], Figure], text: str, size: int) -> Figure:
    """Return the figure that `read` finds in the output of a program. Raises FailedStart where there is none."""
    try:
        return read(text, size)
    except (ValueError, IndexError, KeyError, StopIteration):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        raise FailedStart(f"no figure for {size} bytes in its output: {lines[-1] if lines else 'no line'}") from None
