"""store: the run directory, docs/reference/run-format.md. Reads it, writes it, finds what is missing, exports it.

Import it late: it brings numpy, and its functions bring zarr or xarray.
"""

from __future__ import annotations

from fablint.store.absorbing import absorb
from fablint.store.export import export_run
from fablint.store.importing import import_run
from fablint.store.labels import open_run
from fablint.store.missing import missing_rounds
from fablint.store.reading import read_run
from fablint.store.state import set_state
from fablint.store.writing import write_run

__all__ = ["absorb", "export_run", "import_run", "missing_rounds", "open_run", "read_run", "set_state", "write_run"]
