"""The verbs that read a run: analyse, report, show, export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from fablint.cli.common import (
    Percentiles,
    Session,
    findings_option,
    run_argument,
    site_option,
    topology_option,
    verb,
)
from fablint.cli.importing import say_left_out
from fablint.errors import UsageError

if TYPE_CHECKING:
    from fablint.model import Run

FORMATS = ("netcdf", "hdf5", "csv", "parquet", "npy")
TABLES = (  # those of fablint.report.TABLES, which brings numpy
    "bench",
    "bisec_bw",
    "bisection",
    "congestion",
    "counters",
    "latency_test",
    "linktest",
    "net_sanitizer",
    "osu",
    "pairs",
)


runs_argument = click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN|FILE...")


def _read(session: Session, runs: tuple[Path, ...]) -> Run:
    """A run, or what files of another tool hold; what those say besides is named on stderr."""
    from fablint.workflows import flow

    read = flow.read(*runs)
    if read.path is None:
        say_left_out(session, read)
    return read


@verb(short_help="Judge a run: what is at fault.")
@runs_argument
@topology_option
@findings_option
@site_option
def analyse(
    session: Session, runs: tuple[Path, ...], topology: Path | None, findings: Path | None, site: Path | None
) -> int:
    """Judge a run: what is at fault, how sure that is, what to do next. The exit code is the verdict's.

    RUN is a run directory; FILE is what another tool printed, as for fablint import.

    \b
    Examples:
      fablint analyse night.run --topology fabric.yaml
      fablint analyse mpigraph.out
    """
    from fablint.workflows import flow

    others = flow.load_findings(findings)
    read = _read(session, runs)
    return session.verdict(read, flow.diagnose(read, flow.load_topology(topology, read), others, site))


@verb(short_help="Judge a run and write the HTML report.")
@runs_argument
@topology_option
@findings_option
@site_option
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Page to write [RUN/report/index.html]."
)
@click.option("--table", type=click.Choice(TABLES), help="Print this table instead; judge nothing, write nothing.")
@click.option("--row", "rows", multiple=True, metavar="ROW", help="Of these rows only; may be given several times.")
@click.option("--percentiles", type=Percentiles(), metavar="LIST", help="Of the time of a message, such as 50,99,99.9.")
@click.option("--full", is_flag=True, help="All columns and lines that the table has.")
@click.option("--slowest", type=click.IntRange(1), metavar="N", help="The N slowest pairs of every size.")
def report(  # noqa: PLR0913
    session: Session,
    runs: tuple[Path, ...],
    topology: Path | None,
    findings: Path | None,
    site: Path | None,
    output: Path | None,
    table: str | None,
    rows: tuple[str, ...],
    percentiles: tuple[float, ...] | None,
    full: bool,
    slowest: int | None,
) -> int:
    """Judge a run and write one self-contained HTML page, with verdict.json beside it.

    The exit code is the verdict's, as for analyse. With --table a table is printed instead; --row, --percentiles,
    --full and --slowest say what of it.

    \b
    Examples:
      fablint report night.run -o night.html
      fablint report night.run --table pairs --slowest 20
    """
    from fablint.report import Options, render_table

    if table is None:
        _refuse(_OF_A_TABLE, rows, percentiles, full, slowest)
        return _page(session, runs, Judging(topology, findings, site), output)
    _refuse(_NOT_OF_A_TABLE, output, topology, findings, site)
    found = render_table(_read(session, runs), table, Options(percentiles or (), full, slowest), rows)
    session.result(found.text, {"format": 1, **found.as_dict()})
    return 0


_OF_A_TABLE = ("--row, --percentiles, --full and --slowest say what of a table", "name one with --table")
_NOT_OF_A_TABLE = (
    "--table prints a table: -o, --topology, --findings and --site belong to the page",
    "leave them out",
)


def _refuse(why: tuple[str, str], *given: object) -> None:
    if any(given):
        raise UsageError(*why)


class Judging(NamedTuple):
    """Files that a judgement takes besides the run."""

    topology: Path | None
    findings: Path | None
    site: Path | None


def _page(session: Session, runs: tuple[Path, ...], files: Judging, output: Path | None) -> int:
    from fablint.workflows import flow

    read = _read(session, runs)
    if read.path is None and output is None:
        raise UsageError(f"{runs[0]} is a file and has no place for a page", "name one with -o page.html")
    topology, others = flow.load_topology(files.topology, read), flow.load_findings(files.findings)
    diagnosis = flow.diagnose(read, topology, others, files.site)
    page = output or flow.page_of(runs[0])
    flow.write_report(read, diagnosis, page)
    code = session.verdict(read, diagnosis)
    session.say(f"report: {page}")
    return code


@verb(short_help="What a run holds; judges nothing.")
@runs_argument
def show(session: Session, runs: tuple[Path, ...]) -> None:
    """Say what a run holds: launch, rows, how far it got. Judges nothing.

    \b
    Example:
      fablint show night.run
    """
    from fablint.report import run_summary
    from fablint.workflows import flow

    read = _read(session, runs)
    rows = {row.name: dict(row.attributes) for row in read.rows}
    missing = flow.missing_levels(read)
    facts = {
        "format": 1,
        "run": " ".join(map(str, runs)),
        "attributes": dict(read.attributes),
        "rows": rows,
        "notes": list(read.notes),
        "missing_levels": missing,
    }
    session.result(run_summary(read, missing), facts)


@verb(short_help="Write a run in another format.")
@run_argument
@click.option("--to", "form", type=click.Choice(FORMATS), required=True, help="Format to write.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="FILE", help="File or folder to create."
)
def export(session: Session, run: Path, form: str, output: Path) -> None:
    """Write RUN in another format.

    \b
    Example:
      fablint export night.run --to netcdf -o night.nc
    """
    from fablint.workflows import flow

    flow.export(run, form, output)
    session.result(str(output), {"format": 1, "run": str(run), "to": form, "output": str(output)})
