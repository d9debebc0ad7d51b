"""Files that are written: a regular file is replaced in one step, and nothing else is ever replaced.

Devices, pipes, sockets and standard output are written into, also where a link names them. A link of another user is
never followed, and no other user can guess the name of a temporary file: in a folder such as /tmp a link could
otherwise name any file of the present user.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from fablint.errors import IncompleteError, UsageError

STANDARD_OUTPUT = Path("/dev/stdout")
_MOST_LINKS = 40  # from one to the next, as in Linux
_NAMES_OF_STANDARD_OUTPUT = (str(STANDARD_OUTPUT), "/dev/fd/1", "/proc/self/fd/1")


def is_standard_output(path: Path) -> bool:
    """Return whether the path is a name of standard output."""
    return str(path) in _NAMES_OF_STANDARD_OUTPUT


def is_written_into(path: Path) -> bool:
    """Return whether a file is written into and not replaced: standard output, a device, a pipe, a socket."""
    if is_standard_output(path):
        return True
    try:
        _refuse_links_of_others(path)
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _target(path: Path) -> Path:
    """Path of the file that a link names; the path itself where it is no link.

    Raises OSError for a link of another user than this one and root.
    """
    _refuse_links_of_others(path)
    return path.resolve() if path.is_symlink() else path


def _refuse_links_of_others(path: Path) -> None:
    link = path
    for _ in range(_MOST_LINKS):
        if not link.is_symlink():
            return
        if link.lstat().st_uid not in (0, os.geteuid()):
            raise OSError(errno.ELOOP, "it is a link of another user", str(path))
        link = link.parent / link.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


@contextmanager
def opened_into(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that is written into. Standard output is not opened anew: what was printed before is kept."""
    if is_standard_output(path):
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with path.open("wb") as stream:
        yield stream


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path; what the block writes there is the content of `path` at its end.

    If the block fails, a regular file keeps its old content, and nothing is written into other files. Of a link the
    file that it names is replaced. Raises OSError that names `path`.
    """
    try:
        if is_written_into(path):
            with tempfile.TemporaryDirectory() as folder:
                temporary = Path(folder) / "content"
                yield temporary
                with temporary.open("rb") as content, opened_into(path) as stream:
                    shutil.copyfileobj(content, stream)
            return
        target = _target(path)
        with _beside(target) as temporary:
            yield temporary
            temporary.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextmanager
def replaced(path: Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Open a file that replaces `path` at the end of the block, as `whole_file` does, with the mode or by the umask."""
    with whole_file(path) as temporary, temporary.open("wb") as stream:
        if mode is not None:
            os.fchmod(stream.fileno(), mode)
        yield stream


def replace_text(path: Path, text: str) -> None:
    """Replace a text file as `replace_octets` does; what UTF-8 lacks, as in names of files, is written as escapes."""
    replace_octets(path, text.encode("utf-8", "backslashreplace"))


def replace_octets(path: Path, octets: bytes) -> None:
    """Replace the content of a file as `whole_file` does. Raises OSError that names `path`."""
    with replaced(path) as stream:
        stream.write(octets)


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """Temporary path to write a new file or a directory at; renamed to `path` when the block succeeds.

    What is written into and not replaced, such as a pipe, may exist; it cannot become a directory.

    Raises
    ------
    UsageError
        `path` exists, its parent does not, or it may not be written.
    IncompleteError
        It could not be written, for example because the disk is full.
    """
    try:
        is_new, target = not is_written_into(path), _target(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})", "choose another name or remove it") from None
    if is_new and path.exists():
        raise UsageError(f"{path}: exists already", "choose another name or remove it")
    if is_new and not target.absolute().parent.is_dir():
        raise UsageError(f"{path}: the directory {target.absolute().parent} does not exist", "create it first")
    try:
        if is_new:
            with _beside(target) as temporary:
                yield temporary
                temporary.rename(target)
        else:
            with whole_file(path) as temporary:
                yield temporary
    except BrokenPipeError:
        raise  # the reader of standard output has ended
    except OSError as error:
        kind = UsageError if isinstance(error, PermissionError) else IncompleteError
        raise kind(
            f"{path}: cannot be written ({error.strerror or error})", "choose a writable directory with enough space"
        ) from None


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Path for a new file or directory on the file system of `path`, in a folder that is of this user alone.

    What the block does not rename to `path` is removed.
    """
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent, ignore_cleanup_errors=True) as folder:
        yield Path(folder) / path.name


@contextmanager
def private_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a file that only its owner can read, from its first byte on; at the end it replaces `path` in one step.

    A link is replaced and not followed.
    """
    descriptor, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # exclusive, mode 0600
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def write_private(path: Path, octets: bytes) -> None:
    """Write a `private_file` at once."""
    with private_file(path) as stream:
        stream.write(octets)
