"""Arrays whose chunks are plain files, read with numpy alone.

The engine and `write_run` write all their arrays in one form: `metadata.array_node`. Importing Zarr takes longer than
reading a small run, so that Zarr reads only what another writer made (`repacked`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from fablint.store.chunks import ChunkFiles
from fablint.store.layout import ARRAYS
from fablint.store.metadata import array_node


def open_plain(files: ChunkFiles, folder: Path, node: Mapping[str, Any]) -> PlainArray | None:
    """Return the array in `folder` if its metadata `node` is what `array_node` makes, else None."""
    dtype = np.dtype(ARRAYS[folder.name].dtype)
    grid = node.get("chunk_grid")
    configuration = grid.get("configuration") if isinstance(grid, dict) else None
    chunks = configuration.get("chunk_shape") if isinstance(configuration, dict) else None
    shape, dimensions, fill = node.get("shape"), node.get("dimension_names"), _fill_value(node.get("fill_value"), dtype)
    if not _are_lengths(shape, 0) or not _are_lengths(chunks, 1) or not isinstance(dimensions, list):
        return None
    if not len(shape) == len(chunks) == len(dimensions) > 0 or not isinstance(node.get("attributes"), dict):
        return None
    if fill is None:
        return None
    expected = array_node(dtype.name, dimensions, shape, chunks, fill) | {"attributes": node["attributes"]}
    if node != expected or not all(isinstance(name, str) for name in dimensions):
        return None
    return PlainArray(files, folder, (tuple(shape), tuple(chunks)), fill)


def _fill_value(stored: Any, dtype: np.dtype[Any]) -> float | int | None:
    """The fill value of an array of that type; None if JSON does not give it as a plain number or `NaN`."""
    if dtype.kind == "f":
        limit = float(np.finfo(dtype).max)
        if stored == "NaN":
            return math.nan
        return stored if type(stored) in (int, float) and abs(stored) <= limit else None
    numbers = np.iinfo(dtype)
    return stored if type(stored) is int and numbers.min <= stored <= numbers.max else None


def _are_lengths(values: Any, least: int) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(value) is int and value >= least for value in values)


class PlainArray:
    """An array of uncompressed little-endian chunk files named `c.0.0`, read when it is sliced."""

    def __init__(
        self, files: ChunkFiles, folder: Path, grid: tuple[tuple[int, ...], tuple[int, ...]], fill_value: float | int
    ) -> None:
        """`grid`: the shape of the array and that of its chunks."""
        self._files = files
        self.path = folder.relative_to(files.root).as_posix()
        self.shape, self.chunks = grid
        self.ndim = len(self.shape)
        self.dtype: np.dtype[Any] = np.dtype(ARRAYS[folder.name].dtype)
        self.fill_value = fill_value

    def __getitem__(self, key: Any) -> Any:
        """Values at `key`, as numpy selects them. Raises ValueError or OSError for a chunk that cannot be read."""
        selection = _selected(key, self.shape)
        if selection is None:  # an index array, a step backwards: nothing that a large array is read with
            return self[...][key]
        ranges, singles = selection
        result = np.full([len(part) for part in ranges], self.fill_value, self.dtype)
        for parts in itertools.product(*map(_touched, ranges, self.chunks)):
            cells = self._cells([number for number, _, _ in parts])
            if cells is not None:
                result[tuple(to for _, to, _ in parts)] = cells[tuple(source for _, _, source in parts)]
        return result[tuple(0 if single else slice(None) for single in singles)]

    def chunk_key(self, place: Sequence[int]) -> str:
        """Name of the file of the chunk with these indices."""
        return "c." + ".".join(map(str, place))

    def read_chunk(self, place: Sequence[int]) -> None:
        """Raise ValueError or OSError if the chunk with these indices cannot be read."""
        self._cells(place)

    def _cells(self, place: Sequence[int]) -> np.ndarray | None:
        """Cells of a chunk, padding included; None where there is no such file or it is known to be broken."""
        key = f"{self.path}/{self.chunk_key(place)}"
        if key in self._files.broken:
            return None
        try:  # without a Path: a run has many chunks, and most of them are small
            with open(f"{self._files.root}/{key}", "rb", buffering=0) as file:  # noqa: PTH123
                octets = file.readall()
        except (FileNotFoundError, IsADirectoryError):
            return None
        if not self._files.is_intact(key, octets):
            return None
        return np.frombuffer(octets, self.dtype.newbyteorder("<")).reshape(self.chunks)


def _selected(key: Any, shape: Sequence[int]) -> tuple[list[range], list[bool]] | None:
    """Indices along every dimension, and which of them are single; None for a key that is not a basic ascending one."""
    words = list(key) if isinstance(key, tuple) else [key]
    if not all(isinstance(word, slice | int | np.integer) or word is Ellipsis for word in words):
        return None
    if any(isinstance(word, bool) or (isinstance(word, slice) and (word.step or 1) < 0) for word in words):
        return None
    at = next((index for index, word in enumerate(words) if word is Ellipsis), len(words))
    rest = words[at + 1 :]
    missing = len(shape) - at - len(rest)
    if missing < 0 or any(word is Ellipsis for word in rest):
        raise IndexError(f"{len(words)} indices for {len(shape)} dimensions")
    words = [*words[:at], *[slice(None)] * missing, *rest]
    ranges = [_indices(word, length) for word, length in zip(words, shape, strict=True)]
    return ranges, [not isinstance(word, slice) for word in words]


def _indices(word: Any, length: int) -> range:
    if isinstance(word, slice):
        return range(*word.indices(length))
    index = int(word) + (length if word < 0 else 0)
    if not 0 <= index < length:
        raise IndexError(f"index {word} is outside a dimension of length {length}")
    return range(index, index + 1)


def _touched(indices: range, chunk: int) -> list[tuple[int, slice, slice]]:
    """Chunks along one dimension that hold some of the indices, each with its overlap."""
    if not indices:
        return []
    return [
        (number, *_overlap(number, indices, chunk)) for number in range(indices[0] // chunk, indices[-1] // chunk + 1)
    ]


def _overlap(number: int, indices: range, chunk: int) -> tuple[slice, slice]:
    """Return where the indices that a chunk holds stand among all of them, and where in the chunk."""
    start = number * chunk
    first, beyond = (
        min(max(0, -((indices.start - edge) // indices.step)), len(indices)) for edge in (start, start + chunk)
    )
    if first == beyond:  # a step passes over the chunk
        return slice(0, 0), slice(0, 0)
    return slice(first, beyond), slice(indices[first] - start, indices[beyond - 1] - start + 1, indices.step)
