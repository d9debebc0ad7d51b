"""The figures of the history as one long table."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fablint.errors import UsageError
from fablint.history.database import Database
from fablint.system.written_files import is_written_into, written_beside

COLUMNS = ("run", "started", "verdict", "kind", "component", "medium", "kernel", "size", "quantity", "pairs")
QUANTILES = ("p05", "p10", "median", "p90", "p95", "p99")
_QUERY = (
    "SELECT run.path, run.moment, verdict, kind, name, medium, kernel, size, quantity, pairs,"
    " p05, p10, median, p90, p95, p99 FROM figure JOIN run ON run.id = figure.run"
    " JOIN component ON component.id = component JOIN metric ON metric.id = metric"
)
_BLOCK = 1 << 16  # lines written at a time


def write_table(database: Database, path: Path) -> int:
    """Write all figures and return the number of lines. Moments are seconds since 1970, figures seconds or bytes/s.

    Raises
    ------
    UsageError
        The file exists, has another ending than .csv and .parquet, or pyarrow is missing. Of standard output, a pipe
        or a device the ending is not looked at: it is CSV.
    IncompleteError
        The file cannot be written, for example on a full disk.
    """
    writers = {".csv": _write_csv, ".parquet": _write_parquet}
    suffix = ".csv" if is_written_into(path) else path.suffix
    if suffix not in writers:
        raise UsageError(f"{path}: the ending is neither .csv nor .parquet", "name the file history.parquet")
    with written_beside(path) as temporary:
        return writers[suffix](database, temporary)


def _blocks(database: Database) -> Iterator[list[Any]]:
    cursor: sqlite3.Cursor = database.cursor(_QUERY)
    while block := cursor.fetchmany(_BLOCK):
        yield block


def _write_csv(database: Database, path: Path) -> int:
    lines = 0
    with path.open("x", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*COLUMNS, *QUANTILES))
        for block in _blocks(database):
            writer.writerows(block)
            lines += len(block)
    return lines


def _write_parquet(database: Database, path: Path) -> int:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UsageError("export to Parquet needs pyarrow", "pip install 'fablint[export]'") from None
    words = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    types = {"started": pyarrow.float64(), "size": pyarrow.int64(), "pairs": pyarrow.int64()}
    types |= dict.fromkeys(QUANTILES, pyarrow.float64())
    schema = pyarrow.schema([(name, types.get(name, words)) for name in (*COLUMNS, *QUANTILES)])
    lines = 0
    with parquet.ParquetWriter(path, schema) as writer:
        for block in _blocks(database):
            columns: Sequence[tuple[Any, ...]] = list(zip(*block, strict=True))
            arrays = [pyarrow.array(column).cast(field.type) for column, field in zip(columns, schema, strict=True)]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
            lines += len(block)
    return lines
