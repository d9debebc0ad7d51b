"""The verb `import`: files of another tool become a run directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fablint.cli.options import FILE
from fablint.cli.session import Session, verb

if TYPE_CHECKING:
    from fablint.model import Run


@verb(name="import", short_help="Convert the output of another tool to a run.")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@click.option("-o", "--output", type=FILE, required=True, metavar="RUN", help="Run directory to write.")
@click.option("--hosts", metavar="LIST", help="Host of each rank in rank order, for files that do not name them.")
def import_(session: Session, files: tuple[Path, ...], output: Path, hosts: str | None) -> None:
    """Make a run directory from FILEs that another tool wrote.

    Supported are OSU 2 to 7, net_sanitizer, LinkTest (logs and SION files of 1.2), mpiGraph, HP2P, IMB, ClusterKit,
    nccl-tests, perftest, nvbandwidth, and CSV with columns of two hosts, a size and a time or bandwidth. The format is
    recognised by the content. Files of the same tool make one run: more pairs, or the same pairs again. Labels of
    launchers are removed, and job maps of launchers name the hosts of ranks; lines that are not part of the format are
    excluded and named on stderr.

    \b
    Examples:
      fablint import osu-night.out -o night.run
      fablint import osu_latency.txt -o pair.run --hosts nid[001-002]
    """
    from fablint.model.facts.json_objects import document_of
    from fablint.workflows.run_formats import import_files

    run = import_files(session.machine(), files, output, hosts)
    session.say_excluded_lines(run)
    facts = {"run": str(output), "state": run.state, "imported": document_of(run.facts.imported)}
    session.result("\n".join([_summary(run, output), *run.notes]), {**facts, "notes": list(run.notes)})


def _summary(run: Run, output: Path) -> str:
    tool, hosts = run.facts.imported.tool if run.facts.imported else "", len(run.hosts)
    rows = ", ".join(row.name for row in run.rows)
    return f"{output}: {run.state}, {tool}, {run.ranks} ranks on {hosts} hosts, rows {rows}"
