"""The verb `export`: a run in another format."""

from __future__ import annotations

from pathlib import Path

import click

from fablint.cli.options import WRITTEN_FILE, run_argument
from fablint.cli.session import Session, verb

FORMATS = ("netcdf", "hdf5", "csv", "parquet", "npy")


@verb(short_help="Write a run in another format.")
@run_argument
@click.option("--to", "form", type=click.Choice(FORMATS), required=True, help="Format to write.")
@click.option("-o", "--output", type=WRITTEN_FILE, required=True, metavar="FILE", help="File or folder to create.")
def export(session: Session, run: Path, form: str, output: Path) -> None:
    """Write RUN in another format.

    \b
    Example:
      fablint export night.run --to netcdf -o night.nc
    """
    from fablint.cli.written_files import refuse_terminal
    from fablint.store import export_run
    from fablint.workflows.run_formats import read

    if form != "csv":
        refuse_terminal(output, form)
    export_run(read(run), form, output)
    session.result(str(output), {"run": str(run), "to": form, "output": str(output)})
