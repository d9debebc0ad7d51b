"""NetCDF-4, which is HDF5 with named dimensions: one file, one group per row, written in blocks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from fablint.model import Row, Run
from fablint.model.facts.json_objects import document_of
from fablint.model.facts.row_attributes import RowFacts
from fablint.model.facts.run_attributes import RunFacts
from fablint.store.labels import ends
from fablint.store.layout import ARRAYS, block, source_blocks


def write_netcdf(run: Run, path: Path) -> None:
    """Write the run's groups, arrays and attributes, with the coordinates of `open_run`.

    Attributes without a netCDF type (objects, lists of texts, truth values, null) become JSON texts.
    """
    import h5netcdf

    with h5netcdf.File(path, "w") as file:
        file.attrs.update(_plain(run.facts))
        for row in run.rows:
            _write_row(file.create_group(row.name), row, run)


def _write_row(group: Any, row: Row, run: Run) -> None:
    import h5py

    lengths: dict[str, int] = {}
    for name, array in row.arrays.items():
        lengths |= zip(ARRAYS[name].dimensions(row.layout) or (), array.shape, strict=True)
    group.dimensions = lengths
    # Names of the variables that label a dimension without indexing it, by the CF conventions.
    group.attrs.update(_plain(row.facts) | {"coordinates": " ".join(f"{end}_host" for end in ends(row))})
    for end in ends(row):
        group.create_variable(end, (end,), data=np.arange(run.ranks))
        group.create_variable(f"{end}_host", (end,), h5py.string_dtype(), data=np.array(run.rank_host, object))
    for name, array in row.arrays.items():
        dimensions = ARRAYS[name].dimensions(row.layout) or ()
        if "src" not in dimensions:
            group.create_variable(name, dimensions, data=np.asarray(array[:]))
            continue
        variable = group.create_variable(name, dimensions, array.dtype)
        for sources in source_blocks(row, name):
            variable[(sources,) if row.layout == "list" else (slice(None), sources)] = block(row, name, sources)


def _plain(facts: RunFacts | RowFacts) -> dict[str, Any]:
    return {name: value if _is_plain(value) else json.dumps(value) for name, value in document_of(facts).items()}


def _is_plain(value: Any) -> bool:
    numbers = value if isinstance(value, list) and value else [value]
    return isinstance(value, str) or all(type(number) in (int, float) and abs(number) < 2**63 for number in numbers)
