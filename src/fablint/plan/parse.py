"""Plan files: one row per line, `#` starts a comment."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fablint.errors import UsageError
from fablint.model import Plan, PlanRow
from fablint.plan.cost import row_seconds
from fablint.plan.grammar import RowRequest, parse_row
from fablint.plan.patterns import Extent, extent, parse_rounds

ReadFile = Callable[[str], str]  # path as written in the plan -> its text; may raise OSError


def parse_plan(text: str, ranks: int, source: str, read_file: ReadFile | None = None) -> Plan:
    """Check a plan for `ranks` ranks and predict how long it takes.

    Args:
        text: content of the plan file.
        ranks: ranks that will run it.
        source: its name, for messages: `plan.txt:7: unknown option --sizs: did you mean --sizes`.
        read_file: reads the rounds files that the plan names; rows of pattern `rounds` need it.

    Returns:
        The plan; `PlanRow.options` is the line without its comment.

    Raises:
        UsageError: naming the line at fault, or the file when it holds no row.
    """
    rows: list[PlanRow] = []
    names: dict[str, int] = {}
    for number, line in _lines(text):
        try:
            request = parse_row(line.split())
            if request.name is not None:  # a row without a name gets a free one from the engine
                _refuse_twice(request.name, names)
                names[request.name] = number
            rows.append(_plan_row(line, request, ranks, read_file))
        except UsageError as error:
            raise UsageError(f"{source}:{number}: {error.message}", error.hint) from None
    if not rows:
        raise UsageError(f"{source}: no row in the plan", "write one row per line, such as latency --pattern all-pairs")
    return Plan(ranks, tuple(rows))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.partition("#")[0].strip()
        if bare:
            yield number, bare


def _refuse_twice(name: str, names: dict[str, int]) -> None:
    if name in names:
        raise UsageError(f"the name {name} is taken by line {names[name]}", "give --name another value")


def _plan_row(line: str, row: RowRequest, ranks: int, read_file: ReadFile | None) -> PlanRow:
    size = row_extent(row, ranks, read_file)
    rounds = size.rounds * row.repeats
    if row.only_rounds is not None:
        last = max(row.only_rounds, default=0)
        if last >= rounds:
            raise UsageError(f"--only-rounds: round {last} does not exist", f"the row has rounds 0-{rounds - 1}")
        rounds = len(row.only_rounds)
    return PlanRow(line, rounds, row_seconds(row, size, rounds))


def row_extent(row: RowRequest, ranks: int, read_file: ReadFile | None) -> Extent:
    """Rounds and pairs of one repeat of the row."""
    rounds = None
    if row.rounds_file is not None:
        if read_file is None:
            raise UsageError(
                f"--rounds-file {row.rounds_file}: files cannot be read here", "put the row into a plan file"
            )
        try:
            rounds = parse_rounds(read_file(row.rounds_file), ranks, row.rounds_file)
        except OSError as error:
            raise UsageError(
                f"--rounds-file {row.rounds_file}: {error.strerror or error}", "name a readable file"
            ) from None
    return extent(row.pattern, ranks, matchings=row.matchings, rounds=rounds)
