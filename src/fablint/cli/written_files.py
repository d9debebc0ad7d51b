"""Files that verbs write at the end: refused before anything is measured, replaced in one step."""

from __future__ import annotations

import os
from pathlib import Path

from fablint.errors import IncompleteError, UsageError


def refuse_unwritable(path: Path) -> None:
    """Raise UsageError where a file cannot be written; called before any host is contacted."""
    if path.is_dir() or not os.access(path if _in_place(path) else path.absolute().parent, os.W_OK):
        raise UsageError(f"cannot write {path}", "name a file in a folder that you can write")


def write_file(path: Path, text: str) -> None:
    """Replace a file atomically: a collector never reads a partial file. Raises IncompleteError."""
    try:
        if _in_place(path):
            path.write_text(text, encoding="utf-8", errors="replace")
            return
        part = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            part.write_text(text, encoding="utf-8", errors="replace")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise IncompleteError(f"cannot write {path}: {error.strerror}", "free space, or name another file") from None


def _in_place(path: Path) -> bool:
    """Whether the file is written into and not replaced: a pipe, /dev/stdout."""
    return path.is_symlink() or (path.exists() and not path.is_file())
