"""What is left to measure of a run that ended early."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from fablint.errors import UsageError
from fablint.model import Plan, PlanRow, Row, RowSpec, Run, Slots
from fablint.plan.rows.cost import row_seconds
from fablint.plan.rows.pattern_extent import Extent
from fablint.plan.rows.plan_file import ReadFile, plan_row
from fablint.plan.rows.run_rows import planned_specs, spec_of


def resume_plan(run: Run, missing: Mapping[str, Sequence[int]], read_file: ReadFile | None = None) -> Plan:
    """The rows of `run` restricted to the rounds that are missing, in the order of the run.

    Complete rows stay in the plan with `--only-rounds none`, since the engine writes the list of rows anew. Rows that
    were never started are planned whole, from the root attribute `plan`. A row that was measured again in part (its
    `NAME-retest` was begun) is not retested a second time: the retest is a row of the run, with rounds of its own.

    Parameters
    ----------
    run
        The run to finish.
    missing
        Rounds to measure, per row name (`store.missing_rounds`); rows without an entry are complete.
    read_file
        Reads the rounds files of rows that were never started.

    Returns
    -------
    Plan
        A plan for the same ranks, on the hosts where they were. It has no rows when nothing is missing.

    Raises
    ------
    UsageError
        A row that was never started cannot be planned.
    """
    started = {row.name: row for row in run.rows}
    specs = planned_specs(run)
    rows = [
        _rest(run, started[name], missing.get(name, ()))
        if name in started
        else _whole(run, name, specs.get(name), read_file)
        for name in run.facts.rows
    ]
    return Plan(run.ranks, tuple(rows) if any(row.rounds for row in rows) else (), slots_of(run))


def slots_of(run: Run) -> tuple[Slots, ...]:
    """Return where the ranks of a run were, in their order."""
    return tuple(Slots(host, len(list(ranks))) for host, ranks in groupby(run.rank_host))


def grown_plan(run: Run, added: Plan) -> Plan:
    """The rows of a run as they are, and those of `added`."""
    kept = tuple(_rest(run, row, ()) for row in run.rows)
    return Plan(run.ranks, (*kept, *added.rows), added.slots)


def _whole(run: Run, name: str, spec: RowSpec | None, read_file: ReadFile | None) -> PlanRow:
    if spec is None:
        raise UsageError(
            f"row {name} was not started and the run does not say what it was", "measure it into a new run"
        )
    return plan_row(spec, run.ranks, read_file)


def _rest(run: Run, row: Row, rounds: Sequence[int]) -> PlanRow:
    spec = replace(spec_of(row), only_rounds=tuple(rounds))
    if f"{row.name}-retest" in run.facts.rows:  # which pairs are the slowest was decided then
        spec = replace(spec, retest=0)
    return PlanRow(spec, len(rounds), row_seconds(spec, _extent(row, spec), len(rounds)))


def _extent(row: Row, spec: RowSpec) -> Extent:
    """From the facts: the row may name a rounds file, which planning cannot read."""
    cells = row.facts.schedule.planned_cells
    pairs = sum(cells)
    both_ways = spec.kernel_info.bidirectional or spec.directions_measured == 2
    return Extent(len(cells), -(-pairs // 2) if both_ways else pairs)
