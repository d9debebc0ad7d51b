"""The verb `compare`: what changed between two runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from fablint.cli.options import RUN, topology_option
from fablint.cli.session import Session, in_colour, verb
from fablint.errors import UsageError

_SHOWN = 10  # hosts and findings on a terminal


def _margin(_: click.Context, __: click.Parameter, text: str) -> float:
    match = re.fullmatch(r"(\d{1,2}(?:\.\d{1,3})?)%?", text.strip())
    if not match or not 0 < float(match[1]) < 100:
        raise UsageError(f"--margin: '{text}' is not a share", "write a loss between 0% and 100%, such as 3%")
    return float(match[1]) / 100


@verb(short_help="Compare a run with an older one.")
@click.argument("old", type=RUN, metavar="OLD")
@click.argument("new", type=RUN, metavar="NEW")
@topology_option
@click.option(
    "--margin", callback=_margin, default="3%", show_default=True, metavar="SHARE", help="Loss that is accepted."
)
@click.option("--all", "everything", is_flag=True, help="Print all hosts and findings, not the first 10 of each.")
def compare(session: Session, old: Path, new: Path, topology: Path | None, margin: float, everything: bool) -> int:
    """Compare a run with an older one of the same hosts: before and after maintenance, or with two MPI libraries.

    Prints the change of each scope with its interval, the hosts that changed, and the findings that are new or gone.
    OLD and NEW are run directories, or files of other tools, as for fablint import. The exit code is 1 if NEW is worse
    than OLD by more than the margin, 3 if that is undecided.

    \b
    Examples:
      fablint compare before.run after.run
      fablint compare openmpi.run mpich.run --margin 5%
    """
    from fablint.report import changes_facts, changes_text
    from fablint.workflows.analysis import compare_runs

    changes = compare_runs(session.read((old,)), session.read((new,)), topology, margin)
    most = _SHOWN if sys.stdout.isatty() and not everything else None
    session.result(changes_text(changes, most=most, color=in_colour()), changes_facts(changes))
    return changes.exit_code
