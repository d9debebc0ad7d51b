"""Making something new on disk so that it is either absent or whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fablint.errors import IncompleteError, UsageError


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """A path beside `path` to write a file or a directory at; it is renamed to `path` when the block ends well.

    Raises:
        UsageError: `path` exists, its parent does not, or it may not be written.
        IncompleteError: it could not be written, for want of room say.
    """
    if path.exists():
        raise UsageError(f"{path}: exists already", "choose another name or remove it")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: there is no directory {path.absolute().parent}", "create it first")
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield beside
        beside.rename(path)
    except OSError as error:
        kind = UsageError if isinstance(error, PermissionError) else IncompleteError
        raise kind(
            f"{path}: cannot be written ({error.strerror or error})", "choose a place with room where you may write"
        ) from None
    finally:
        if beside.is_dir():
            shutil.rmtree(beside, ignore_errors=True)
        else:
            beside.unlink(missing_ok=True)
