"""The rows of a run: what its facts say of the measurements, read once."""

from __future__ import annotations

from dataclasses import replace

from fablint.model import Row, RowSpec, Run
from fablint.plan.rows.row_text import read_row


def spec_of(row: Row) -> RowSpec:
    """Return the options of a row of a run, from its facts, as the row of a plan."""
    return _named(row.facts.options, row.name)


def planned_specs(run: Run) -> dict[str, RowSpec]:
    """Return the planned rows of a run by name, in order, without rows that were not started and that no plan names."""
    names = run.facts.rows
    texts = dict(zip(names, run.facts.plan, strict=False))
    texts |= {row.name: row.facts.options for row in run.rows if row.facts.options}
    return {name: _named(texts[name], name) for name in names if name in texts}


def _named(text: str, name: str) -> RowSpec:
    return replace(read_row(text), name=name)
