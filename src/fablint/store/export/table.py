"""Long tables: one line per measured directed pair and size."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fablint.model import Row, Run
from fablint.model.figures.percentiles import own_percentiles
from fablint.store.layout import EXPORTED, STATISTICS, block, source_blocks

TIMES = tuple(f"time_{name}" for name in STATISTICS)
COLUMNS = (*EXPORTED, *TIMES)
BYTES_PER_LINE = 2**8  # approximate, in memory
_HISTOGRAM = "histogram"


def columns_of(run: Run) -> tuple[str, ...]:
    """Return `COLUMNS`, and those of the run: further percentiles (`time_p90`), and the histogram of a cell."""
    percentiles = sorted({at for row in run.rows for at in own_percentiles(row)})
    histogram = [_HISTOGRAM] if any(_HISTOGRAM in row.arrays for row in run.rows) else []
    return (*COLUMNS, *map(_time_at, percentiles), *histogram)


def write_csv(run: Run, path: Path) -> None:
    """Write comma-separated values with a header. Seconds and bytes; an unknown value is an empty field."""
    names = columns_of(run)
    with path.open("x", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for columns in cells(run):
            writer.writerows(zip(*(_texts(columns[name]) for name in names), strict=True))


def write_parquet(run: Run, path: Path) -> None:
    """Write the columns of `write_csv` with their types; unknown numbers are null."""
    import pyarrow
    from pyarrow import parquet

    words = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    types = {"row": words, "kernel": words, "src_host": words, "dst_host": words, "size": pyarrow.int64()}
    types |= {"started": pyarrow.float64(), "count": pyarrow.uint32()}
    types |= {_HISTOGRAM: pyarrow.map_(pyarrow.float64(), pyarrow.uint32())}
    names = columns_of(run)
    types |= {name: pyarrow.float32() for name in names if name.startswith("time_")}
    schema = pyarrow.schema([(name, types.get(name, pyarrow.int32())) for name in names])
    with parquet.ParquetWriter(path, schema) as writer:
        for columns in cells(run):
            arrays = [
                pyarrow.array(list(columns[field.name]), field.type)
                if field.name == _HISTOGRAM
                else pyarrow.array(columns[field.name], mask=_unknown(columns[field.name])).cast(field.type)
                for field in schema
            ]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))


def cells(run: Run) -> Iterator[dict[str, np.ndarray]]:
    """Yield the measured cells of all rows, block by block, as columns of equal length."""
    hosts, names = np.array(run.rank_host), columns_of(run)
    for row in run.rows:
        buckets = row.arrays[_HISTOGRAM].shape[-1] if _HISTOGRAM in row.arrays else 0
        for sources in source_blocks(row, bytes_per_cell=BYTES_PER_LINE + 4 * buckets):
            columns = _matrix_cells(row, sources) if row.layout == "matrix" else _list_cells(row, sources)
            length = len(columns["src"])
            if length:
                columns |= {f"{end}_host": hosts[columns[end]] for end in ("src", "dst") if end in columns}
                columns.setdefault("dst_host", np.full(length, ""))
                unknown = {name: _nothing(name, length) for name in names if name not in columns}
                yield columns | unknown | {"row": np.full(length, row.name), "kernel": np.full(length, row.kernel)}


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
    src, number, size = place = np.nonzero(block(row, "count", sources))
    return {
        "src": src + sources.start,
        **({} if row.pattern == "world" else {"dst": partner[src, number]}),  # the others are all partners
        "round": number,
        **_measured(row, sources, (src, number), place),
        "size": np.array(row.sizes)[size],
    }


def _measured(
    row: Row, sources: slice, pair: tuple[np.ndarray, ...], place: tuple[np.ndarray, ...]
) -> dict[str, np.ndarray]:
    """Return what the row stores of the cells at `place`: `started`, `count`, times, and their histograms."""
    result = {"count": block(row, "count", sources)[place]}
    result |= {"started": block(row, "started", sources)[pair]} if "started" in row.arrays else {}
    result |= {name: block(row, name, sources)[place] for name in TIMES if name in row.arrays}
    if percentiles := own_percentiles(row):
        times = block(row, "percentile_time", sources)[place]
        result |= {_time_at(at): times[:, index] for index, at in enumerate(percentiles)}
    if _HISTOGRAM in row.arrays:
        result[_HISTOGRAM] = _filled(block(row, _HISTOGRAM, sources)[place], np.asarray(row.arrays["bucket"][:]))
    return result


def _filled(counts: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the filled buckets of each histogram (k, buckets): lower edge in seconds and number of samples."""
    lists = np.empty(len(counts), dtype=object)
    for index, histogram in enumerate(counts):
        (filled,) = np.nonzero(histogram)
        lists[index] = list(zip(edges[filled].tolist(), histogram[filled].tolist(), strict=True))
    return lists


def _time_at(percentile: float) -> str:
    """Return the column of a percentile: `time_p99.9`."""
    return f"time_p{percentile:.9g}"


def _nothing(name: str, length: int) -> np.ndarray:
    return np.full(length, None) if name == _HISTOGRAM else np.full(length, np.nan)


def _unknown(values: np.ndarray) -> np.ndarray | None:
    return np.isnan(values) if values.dtype.kind == "f" else None


def _texts(values: np.ndarray) -> list[str]:
    """Shortest texts that read back as the same numbers; a histogram as JSON."""
    if values.dtype == object:
        return ["" if one is None else json.dumps(one) for one in values]
    texts = values.astype(str)
    unknown = _unknown(values)
    return list(texts if unknown is None else np.where(unknown, "", texts))
