"""Labelled xarray data of a run directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.model.facts.json_objects import document_of
from fablint.store.layout import ARRAYS, COORDINATES
from fablint.store.reading import read_run

if TYPE_CHECKING:
    import xarray


def open_run(path: str | Path) -> xarray.DataTree:
    """Open a run directory as an `xarray.DataTree`, one node per row; arrays are loaded on access.

    Coordinates: `src` and `dst` are ranks, `src_host` and `dst_host` their host names, `size` is in bytes. In the
    `list` layout `dst` is not a coordinate but the variable that names the partner of `src` in each `round`. Times are
    seconds, NaN where nothing was measured. Attributes are those of the run; `notes`, if present, lists damage that
    reads as missing.

    Raises
    ------
    UsageError
        There is no run at `path`, or xarray is not installed.
    BrokenRunError
        Metadata is damaged or of a newer format.
    """
    try:
        import xarray
    except ImportError:
        raise UsageError("open_run needs xarray", "pip install 'fablint[xarray]'") from None

    run = read_run(Path(path))
    notes = {"notes": list(run.notes)} if run.notes else {}
    root = xarray.Dataset(attrs={**document_of(run.facts), **notes})
    return xarray.DataTree.from_dict({"/": root, **{row.name: _labelled(row, run) for row in run.rows}})


def _labelled(row: Row, run: Run) -> xarray.Dataset:
    import xarray

    hosts = np.array(run.rank_host)
    variables = {
        name: xarray.Variable(ARRAYS[name].dimensions(row.layout) or (), _lazy(array))
        for name, array in row.arrays.items()
    }
    coordinates: dict[str, Any] = {end: np.arange(run.ranks) for end in ends(row)}
    coordinates |= {f"{end}_host": (end, hosts) for end in ends(row)}
    for name in COORDINATES:
        if name in variables:
            coordinates[name] = variables.pop(name)
    return xarray.Dataset(variables, coordinates, document_of(row.facts))


def ends(row: Row) -> tuple[str, ...]:
    """Dimensions of a row that are indexed by rank."""
    return ("src",) if row.layout == "list" else ("src", "dst")


def _lazy(array: Any) -> Any:
    """`array` behind xarray's protocol for lazily loaded data."""
    from xarray.backends import BackendArray
    from xarray.core import indexing

    class Lazy(BackendArray):
        shape = array.shape
        dtype = array.dtype

        def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
            level = indexing.IndexingSupport.BASIC
            return indexing.explicit_indexing_adapter(key, self.shape, level, lambda place: array[place])

    return indexing.LazilyIndexedArray(Lazy())
