"""Run directory -> `model.Run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import BrokenRunError
from fablint.model import Row, Run
from fablint.store.layout import ARRAYS, check_shapes, required, valid_range
from fablint.store.metadata import DAMAGED, read_node, read_root, read_row

if TYPE_CHECKING:
    from fablint.store.chunks import ChunkStore, StoredArray


def read_run(path: Path) -> Run:
    """Open a run directory, whatever became of its measurement.

    Facts are read at once, arrays when they are sliced. A row that was never started is left out; a chunk file that is
    missing, truncated or undecodable and numbers that cannot be true read as missing. `Run.notes` says so in
    one line each, and grows as arrays are read.

    Raises:
        UsageError: there is no run at `path`.
        BrokenRunError: metadata is damaged or of a newer format; names the file.
    """
    from fablint.store.chunks import ChunkStore

    path = Path(path)
    attributes = read_root(path)["attributes"]
    store = ChunkStore(path)
    found = (_read_row(store, name, attributes["ranks"]) for name in attributes["rows"])
    return Run(path, attributes, tuple(row for row in found if row is not None), store.notes)


def _read_row(store: ChunkStore, name: str, ranks: int) -> Row | None:
    """The row, or None where its writer was killed before the arrays existed."""
    folder = store.root / name
    if not (folder / "zarr.json").is_file():
        store.note(f"{folder}: the row was not started")
        return None
    attributes = read_row(folder)["attributes"]
    layout = attributes["layout"]
    present = [array for array in ARRAYS if (folder / array / "zarr.json").is_file()]
    missing = [array for array in required(layout) if array not in present]
    if not any(array.startswith("time_") for array in present):
        missing.append("time_*")
    if missing:
        if attributes["state"] == "complete":
            raise BrokenRunError(f"{folder}: array {missing[0]} is missing", "the row is damaged: measure it again")
        store.note(f"{folder}: the row was not started")
        return None
    wanted = [array for array in present if ARRAYS[array].dimensions(layout) is not None]
    arrays = {array: _open_array(store, folder / array, valid_range(array, ranks, attributes)) for array in wanted}
    check_shapes(str(folder), ranks, attributes, arrays)
    return Row(name, attributes, arrays)


def _open_array(store: ChunkStore, folder: Path, valid: tuple[float, float] | None) -> StoredArray:
    import zarr

    from fablint.store.chunks import StoredArray, find_truncated

    node = read_node(folder, "array")
    expected = ARRAYS[folder.name].dtype
    if node.get("data_type") != expected:
        raise BrokenRunError(f"{folder / 'zarr.json'}: type {node.get('data_type')} where {expected} belongs", DAMAGED)
    try:
        array = zarr.open_array(store, path=folder.relative_to(store.root).as_posix(), mode="r")
        find_truncated(folder, node, store)
    except Exception as error:  # whatever Zarr finds wrong with metadata, it is one line to the user
        raise BrokenRunError(f"{folder / 'zarr.json'}: {_first_line(error)}", DAMAGED) from None
    return StoredArray(array, store, valid)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
