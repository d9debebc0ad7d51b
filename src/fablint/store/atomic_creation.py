"""Creation of files and directories that are either absent or complete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fablint.errors import IncompleteError, UsageError


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """Temporary path beside `path` to write a file or a directory at; renamed to `path` when the block succeeds.

    Raises
    ------
    UsageError
        `path` exists, its parent does not, or it may not be written.
    IncompleteError
        It could not be written, for example because the disk is full.
    """
    if path.exists():
        raise UsageError(f"{path}: exists already", "choose another name or remove it")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: the directory {path.absolute().parent} does not exist", "create it first")
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.rename(path)
    except OSError as error:
        kind = UsageError if isinstance(error, PermissionError) else IncompleteError
        raise kind(
            f"{path}: cannot be written ({error.strerror or error})", "choose a writable directory with enough space"
        ) from None
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)
