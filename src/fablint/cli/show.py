"""The verb `show`: contents of a run."""

from __future__ import annotations

from pathlib import Path

from fablint.cli.options import runs_argument
from fablint.cli.session import Session, verb


@verb(short_help="Show the contents of a run, without analysis.")
@runs_argument
def show(session: Session, runs: tuple[Path, ...]) -> None:
    """Print the contents of a run: launch, rows, measured rounds. Without analysis.

    \b
    Example:
      fablint show night.run
    """
    from fablint.model.facts.json_objects import document_of
    from fablint.report import connection_facts, run_summary
    from fablint.workflows.run_files import missing_levels

    run = session.read(runs)
    missing = missing_levels(run)
    text = run_summary(run, missing)  # reads the cells: notes on damaged ones are known after it
    facts = {
        "run": " ".join(map(str, runs)),
        "attributes": document_of(run.facts),
        "rows": {row.name: document_of(row.facts) for row in run.rows},
        "connections": connection_facts(run.rows),
        "notes": list(run.notes),
        "missing_levels": missing,
    }
    session.result(text, facts)
