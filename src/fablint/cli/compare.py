"""The verb `compare`: what changed between two runs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fablint.cli.options import RUN, WRITTEN_FILE, run_topology_option
from fablint.cli.param_types import Loss
from fablint.cli.session import Session, in_colour, verb
from fablint.errors import UsageError

_SHOWN = 10  # hosts and findings on a terminal


@verb(short_help="Compare a run with an older one.")
@click.argument("old", type=RUN, metavar="OLD")
@click.argument("new", type=RUN, metavar="NEW")
@run_topology_option
@click.option("--margin", type=Loss(), default="3%", show_default=True, metavar="SHARE", help="Loss that is accepted.")
@click.option("--html", "is_page", is_flag=True, help="Write a page as well [NEW/report/compare.html].")
@click.option("-o", "--output", type=WRITTEN_FILE, metavar="FILE", help="File to write, with --html.")
@click.option("--all", "everything", is_flag=True, help="Print all hosts and findings, not the first 10 of each.")
def compare(  # noqa: PLR0913
    session: Session,
    old: Path,
    new: Path,
    topology: Path | None,
    margin: float,
    is_page: bool,
    output: Path | None,
    everything: bool,
) -> int:
    """Compare a run with an older one of the same hosts: before and after maintenance, or with two MPI libraries.

    Prints the change of each scope with its interval, the hosts that changed, and the findings that are new or gone.
    OLD and NEW are run directories, or files of other tools, as for fablint import. The exit code is 1 if NEW is worse
    than OLD by more than the margin, 3 if that is undecided.

    \b
    Examples:
      fablint compare before.run after.run
      fablint compare openmpi.run mpich.run --margin 5% --html -o libraries.html
    """
    from fablint.report import changes_facts, changes_text, write_changes_page
    from fablint.workflows.analysis import compare_runs

    if output is not None and not is_page:
        raise UsageError("-o names the page: it requires --html", "add --html, or redirect the text")
    runs = session.read((old,)), session.read((new,))
    page = _page(runs[1].path, output, new) if is_page else None
    changes = compare_runs(*runs, topology, margin)
    most = _SHOWN if sys.stdout.isatty() and not everything else None
    session.result(changes_text(changes, most=most, color=in_colour()), changes_facts(changes))
    if page is not None:
        write_changes_page(changes, *runs, page)
        session.say(f"page: {page}")
    return changes.exit_code


def _page(run: Path | None, output: Path | None, new: Path) -> Path:
    """Return the page's path."""
    from fablint.workflows.analysis import page_of

    if output is None and run is None:
        raise UsageError(f"{new} is a file, not a run directory for the page", "name the page with -o page.html")
    return output or page_of(new).with_name("compare.html")
