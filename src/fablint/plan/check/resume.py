"""What is left to measure of a run that ended early."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from fablint.errors import UsageError
from fablint.model import Plan, PlanRow, Row, Run, Slots
from fablint.plan.rows.cost import row_seconds
from fablint.plan.rows.grammar import parse_row, split_row, write_row
from fablint.plan.rows.options import RowRequest
from fablint.plan.rows.patterns import Extent
from fablint.plan.rows.plan_file import ReadFile, needs_threads, parse_plan
from fablint.plan.rows.values import fold_indices


def resume_plan(run: Run, missing: Mapping[str, Sequence[int]], read_file: ReadFile | None = None) -> Plan:
    """The rows of `run` restricted to the rounds that are missing, in the order of the run.

    Complete rows stay in the plan with `--only-rounds none`, since the engine writes the list of rows anew. Rows that
    were never started are planned whole, from the root attribute `plan`. A row that was measured again in part (its
    `NAME-retest` was begun) is not retested a second time: the retest is a row of the run, with rounds of its own.

    Args:
        run: the run to finish.
        missing: rounds to measure, per row name (`store.missing_rounds`); rows without an entry are complete.
        read_file: reads the rounds files of rows that were never started.

    Returns:
        A plan for the same ranks, on the hosts where they were. It has no rows when nothing is missing.

    Raises:
        UsageError: a row that was never started cannot be planned.
    """
    started = {row.name: row for row in run.rows}
    lines = dict(zip(run.attributes["rows"], run.attributes.get("plan", []), strict=False))
    rows = [
        _rest(run, started[name], missing.get(name, ()))
        if name in started
        else _whole(run, name, lines.get(name), read_file)
        for name in run.attributes["rows"]
    ]
    return Plan(run.ranks, tuple(rows) if any(row.rounds for row in rows) else (), seats_of(run))


def seats_of(run: Run) -> tuple[Slots, ...]:
    """Where the ranks of a run were, in their order."""
    return tuple(Slots(host, len(list(ranks))) for host, ranks in groupby(run.rank_host))


def grown_plan(run: Run, added: Plan) -> Plan:
    """The rows of a run as they are, and those of `added`."""
    kept = tuple(_rest(run, row, ()) for row in run.rows)
    return Plan(run.ranks, (*kept, *added.rows), added.slots)


def _whole(run: Run, name: str, line: str | None, read_file: ReadFile | None) -> PlanRow:
    if line is None:
        raise UsageError(
            f"row {name} was not started and the run does not say what it was", "measure it into a new run"
        )
    return parse_plan(line, run.ranks, f"row {name}", read_file).rows[0]


def _rest(run: Run, row: Row, rounds: Sequence[int]) -> PlanRow:
    kernel, texts = split_row(str(row.attributes["options"]).split())
    if f"{row.name}-retest" in run.attributes["rows"]:  # which pairs are the slowest was decided then
        texts.pop("retest", None)
    texts |= {"name": row.name, "only-rounds": fold_indices(rounds)}
    line = write_row(kernel, texts)
    request = parse_row(line.split())
    seconds = row_seconds(request, _extent(row, request), len(rounds))
    return PlanRow(line, len(rounds), seconds, threads=needs_threads(request))


def _extent(row: Row, request: RowRequest) -> Extent:
    """From the attributes: the line may name a rounds file, which planning cannot read."""
    total = int(row.attributes["rounds"])
    cells = row.attributes["cells_per_round"]
    pairs = sum(cells) if isinstance(cells, list) else cells * total
    both_ways = request.does.mutual or request.directions_measured == 2
    return Extent(total, -(-pairs // 2) if both_ways else pairs)
