"""The verb `report`: the HTML page of a run, or one of its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import click

from fablint.cli.options import (
    WRITTEN_FILE,
    findings_option,
    run_site_option,
    run_topology_option,
    runs_argument,
    with_options,
)
from fablint.cli.param_types import Percentiles
from fablint.cli.result_files import result_file_options
from fablint.cli.session import Session, all_option, verb
from fablint.cli.written_files import refuse_terminal
from fablint.errors import UsageError

TABLES = (  # those of fablint.report.TABLES, which imports numpy
    "bench",
    "bisec_bw",
    "bisection",
    "congestion",
    "connections",
    "counters",
    "gpu_copies",
    "latency_test",
    "linktest",
    "nccl_tests",
    "net_sanitizer",
    "osu",
    "overlap",
    "pairs",
    "transports",
)
_ONLY_FOR_TABLES = ("--row, --percentiles, --all-columns and --slowest require --table", "name a table with --table")
_ONLY_FOR_PAGES = (
    "--table prints a table: -o, --pdf, --png, --topology, --findings, --site, --junit and --prometheus need a verdict",
    "give one or the other",
)


class _Sources(NamedTuple):
    """Files for the diagnosis in addition to the run."""

    topology: Path | None
    findings: Path | None
    site: Path | None


class _Form(NamedTuple):
    """The file to write instead of the HTML page."""

    output: Path | None
    pdf: bool
    png: str | None  # name of the picture

    @property
    def default_name(self) -> str:
        return "report.pdf" if self.pdf else "report.png" if self.png else "index.html"


_forms = with_options(
    click.option("--pdf", is_flag=True, help="Write a PDF to print and sign [RUN/report/report.pdf]."),
    click.option(
        "--png",
        metavar="PICTURE",
        help="Write a picture [RUN/report/report.png]: finding, topology, transports, strip:N (finding N over time), or"
        " deviation, measured, distribution, curve, time of a row: deviation:ROW.",
    ),
    result_file_options,
)
_selection = with_options(
    click.option("--row", "rows", multiple=True, metavar="ROW", help="Only these rows; may be repeated."),
    click.option("--percentiles", type=Percentiles(), metavar="LIST", help="Of message times, such as 50,99,99.9."),
    click.option("--all-columns", "full", is_flag=True, help="All columns and lines of the table."),
    click.option("--slowest", type=click.IntRange(1), metavar="N", help="Only the N slowest pairs of every size."),
)


@verb(short_help="Analyse a run and write the HTML report.")
@runs_argument
@run_topology_option
@findings_option
@run_site_option
@click.option("-o", "--output", type=WRITTEN_FILE, metavar="FILE", help="File to write [RUN/report/index.html].")
@_forms
@click.option("--table", type=click.Choice(TABLES), help="Print this table instead, without analysis and page.")
@_selection
@all_option
def report(  # noqa: PLR0913
    session: Session,
    runs: tuple[Path, ...],
    topology: Path | None,
    findings: Path | None,
    site: Path | None,
    output: Path | None,
    pdf: bool,
    png: str | None,
    table: str | None,
    **selection: Any,
) -> int:
    """Analyse a run and write one self-contained HTML page, with the verdict as JSON in the same folder.

    The verdict of index.html is verdict.json, that of night.html is night.verdict.json. --pdf writes A4 pages to sign.

    The exit code is the verdict's. --table prints a table: --row, --percentiles, --all-columns, --slowest select.

    \b
    Examples:
      fablint report night.run -o night.html
      fablint report night.run --pdf -o acceptance.pdf
      fablint report night.run --png deviation:bandwidth -o matrix.png
      fablint report night.run --table pairs --slowest 20
    """
    if table is None:
        _refuse(_ONLY_FOR_TABLES, *selection.values())
        return _page(session, runs, _Sources(topology, findings, site), _Form(output, pdf, png))
    from fablint.report import Options, render_table

    _refuse(_ONLY_FOR_PAGES, output, pdf, png, topology, findings, site, session.result_files)
    rows, percentiles = selection.pop("rows"), selection.pop("percentiles") or ()
    rendered = render_table(session.read(runs), table, Options(percentiles, **selection), rows)
    session.result(rendered.text, rendered.as_dict())
    return 0


def _refuse(why: tuple[str, str], *given: object) -> None:
    if any(given):
        raise UsageError(*why)


def _refuse_other_suffix(output: Path | None, suffix: str) -> None:
    """Refuse the name of a page for a PDF: programs choose by the name how they open a file."""
    if output is not None and output.suffix.lower() in {".html", ".pdf", ".png"} - {suffix}:
        raise UsageError(f"{output} names a {output.suffix[1:]} file, {suffix[1:]} is written", f"name it *{suffix}")


def _page(session: Session, runs: tuple[Path, ...], sources: _Sources, form: _Form) -> int:
    from fablint.model.names import plural
    from fablint.workflows import analysis

    if form.pdf and form.png is not None:
        raise UsageError("--pdf and --png contradict each other", "give one of them")
    _refuse_other_suffix(form.output, Path(form.default_name).suffix)
    if form.pdf or form.png is not None:
        refuse_terminal(form.output, "a PDF" if form.pdf else "a picture")
    run = session.read(runs)
    if run.joined and form.output is None:
        raise UsageError("joined runs have no folder for the page", "name the page with -o page.html")
    if run.path is None and form.output is None:
        raise UsageError(f"{runs[0]} is a file, not a run directory for the page", "name the page with -o page.html")
    with session.working(f"judging {plural(len(run.hosts), 'host')}") as step:
        diagnosis = analysis.judge(run, *sources, step=step)
    page = form.output or analysis.page_of(runs[0]).with_name(form.default_name)
    code = session.verdict(run, diagnosis)  # first: a page that cannot be written costs no verdict
    with session.working(f"writing {page}"):
        if form.pdf:
            analysis.write_pdf(run, diagnosis, page)
        elif form.png is not None:
            analysis.write_png(run, diagnosis, page, form.png)
        else:
            analysis.write_report(run, diagnosis, page)
    session.say(f"report: {page}")
    return code
