"""The rows of a run: what its attributes say of the measurements, read once."""

from __future__ import annotations

from dataclasses import replace

from fablint.model import Row, RowSpec, Run
from fablint.plan.rows.row_text import read_row


def spec_of(row: Row) -> RowSpec:
    """Return the options of a row of a run, from its attributes, as the row of a plan."""
    return _named(str(row.attributes["options"]), row.name)


def planned_specs(run: Run) -> dict[str, RowSpec]:
    """Return the planned rows of a run by name, in order, without rows that were not started and that no plan names."""
    names = run.attributes.get("rows", ())
    texts = dict(zip(names, run.attributes.get("plan", ()), strict=False))
    texts |= {row.name: row.attributes["options"] for row in run.rows if "options" in row.attributes}
    return {name: _named(texts[name], name) for name in names if name in texts}


def _named(text: str, name: str) -> RowSpec:
    return replace(read_row(text), name=name)
