"""Long tables: one line per measured directed pair and size."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fablint.model import Row, Run
from fablint.store.layout import STATISTICS, block, source_blocks

TIMES = tuple(f"time_{name}" for name in STATISTICS)
COLUMNS = ("row", "kernel", "src", "dst", "src_host", "dst_host", "size", "round", "started", "count", *TIMES)
BYTES_PER_LINE = 2**8  # approximate, in memory


def write_csv(run: Run, path: Path) -> None:
    """Write comma-separated values with a header. Seconds and bytes; an unknown number is an empty field."""
    with path.open("x", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for columns in cells(run):
            writer.writerows(zip(*(_texts(columns[name]) for name in COLUMNS), strict=True))


def write_parquet(run: Run, path: Path) -> None:
    """Write the columns of `write_csv` with their types; unknown numbers are null."""
    import pyarrow
    from pyarrow import parquet

    words = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    types = {"row": words, "kernel": words, "src_host": words, "dst_host": words, "size": pyarrow.int64()}
    types |= {"started": pyarrow.float64(), "count": pyarrow.uint32()} | dict.fromkeys(TIMES, pyarrow.float32())
    schema = pyarrow.schema([(name, types.get(name, pyarrow.int32())) for name in COLUMNS])
    with parquet.ParquetWriter(path, schema) as writer:
        for columns in cells(run):
            arrays = [
                pyarrow.array(columns[field.name], mask=_unknown(columns[field.name])).cast(field.type)
                for field in schema
            ]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))


def cells(run: Run) -> Iterator[dict[str, np.ndarray]]:
    """Yield the measured cells of all rows, block by block, as columns of equal length."""
    hosts = np.array(run.rank_host)
    for row in run.rows:
        for sources in source_blocks(row, bytes_per_cell=BYTES_PER_LINE):
            columns = _matrix_cells(row, sources) if row.layout == "matrix" else _list_cells(row, sources)
            length = len(columns["src"])
            if length:
                columns |= {f"{end}_host": hosts[columns[end]] for end in ("src", "dst")}
                yield columns | {"row": np.full(length, row.name), "kernel": np.full(length, row.kernel)}


def _matrix_cells(row: Row, sources: slice) -> dict[str, np.ndarray]:
    repeat, src, dst, size = place = np.nonzero(block(row, "count", sources))
    pair = (repeat, src, dst)
    return {
        "src": src + sources.start,
        "dst": dst,
        "round": block(row, "round", sources)[pair],
        **_measured(row, sources, pair, place),
        "size": np.array(row.sizes)[size],
    }


def _list_cells(row: Row, sources: slice) -> dict[str, np.ndarray]:
    partner = block(row, "dst", sources)
    src, number, size = place = np.nonzero((block(row, "count", sources) > 0) & (partner >= 0)[..., None])
    return {
        "src": src + sources.start,
        "dst": partner[src, number],
        "round": number,
        **_measured(row, sources, (src, number), place),
        "size": np.array(row.sizes)[size],
    }


def _measured(
    row: Row, sources: slice, pair: tuple[np.ndarray, ...], place: tuple[np.ndarray, ...]
) -> dict[str, np.ndarray]:
    """`started`, `count` and the times of the cells at `place`; NaN in a column that the row does not store."""
    unknown = np.full(len(place[0]), np.nan)
    return {
        "started": block(row, "started", sources)[pair] if "started" in row.arrays else unknown,
        "count": block(row, "count", sources)[place],
        **{name: block(row, name, sources)[place] if name in row.arrays else unknown for name in TIMES},
    }


def _unknown(values: np.ndarray) -> np.ndarray | None:
    return np.isnan(values) if values.dtype.kind == "f" else None


def _texts(values: np.ndarray) -> list[str]:
    """Shortest texts that read back as the same numbers."""
    texts = values.astype(str)
    unknown = _unknown(values)
    return list(texts if unknown is None else np.where(unknown, "", texts))
