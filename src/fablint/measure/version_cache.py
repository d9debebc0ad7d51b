"""Cache of outputs of `PROGRAM --version` below FABLINT_HOME, valid until a file or variable that they depend on
changes.

Only the outputs of binaries are cached. The output of a script may depend on anything, so that it runs every time.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from fablint.system import System
from fablint.system.written_files import write_private
from fablint.version import __version__

FOLDER = "versions"  # below FABLINT_HOME
_BINARY = b"\x7fELF"
_MOST_BYTES = 1 << 16  # of a cached output
# Variables that determine which libraries a program loads and how an MPI behaves.
_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LOADEDMODULES")
_PARTS_OF_VARIABLES = ("MPI", "PMI", "PRTE", "HYDRA")


@dataclass(frozen=True)
class VersionCache:
    """Outputs of programs of one MPI, one file per command line. If a file is damaged, its program runs again."""

    system: System
    files: tuple[Path, ...]  # on which the outputs depend in addition to the program: `mpicxx`, the MPI libraries

    def get(self, argv: Sequence[str]) -> str | None:
        """Cached output; None if there is none, it is out of date, or another user may have written it."""
        key = self._key(argv)
        if key is None:
            return None
        try:
            cached = json.loads(_read_own(self._path(argv)))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(cached, dict) or cached.get("key") != key or not isinstance(cached.get("text"), str):
            return None
        return str(cached["text"])

    def put(self, argv: Sequence[str], text: str) -> None:
        """Cache the output. Does nothing if the folder cannot be written."""
        key = self._key(argv)
        content = json.dumps({"key": key, "text": text}).encode()
        if key is None or len(content) > _MOST_BYTES:
            return
        path = self._path(argv)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_private(path, content)

    def _path(self, argv: Sequence[str]) -> Path:
        """File per user and command line, so that the folder does not grow with every change."""
        digest = sha256(json.dumps(list(argv)).encode()).hexdigest()[:16]
        return self.system.own_path(FOLDER) / f"{os.geteuid()}-{digest}.json"

    def _key(self, argv: Sequence[str]) -> str | None:
        """Hash of everything that the output depends on; None if that is unknown."""
        program = Path(argv[0])
        try:
            with program.open("rb") as file:
                if file.read(len(_BINARY)) != _BINARY:
                    return None
            identities = [_identity(path) for path in (program, *self.files)]
        except OSError:
            return None
        variables = {
            name: value
            for name, value in sorted(self.system.environ.items())
            if name in _VARIABLES or any(part in name for part in _PARTS_OF_VARIABLES)
        }
        return sha256(json.dumps([__version__, list(argv), identities, variables]).encode()).hexdigest()


def _identity(path: Path) -> list[str | int]:
    """Values that change when a file is replaced or rewritten."""
    resolved = path.resolve()
    facts = resolved.stat()
    return [str(resolved), facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns]


def _read_own(path: Path) -> bytes:
    """Content of a regular file that only this user can write; FABLINT_HOME may be shared.

    Raises OSError for any other file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
            raise PermissionError(f"{path}: not a file that only this user can write")
        return file.read(_MOST_BYTES)
