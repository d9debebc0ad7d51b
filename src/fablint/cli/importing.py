"""The verb that turns outputs of other tools into a run, and how the verbs that read such files say what they left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.common import Session, verb

if TYPE_CHECKING:
    from fablint.model import Run

SHOWN = 5  # lines left out that are shown on stderr
_WIDTH = 60  # characters of such a line

hosts_option = click.option(
    "--hosts", metavar="NODESET", help="Hosts of the ranks in rank order, for files that do not name them."
)


@verb(name="import", short_help="Make a run of what another tool printed.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="RUN", help="Run directory to write."
)
@hosts_option
def import_verb(session: Session, files: tuple[Path, ...], output: Path, hosts: str | None) -> None:
    """Make a run directory of FILEs that another tool wrote.

    Read are OSU 4 to 7, net_sanitizer, LinkTest (logs and SION files of 1.2), mpiGraph, HP2P, IMB, ClusterKit,
    nccl-tests and CSV with the columns src, dst, size and time, time_us or bandwidth. What a file is, is told by
    what it says. Files of the same tool make one run: more pairs, or the same pairs again. Lines that are not part
    of the format are left out and named on stderr.

    \b
    Examples:
      fablint import osu-night.out -o night.run
      fablint import osu_latency.txt -o pair.run --hosts nid[001-002]
    """
    from fablint.workflows import flow

    run = flow.import_files(session.machine(), files, output, hosts)
    say_left_out(session, run)
    facts = {"format": 1, "run": str(output), "state": run.state, "imported": run.attributes["imported"]}
    session.result("\n".join([_summary(run, output), *run.notes]), {**facts, "notes": list(run.notes)})


def _summary(run: Run, output: Path) -> str:
    tool, hosts = run.attributes["imported"]["tool"], len(run.hosts)
    rows = ", ".join(row.name for row in run.rows)
    return f"{output}: {run.state}, {tool}, {run.ranks} ranks on {hosts} hosts, rows {rows}"


def say_left_out(session: Session, run: Run) -> None:
    """Name the first lines of an import that were left out; nothing for a run that was measured."""
    imported: Mapping[str, Any] = run.attributes.get("imported") or {}
    lines: Sequence[Mapping[str, Any]] = imported.get("lines_left_out") or ()
    for line in lines[:SHOWN]:
        text = str(line["text"])
        text = text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
        session.say(f"{line['file']}:{line['line']}: left out, {line['why']}: {text!r}")
    if len(lines) > SHOWN:
        session.say(f"and {len(lines) - SHOWN} more lines left out: fablint import --json has all")
