"""Files that verbs write at the end: refused before anything is measured, replaced in one step."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fablint.errors import IncompleteError, UsageError


def refuse_unwritable(path: Path) -> None:
    """Raise UsageError where a file cannot be written; called before any host is contacted."""
    from fablint.system.written_files import is_standard_output, is_written_into

    if is_standard_output(path):
        return
    if path.is_dir() or not os.access(path if is_written_into(path) else path.absolute().parent, os.W_OK):
        raise UsageError(f"cannot write {path}", "name a file in a folder that you can write")


def refuse_terminal(path: Path | None, form: str) -> None:
    """Raise UsageError where a file that is no text would be printed on a terminal."""
    from fablint.system.written_files import is_standard_output

    if path is not None and is_standard_output(path) and sys.stdout.isatty():
        raise UsageError(f"{form} is not printed on a terminal", "redirect standard output, or name a file")


def write_file(path: Path, text: str) -> None:
    """Replace a file atomically: a collector never reads a partial file. Raises IncompleteError."""
    from fablint.system.written_files import replace_text

    try:
        replace_text(path, text)
    except BrokenPipeError:
        raise  # the reader of standard output has ended
    except OSError as error:
        raise IncompleteError(f"cannot write {path}: {error.strerror}", "free space, or name another file") from None
