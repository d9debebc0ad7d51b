"""Run directory -> `model.Run`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from fablint.errors import BrokenRunError
from fablint.model import Row, Run
from fablint.model.facts.run_attributes import RunFacts
from fablint.store.checksums import DIFFERS, describes_row, digest_of, read_checksums, refuse_damaged_root
from fablint.store.chunks import ChunkedArray, ChunkFiles, StoredArray, find_truncated
from fablint.store.facts.stored_facts import read_row_facts, read_run_facts
from fablint.store.layout import ARRAYS, check_shapes, required, valid_range
from fablint.store.metadata import DAMAGED, read_node
from fablint.store.plain_arrays import open_plain


def read_run(path: Path) -> Run:
    """Open a run directory, whatever the state of its measurement.

    Facts are read at once, arrays when they are sliced. A row that was never started is omitted; a chunk file that is
    missing, truncated, undecodable or not what was written, and impossible numbers read as missing. `Run.notes` has one
    line for each, and `Run.damaged` the files; both grow as arrays are read.

    Raises
    ------
    UsageError
        There is no run at `path`.
    BrokenRunError
        Metadata is damaged or of a newer format; the message names the file.
    """
    path = Path(path)
    files = ChunkFiles(path)
    try:
        refuse_damaged_root(path)
    except ValueError as error:
        files.note(str(error))
    facts = read_run_facts(path)
    rows = (_read_row(files, name, facts) for name in facts.rows if _is_intact(files, name))
    return Run(path, facts, tuple(row for row in rows if row is not None), files.notes, files.broken)


def _is_intact(files: ChunkFiles, name: str) -> bool:
    """Read the checksums of a row and verify what describes it; the chunks are verified when they are read."""
    try:
        checksums = read_checksums(files.root, name)
    except ValueError as error:
        files.note(str(error))
        return True
    with suppress(OSError):  # a file that cannot be read is named when the row is read
        for key, expected in checksums.items():
            if describes_row(key) and digest_of(files.root / key) != expected:
                files.exclude(key, f"{DIFFERS}, and describes the row")
                return False
    for key in checksums:
        if not (files.root / key).exists():
            files.exclude(key, "was deleted")
    files.checksums |= checksums
    return True


def _read_row(files: ChunkFiles, name: str, run: RunFacts) -> Row | None:
    """Read a row; None if its writer was killed before the arrays existed."""
    folder = files.root / name
    if not (folder / "zarr.json").is_file():
        files.note(f"{folder}: the row was not started")
        return None
    facts = read_row_facts(folder, run.hosts)
    layout = facts.schedule.layout
    present = [array for array in ARRAYS if (folder / array / "zarr.json").is_file()]
    missing = [array for array in required(layout) if array not in present]
    if not any(array.startswith("time_") for array in present):
        missing.append("time_*")
    if missing:
        if facts.state == "complete":
            raise BrokenRunError(f"{folder}: array {missing[0]} is missing", "the row is damaged: measure it again")
        files.note(f"{folder}: the row was not started")
        return None
    names = [array for array in present if ARRAYS[array].dimensions(layout) is not None]
    arrays = {array: _open_array(files, folder / array, valid_range(array, run.ranks, facts)) for array in names}
    check_shapes(str(folder), run.ranks, facts.schedule, arrays)
    return Row(name, facts, arrays)


def _open_array(files: ChunkFiles, folder: Path, valid: tuple[float, float] | None) -> StoredArray:
    node = read_node(folder, "array")
    expected = ARRAYS[folder.name].dtype
    if node.get("data_type") != expected:
        raise BrokenRunError(f"{folder / 'zarr.json'}: type {node.get('data_type')} where {expected} belongs", DAMAGED)
    try:
        array: ChunkedArray = open_plain(files, folder, node) or _open_repacked(files, folder)
        find_truncated(folder, node, files)
    except Exception as error:  # every error of Zarr about metadata becomes one line
        raise BrokenRunError(f"{folder / 'zarr.json'}: {_first_line(error)}", DAMAGED) from None
    return StoredArray(array, files, valid)


def _open_repacked(files: ChunkFiles, folder: Path) -> ChunkedArray:
    from fablint.store.foreign_arrays import RepackedArray

    return RepackedArray(files, folder)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
