"""store: the run directory, docs/reference/run-format.md: reading, writing, finding missing rounds, exporting.

Its functions are imported on first use: they import numpy, and some of them Zarr or xarray.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fablint.model.lazy_imports import lazy_names

if TYPE_CHECKING:
    from fablint.store.absorbing import absorb
    from fablint.store.checksums import discard_damaged, write_checksums
    from fablint.store.export import export_run
    from fablint.store.importing import import_run
    from fablint.store.joining import join_runs
    from fablint.store.labels import open_run
    from fablint.store.missing import missing_rounds
    from fablint.store.reading import read_run
    from fablint.store.state import set_state
    from fablint.store.writing import write_run

__all__ = [
    "absorb",
    "discard_damaged",
    "export_run",
    "import_run",
    "join_runs",
    "missing_rounds",
    "open_run",
    "read_run",
    "set_state",
    "write_checksums",
    "write_run",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "absorb": "absorbing",
            "discard_damaged": "checksums",
            "export_run": "export",
            "import_run": "importing",
            "join_runs": "joining",
            "missing_rounds": "missing",
            "open_run": "labels",
            "read_run": "reading",
            "set_state": "state",
            "write_checksums": "checksums",
            "write_run": "writing",
        },
    )
