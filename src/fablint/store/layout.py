"""Tables of docs/reference/run-format.md: the arrays of a row, their dimensions and types."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fablint.errors import BrokenRunError
from fablint.model import Row
from fablint.model.facts.row_attributes import RowFacts, ScheduleFacts
from fablint.model.registry import moves_nothing

FORMAT = 1
TABLES = "tables"  # group of a run or a row with the arrays of what each rank or host has
STATES = ("measuring", "complete", "interrupted")
STATISTICS = ("min", "median", "mean", "p99", "max")
EXPORTED = (  # columns of each exported table, before those of the statistics
    *("row", "kernel", "src", "dst", "src_host", "dst_host", "size", "round", "started", "count"),
)

FILES_PER_ARRAY = 1000  # approximate; chunks are blocks of rows
SHORTEST_S, LONGEST_S = 1e-15, 1e9  # of a message; other positive times show that a chunk is damaged
BLOCK_BYTES = 2**25  # size of the part of an array that is read at a time


@dataclass(frozen=True)
class ArrayKind:
    """One line of the table of arrays. `matrix` and `list` are dimensions, None if the layout has no such array."""

    dtype: str
    matrix: tuple[str, ...] | None
    list: tuple[str, ...] | None
    fill: float | int  # value of a cell that was not measured

    def dimensions(self, layout: str) -> tuple[str, ...] | None:
        """Return the names of the dimensions in a layout; None if the array does not exist there."""
        return self.list if layout == "list" else self.matrix


_CELL, _LISTED = ("repeat", "src", "dst"), ("src", "round")
ARRAYS: Mapping[str, ArrayKind] = {
    **{f"time_{name}": ArrayKind("float32", (*_CELL, "size"), (*_LISTED, "size"), math.nan) for name in STATISTICS},
    "count": ArrayKind("uint32", (*_CELL, "size"), (*_LISTED, "size"), 0),
    "started": ArrayKind("float64", _CELL, _LISTED, math.nan),
    "round": ArrayKind("int32", _CELL, None, -1),
    "dst": ArrayKind("int32", None, _LISTED, -1),
    "size": ArrayKind("int64", ("size",), ("size",), 0),
    "histogram": ArrayKind("uint32", (*_CELL, "size", "bucket"), (*_LISTED, "size", "bucket"), 0),
    "bucket": ArrayKind("float64", ("bucket",), ("bucket",), math.nan),
    "percentile_time": ArrayKind("float32", (*_CELL, "size", "percentile"), (*_LISTED, "size", "percentile"), math.nan),
    "percentile": ArrayKind("float64", ("percentile",), ("percentile",), math.nan),
    "allocation": ArrayKind("int32", None, ("round",), 0),
}
COORDINATES = ("size", "bucket", "percentile")  # arrays without which no cell has a meaning


def required(layout: str) -> tuple[str, ...]:
    """Arrays that every row must have, in addition to at least one `time_*` array."""
    return ("size", "count", "dst" if layout == "list" else "round")


def valid_range(name: str, ranks: int, facts: RowFacts) -> tuple[float, float] | None:
    """Smallest and largest plausible value; None if every value is plausible.

    A message takes more than no time, except on the null transport, where its time may be below the clock resolution.
    After a power failure a file system may leave a block of zeros, or blocks of other files.
    """
    if name.startswith("time_") or name == "percentile_time":
        return 0.0 if moves_nothing(facts.carrier.transport) else SHORTEST_S, LONGEST_S
    if name == "dst":
        return -1, ranks - 1
    if name == "round":
        return -1, facts.schedule.rounds - 1
    return None


def check_shapes(where: str, ranks: int, schedule: ScheduleFacts, arrays: Mapping[str, Any]) -> None:
    """Raise unless every array of a row has the shape that its schedule declares.

    Parameters
    ----------
    where
        The row, for messages.
    ranks
        Number of ranks n.
    schedule
        Schedule of the row.
    arrays
        Anything with a `shape`, by name.

    Raises
    ------
    BrokenRunError
        The message names the array, its shape and the expected shape.
    """
    lengths = {
        "repeat": schedule.repeats,
        "src": ranks,
        "dst": ranks,
        "round": schedule.rounds,
        "size": int(arrays["size"].shape[0]) if arrays["size"].ndim else 0,
        "bucket": int(arrays["bucket"].shape[0]) if "bucket" in arrays else 0,
        "percentile": int(arrays["percentile"].shape[0]) if "percentile" in arrays else 0,
    }
    for name, array in arrays.items():
        dimensions = ARRAYS[name].dimensions(schedule.layout) or ()
        expected = tuple(lengths[dimension] for dimension in dimensions)
        if tuple(array.shape) != expected:
            raise BrokenRunError(
                f"{where}/{name}: its shape ({', '.join(dimensions)}) is {_text(array.shape)}, not {_text(expected)}",
                "the row is damaged or was written by another program: measure it again",
            )


def _text(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "a single number"


def chunk_shape(dimensions: tuple[str, ...], shape: tuple[int, ...], repeats: int) -> tuple[int, ...]:
    """Blocks of ceil(n K / 1000) source ranks, one repeat, complete in all other dimensions."""
    ones = {"repeat": 1}
    if "src" in dimensions:
        ranks = shape[dimensions.index("src")]
        ones["src"] = max(1, math.ceil(ranks * repeats / FILES_PER_ARRAY))
    return tuple(max(1, ones.get(name, length)) for name, length in zip(dimensions, shape, strict=True))


def source_blocks(row: Row, name: str = "count", bytes_per_cell: int | None = None) -> Iterator[slice]:
    """Yield blocks of source ranks, complete chunks each, in which array `name` of the row fits into memory.

    Parameters
    ----------
    bytes_per_cell
        Memory that the caller needs per cell; None: the size of the array's items.
    """
    array = row.arrays[name]
    ranks = array.shape[0 if row.layout == "list" else 1]
    chunk = max(1, math.ceil(ranks * row.facts.schedule.repeats / FILES_PER_ARRAY))
    bytes_per_source = math.prod(array.shape) // max(1, ranks) * (bytes_per_cell or array.dtype.itemsize)
    step = max(1, BLOCK_BYTES // max(1, bytes_per_source) // chunk) * chunk
    for start in range(0, ranks, step):
        yield slice(start, min(start + step, ranks))


def block(row: Row, name: str, sources: slice) -> np.ndarray:
    """Cells of array `name` whose source rank is in `sources`: (repeat, src, dst, ...) or (src, round, ...)."""
    array = row.arrays[name]
    return np.asarray(array[sources] if row.layout == "list" else array[:, sources])
