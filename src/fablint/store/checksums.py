"""Checksums of the complete rows of a run directory and of its metadata: `checksums/NAME.sha256`, as of sha256sum.

A chunk of measured times shows by itself only damage that makes them impossible; its checksum shows every changed bit.
A row has checksums once it is complete, and none again before its files are written: the engine, `absorb` and
`set_state` remove them. The rows of a run that was killed have none, and are read all the same.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from fablint.errors import BrokenRunError
from fablint.store.layout import COORDINATES, TABLES
from fablint.system.written_files import replace_text

FOLDER = "checksums"
ROOT = "zarr.json"  # metadata of the run
DIFFERS = "its checksum is not that of the file that was written"
UNVERIFIED = "its files are read without verification"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
_END = "# sha256 of these lines: "


def checksum(octets: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(octets).hexdigest()


def write_checksums(path: Path, rows: Iterable[str]) -> None:
    """Write the checksums of the metadata of a run, and those of complete rows that have none.

    Raises OSError if a file cannot be read or written.
    """
    (path / FOLDER).mkdir(exist_ok=True)
    _write(path, ROOT, [path / ROOT, *_files(path / TABLES)])
    for name in rows:
        if not _file_of(path, name).exists():
            _write(path, name, _files(path / name))


def remove_checksums(path: Path, name: str) -> None:
    """Remove the checksums of a row, or those of the metadata (`ROOT`), whose files are about to be written."""
    _file_of(path, name).unlink(missing_ok=True)


def read_checksums(path: Path, name: str) -> dict[str, str]:
    """Checksums of a row, by path below the run directory; empty if it has none.

    Raises
    ------
    ValueError
        The file of the checksums is damaged or cannot be read.
    """
    file = _file_of(path, name)
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ValueError(f"{file}: cannot be read ({error.strerror}): {UNVERIFIED}") from None
    lines, _, end = text.rpartition(_END.encode())
    if end.decode("ascii", "replace") != f"{checksum(lines)}\n":
        raise ValueError(f"{file}: damaged: {UNVERIFIED}")
    matches = (_LINE.fullmatch(line) for line in lines.decode().splitlines())
    return {match[2]: match[1] for match in matches if match and _belongs_to(match[2], name)}


def refuse_damaged_root(path: Path) -> None:
    """Raise BrokenRunError if the metadata of a run is not what was written, ValueError if that cannot be verified."""
    for key, expected in read_checksums(path, ROOT).items():
        if digest_of(path / key) != expected:
            remedy = f"restore it, or measure again; if it was edited on purpose, remove {_file_of(path, ROOT)}"
            raise BrokenRunError(f"{path / key}: {DIFFERS}", remedy)


def discard_damaged(path: Path) -> None:
    """Remove the damaged files of the rows of a run, so that the rows lack these cells, and a resume measures them.

    A row whose metadata is damaged is removed as a whole. With a damaged chunk go the counts of its cells: a cell
    without a count is missing.
    """
    for name in (file.stem for file in (path / FOLDER).glob("*.sha256") if file.stem != ROOT):
        try:
            expected = read_checksums(path, name)
        except ValueError:
            continue
        damaged = [key for key, digest in expected.items() if digest_of(path / key) != digest]
        if any(map(describes_row, damaged)):
            shutil.rmtree(path / name)
        for key in damaged:
            (path / key).unlink(missing_ok=True)
            _count_of(path / key).unlink(missing_ok=True)
        if damaged:
            remove_checksums(path, name)


def describes_row(key: str) -> bool:
    """Tell whether a file, by its path below the run directory, is metadata or a coordinate of a row, and no
    measurement.
    """
    parts = key.split("/")
    return parts[-1] == ROOT or parts[1] in (TABLES, *COORDINATES)


def digest_of(file: Path) -> str:
    """Checksum of a file; empty if it does not exist."""
    try:
        return checksum(file.read_bytes())
    except FileNotFoundError:
        return ""


def _count_of(chunk: Path) -> Path:
    """The chunk of the counts with the cells of another chunk: `c.SRC.0.0`, or `c.REPEAT.SRC.0.0` in a matrix."""
    counts = chunk.parent.parent / "count"
    path = next(counts.glob("c.*"), counts / "c.0.0.0")
    block = len(path.name.split(".")) - 2
    return counts / ".".join([*chunk.name.split(".")[:block], "0", "0"])


def _belongs_to(key: str, name: str) -> bool:
    """Tell whether a path is metadata of the run or a file of the row: what a crafted file names is not removed."""
    parts = key.split("/")
    folder = TABLES if name == ROOT else name
    return (name == key == ROOT) or (len(parts) > 1 and parts[0] == folder and ".." not in parts)


def _file_of(path: Path, name: str) -> Path:
    return path / FOLDER / f"{name}.sha256"


def _files(folder: Path) -> Iterator[Path]:
    """Files of a row, without those that a write in progress or a killed one left."""
    return (file for file in sorted(folder.rglob("*")) if file.is_file() and not file.name.startswith("."))


def _write(path: Path, name: str, files: Iterable[Path]) -> None:
    lines = "".join(f"{checksum(file.read_bytes())}  {file.relative_to(path).as_posix()}\n" for file in files)
    replace_text(_file_of(path, name), f"{lines}{_END}{checksum(lines.encode())}\n")
