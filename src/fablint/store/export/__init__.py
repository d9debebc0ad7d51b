"""Run -> files that other programs read, docs/how-to/export.md. One renderer and one table row per format."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fablint.errors import UsageError
from fablint.model import Run
from fablint.store.export.matrices import write_npy
from fablint.store.export.netcdf import write_netcdf
from fablint.store.export.table import write_csv, write_parquet
from fablint.system.written_files import is_written_into, written_beside

# Format -> its writer and the optional package that it needs.
FORMATS: dict[str, tuple[Callable[[Run, Path], None], str | None]] = {
    "netcdf": (write_netcdf, "h5netcdf"),
    "hdf5": (write_netcdf, "h5netcdf"),  # netCDF-4 is HDF5
    "csv": (write_csv, None),
    "parquet": (write_parquet, "pyarrow"),
    "npy": (write_npy, None),
}


def export_run(run: Run, to: str, output: Path) -> None:
    """Write `run` in another format; the output is complete or absent.

    Parameters
    ----------
    run
        From a directory or made in memory.
    to
        `netcdf`, `hdf5`, `csv`, `parquet` (a file each) or `npy` (a directory of matrices).
    output
        The file or directory to create.

    Raises
    ------
    UsageError
        Unknown format, `output` exists or cannot be created, or the format's package is not installed.
    IncompleteError
        The disk is full.
    """
    if to not in FORMATS:
        raise UsageError(f"unknown format '{to}'", f"choose one of {', '.join(FORMATS)}")
    write, package = FORMATS[to]
    if package is not None:
        need(package, to)
    if write is write_npy and is_written_into(output):
        raise UsageError(f"npy is a folder of files, which {output} cannot be", "name a folder with -o")
    with written_beside(Path(output)) as temporary:
        write(run, temporary)


def need(package: str, to: str) -> Any:
    """Import an optional package; raise UsageError with the install command if it is missing."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise UsageError(f"export to {to} needs {package}", "pip install 'fablint[export]'") from None
