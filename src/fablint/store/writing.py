"""`model.Run` -> run directory, for runs made in memory: simulations and imports."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fablint.model import Row, Run
from fablint.model.facts.run_attributes import RunFacts
from fablint.store.checksums import write_checksums
from fablint.store.facts.stored_facts import write_row_facts, write_run_facts
from fablint.store.layout import ARRAYS, FORMAT, check_shapes, chunk_shape
from fablint.store.metadata import array_node, replace_node
from fablint.system.written_files import written_beside


def write_run(path: Path, run: Run) -> None:
    """Write `run` as a new run directory, in the layout of the engine; `path` is either absent or complete.

    Raises
    ------
    UsageError
        `path` exists or cannot be written.
    BrokenRunError
        An array does not have the shape that the row's facts declare.
    IncompleteError
        The disk is full.
    """
    with written_beside(Path(path)) as temporary:
        temporary.mkdir()
        write_run_facts(temporary, replace(run.facts, format=FORMAT, rows=[row.name for row in run.rows]))
        for row in run.rows:
            write_row(temporary / row.name, row, run.facts)
        write_checksums(temporary, [row.name for row in run.rows])


def write_row(folder: Path, row: Row, run: RunFacts) -> None:
    """Write a row group of a run at `folder`; its metadata is written last: an incomplete row is not read as a row."""
    arrays = {name: array for name, array in row.arrays.items() if name in ARRAYS}
    check_shapes(f"row {row.name}", run.ranks, row.facts.schedule, arrays)
    folder.mkdir(exist_ok=True)
    for name in arrays:
        write_array(folder / name, row, row.arrays[name])
    write_row_facts(folder, row.facts, run.hosts)


def write_array(folder: Path, row: Row, values: Any) -> None:
    """Write an array of a row at `folder`, or replace its contents, chunk by chunk."""
    kind = ARRAYS[folder.name]
    dimensions = kind.dimensions(row.layout) or ()
    chunks = chunk_shape(dimensions, values.shape, row.facts.schedule.repeats)
    folder.mkdir(exist_ok=True)
    replace_node(folder, array_node(kind.dtype, dimensions, values.shape, chunks, kind.fill))
    starts = [range(0, length, chunk) for length, chunk in zip(values.shape, chunks, strict=True)]
    for corner in itertools.product(*starts):
        place = tuple(slice(start, start + chunk) for start, chunk in zip(corner, chunks, strict=True))
        cells = np.asarray(values[place], np.dtype(kind.dtype).newbyteorder("<"))
        if np.array_equal(cells, np.full_like(cells, kind.fill), equal_nan=True):
            continue  # a missing chunk reads the same
        if cells.shape != chunks:  # the last chunk is padded
            whole = np.full(chunks, kind.fill, cells.dtype)
            whole[tuple(slice(length) for length in cells.shape)] = cells
            cells = whole
        key = ".".join(str(start // chunk) for start, chunk in zip(corner, chunks, strict=True))
        temporary = folder / f".c.{key}.{os.getpid()}"
        temporary.write_bytes(np.ascontiguousarray(cells).data)
        temporary.replace(folder / f"c.{key}")
