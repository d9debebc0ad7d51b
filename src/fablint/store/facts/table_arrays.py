"""Arrays of the group `tables` of a run or a row: numbers and texts of each rank or host."""

from __future__ import annotations

import itertools
import math
import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fablint.errors import BrokenRunError
from fablint.store.metadata import DAMAGED, array_node, read_node, replace_node

TEXT = "string"
_LENGTH = struct.Struct("<I")


class TableArray:
    """An array of a group `tables`, whose cells are read on request.

    Zarr reads only what another writer made: importing it takes longer than reading a small run.
    """

    def __init__(self, folder: Path, dtype: str, ndim: int = 1) -> None:
        """Raise BrokenRunError where `folder` has no array of this type with so many dimensions."""
        node = read_node(folder, "array")
        if node.get("data_type") != dtype:
            raise BrokenRunError(f"{folder / 'zarr.json'}: type {node.get('data_type')} where {dtype} belongs", DAMAGED)
        shape = node.get("shape")
        if not isinstance(shape, list) or len(shape) != ndim or not all(type(n) is int and n >= 0 for n in shape):
            raise BrokenRunError(f"{folder / 'zarr.json'}: {shape} is not a shape of {ndim} dimensions", DAMAGED)
        self.folder, self.dtype, self.shape = folder, dtype, tuple(shape)
        self._chunks = _plain_chunks(node, dtype)

    def read(self) -> np.ndarray:
        """All cells; BrokenRunError where a part of them is missing or damaged."""
        return self._read(range(self.shape[0]), None)

    def read_plane(self, index: int, fill: int) -> np.ndarray:
        """Cells with this index in the first dimension, in chunks of one; `fill` where a chunk is missing."""
        return np.asarray(self._read(range(index, index + 1), fill)[0])

    def _read(self, first: range, fill: int | None) -> np.ndarray:
        try:
            if self._chunks is None:
                import zarr

                return np.asarray(zarr.open_array(self.folder, mode="r")[first.start : first.stop])
            return self._plain_cells(self._chunks, first, fill)
        except Exception as error:  # every error of Zarr and of the file system becomes one line
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise BrokenRunError(f"{self.folder}: cannot be read ({reason})", DAMAGED) from None

    def _plain_cells(self, chunks: tuple[int, ...], first: range, fill: int | None) -> np.ndarray:
        is_text = self.dtype == TEXT
        cells = np.full((len(first), *self.shape[1:]), "" if is_text else fill or 0, object if is_text else self.dtype)
        parts = [range(first.start // chunks[0], math.ceil(first.stop / chunks[0]))]
        parts += [range(math.ceil(length / chunk)) for length, chunk in zip(self.shape[1:], chunks[1:], strict=True)]
        for place in itertools.product(*parts):
            file = self.folder / ".".join(["c", *map(str, place)])
            if fill is not None and not file.exists():
                cells[_corner(place, chunks, first.start)] = fill
                continue
            octets = file.read_bytes()
            chunk = np.array(_decoded(octets), object) if is_text else np.frombuffer(octets, f"<{self._code}")
            target = cells[_corner(place, chunks, first.start)]
            if is_text and chunk.size != len(target):
                raise ValueError(f"{chunk.size} texts where {len(target)} belong")
            whole = chunk if is_text else chunk.reshape(chunks)
            target[...] = whole[tuple(slice(length) for length in target.shape)]
        return cells

    @property
    def _code(self) -> str:
        """Type of a number without its byte order, such as `i4`."""
        return np.dtype(self.dtype).str[1:]


def _corner(place: Sequence[int], chunks: Sequence[int], start: int) -> tuple[slice, ...]:
    """Cells of a chunk among those from `start` on of the first dimension."""
    first = slice(max(0, place[0] * chunks[0] - start), max(0, (place[0] + 1) * chunks[0] - start))
    rest = zip(place[1:], chunks[1:], strict=True)
    return (first, *(slice(number * chunk, (number + 1) * chunk) for number, chunk in rest))


def _plain_chunks(node: Mapping[str, Any], dtype: str) -> tuple[int, ...] | None:
    """Return the shape of the chunks of an array as this module and the engine write it; None of another one."""
    grid, names = node.get("chunk_grid"), node.get("dimension_names")
    chunks = grid.get("configuration", {}).get("chunk_shape") if isinstance(grid, dict) else None
    if not isinstance(chunks, list) or not all(type(length) is int and length > 0 for length in chunks):
        return None
    if not isinstance(names, list) or not len(names) == len(chunks) == len(node["shape"]):
        return None
    expected = array_node(dtype, names, node["shape"], chunks, node.get("fill_value", 0))
    return tuple(chunks) if node == expected | {"attributes": node.get("attributes")} else None


def read_numbers(folder: Path, dtype: str, ndim: int = 1) -> np.ndarray:
    """Read an array of numbers of `ndim` dimensions; BrokenRunError where a part of it is missing or damaged."""
    return TableArray(folder, dtype, ndim).read()


def read_texts(folder: Path) -> list[str]:
    """Read an array of texts; BrokenRunError where a part of it is missing or damaged."""
    return [str(text) for text in TableArray(folder, TEXT).read()]


def write_numbers(folder: Path, dtype: str, dimensions: Sequence[str], values: Any, fill: float) -> None:
    """Write an array of numbers in one chunk, its metadata last."""
    cells = np.ascontiguousarray(values, np.dtype(dtype).newbyteorder("<"))
    key = ".".join(["c", *["0"] * cells.ndim])
    _write(folder, {key: cells.tobytes()} if cells.size else {})
    chunks = [max(1, length) for length in cells.shape]
    replace_node(folder, array_node(dtype, dimensions, cells.shape, chunks, fill))


def write_texts(folder: Path, dimension: str, texts: Sequence[str]) -> None:
    """Write an array of texts in one chunk, its metadata last."""
    _write(folder, {"c.0": _encoded(texts)} if texts else {})
    replace_node(folder, array_node(TEXT, [dimension], [len(texts)], [max(1, len(texts))], ""))


def write_chunk(folder: Path, place: Sequence[int], cells: np.ndarray) -> None:
    """Write a chunk of an array of numbers."""
    key = ".".join(["c", *map(str, place)])
    _write(folder, {key: np.ascontiguousarray(cells, cells.dtype.newbyteorder("<")).tobytes()})


def _write(folder: Path, chunks: Mapping[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for key, octets in chunks.items():
        temporary = folder / f".{key}.{os.getpid()}"
        temporary.write_bytes(octets)
        temporary.replace(folder / key)


def _encoded(texts: Sequence[str]) -> bytes:
    """The codec `vlen-utf8`: the number of texts, then each after its length; little-endian, 32 bits."""
    parts = [_LENGTH.pack(len(texts))]
    for text in texts:
        octets = text.encode("utf-8", "replace")
        parts += [_LENGTH.pack(len(octets)), octets]
    return b"".join(parts)


def _decoded(octets: bytes) -> list[str]:
    (count,) = _LENGTH.unpack_from(octets)
    texts, at = [], _LENGTH.size
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(octets, at)
        begin, at = at + _LENGTH.size, at + _LENGTH.size + length
        texts.append(octets[begin:at].decode("utf-8"))
    if at != len(octets):
        raise ValueError(f"{len(octets)} bytes where {at} belong")
    return texts
