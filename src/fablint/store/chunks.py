"""Arrays of a run directory, read when sliced. Damaged parts read as missing, with a note.

One damaged chunk file does not make a run unreadable that was copied partly or whose disk filled up, and an impossible
number is not taken for a measurement.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fablint.store.checksums import DIFFERS, checksum
from fablint.store.layout import LONGEST_S, SHORTEST_S

REMEDY = "its cells are treated as missing (fablint resume measures them again)"


class ChunkFiles:
    """Chunk files of a run directory: their checksums, the files known to be damaged, and notes about them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.checksums: dict[str, str] = {}  # of files that were not read yet
        self.broken: set[str] = set()
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def exclude(self, key: str, why: str) -> None:
        """Treat the chunk `key` as absent, since it is damaged; `why` is the reason for the note."""
        self.broken.add(key)
        self.note(f"{self.root / key}: {why}: {REMEDY}")

    def is_intact(self, key: str, octets: bytes) -> bool:
        """Tell whether the file `key` with these octets is what its checksum, if any, was written for; else exclude
        it.
        """
        expected = self.checksums.pop(key, None)  # verified once
        if expected is None or checksum(octets) == expected:
            return True
        self.exclude(key, DIFFERS)
        return False


class ChunkedArray(Protocol):
    """An array in chunk files, in one of the readable forms."""

    path: str  # path of its folder, in the run directory
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    ndim: int
    dtype: Any
    fill_value: Any

    def __getitem__(self, key: Any) -> Any: ...

    def chunk_key(self, place: Sequence[int]) -> str:
        """Name of the file of the chunk with these indices, below the array's folder."""
        ...

    def read_chunk(self, place: Sequence[int]) -> None:
        """Raise if the chunk with these indices cannot be read."""
        ...


class StoredArray:
    """Array of a run directory with lazy access as in Zarr and the interface of numpy: `shape`, `array[1, :, 2]`."""

    def __init__(self, array: ChunkedArray, files: ChunkFiles, valid: tuple[float, float] | None) -> None:
        self._array = array
        self._files = files
        self._valid = valid
        self.shape: tuple[int, ...] = array.shape
        self.dtype: np.dtype[Any] = np.dtype(array.dtype)
        self.ndim = array.ndim
        self.chunks: tuple[int, ...] = array.chunks

    def __getitem__(self, key: Any) -> Any:
        """Values at `key` as a new numpy array; missing where a chunk is missing or damaged or a value is
        impossible.
        """
        try:
            values = self._array[key]
        except Exception:
            # Some chunk cannot be decoded; the error does not name it.
            if not self._exclude_chunks(self._decoding_error):
                raise
            values = self._array[key]
        values = np.asarray(values)
        if self._has_garbage(values) and self._exclude_chunks(self._garbage_in):
            values = np.asarray(self._array[key])
        return self._without_impossible(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[...], dtype=dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def _exclude_chunks(self, why: Callable[[Sequence[int]], str]) -> bool:
        """Exclude the chunks for which `why` gives a reason, read one by one; return whether there were any."""
        has_broken = False
        grid = [range(math.ceil(length / chunk)) for length, chunk in zip(self.shape, self.chunks, strict=True)]
        for place in itertools.product(*grid):
            if reason := why(place):
                self._files.exclude(f"{self._array.path}/{self._array.chunk_key(place)}", reason)
                has_broken = True
        return has_broken

    def _decoding_error(self, place: Sequence[int]) -> str:
        try:
            self._array.read_chunk(place)
        except Exception as error:
            return f"cannot be decoded ({str(error).splitlines()[0] if str(error) else type(error).__name__})"
        return ""

    def _garbage_in(self, place: Sequence[int]) -> str:
        """Return what shows that a chunk holds other bytes than measured times; empty where nothing does."""
        slices = zip(place, self.chunks, self.shape, strict=True)
        cells = self._array[tuple(slice(at * chunk, min((at + 1) * chunk, length)) for at, chunk, length in slices)]
        return f"damaged (times below {SHORTEST_S:g} or above {LONGEST_S:g} s)" if self._has_garbage(cells) else ""

    def _has_garbage(self, values: np.ndarray) -> bool:
        """Tell whether times are positive and finite and no message can take them: no writer of a run stores these."""
        if self._valid is None or self._valid[1] != LONGEST_S or values.size == 0:
            return False
        low, high = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
        if (low >= self._valid[0] or not low) and high <= LONGEST_S:
            return False
        positive = values[np.isfinite(values) & (values > 0)]
        return bool(((positive < self._valid[0]) | (positive > LONGEST_S)).any())

    def _without_impossible(self, values: np.ndarray) -> Any:
        if self._valid is None or values.size == 0:
            return values[()]
        low, high = self._valid
        if np.fmin.reduce(values, axis=None) < low or np.fmax.reduce(values, axis=None) > high:
            values = np.where((values < low) | (values > high), values.dtype.type(self._array.fill_value), values)
            problem = "times that are not positive and finite" if low >= 0 else f"values outside {low} .. {high}"
            self._files.note(f"{self._files.root / self._array.path}: holds {problem}: they are treated as missing")
        return values[()]


def find_truncated(folder: Path, node: Mapping[str, Any], files: ChunkFiles) -> None:
    """Exclude the chunk files of an uncompressed array whose length is wrong.

    Parameters
    ----------
    folder
        Folder of the array.
    node
        Metadata of the array.
    files
        Chunk files of the run.
    """
    if [codec["name"] for codec in node["codecs"]] != ["bytes"]:
        return  # compressed: only decoding shows damage
    cells = math.prod(node["chunk_grid"]["configuration"]["chunk_shape"])
    expected = cells * np.dtype(node["data_type"]).itemsize
    for path, length in _chunk_files(folder):
        if length != expected:
            key = Path(path).relative_to(files.root).as_posix()
            files.exclude(key, f"{length} bytes where {expected} belong")


def _chunk_files(folder: Path) -> Iterator[tuple[str, int]]:
    for entry in os.scandir(folder):
        if entry.is_dir():
            yield from _chunk_files(Path(entry.path))
        elif re.fullmatch(r"(c\.)?\d+(\.\d+)*|c", entry.name):
            yield entry.path, entry.stat().st_size
