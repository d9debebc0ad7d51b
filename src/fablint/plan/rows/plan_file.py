"""Plan files: one row per line, `#` starts a comment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, count

from fablint.errors import UsageError
from fablint.model import Plan, PlanRow
from fablint.model.row import RowSpec
from fablint.plan.rows.benchmarks import Benchmark
from fablint.plan.rows.cost import row_seconds
from fablint.plan.rows.pattern_extent import Extent
from fablint.plan.rows.patterns import extent, parse_inline_rounds, parse_rounds
from fablint.plan.rows.refusals import Values
from fablint.plan.rows.row_text import parse_row
from fablint.plan.rows.side_by_side import media, named_after_medium

ReadFile = Callable[[str], str]  # path as written in the plan -> its text; may raise OSError


def parse_plan(
    text: str,
    ranks: int,
    source: str,
    read_file: ReadFile | None = None,
    benchmarks: Mapping[str, Benchmark] | None = None,
    carriers: Values | None = None,
) -> Plan:
    """Check a plan for `ranks` ranks and predict how long it takes.

    Parameters
    ----------
    text
        Content of the plan file.
    ranks
        Ranks that will run it.
    source
        Its name, for messages: `plan.txt:7: unknown option --sizs: did you mean --sizes`.
    read_file
        Reads the rounds files that the plan names; rows with one need it.
    benchmarks
        The registry; rows that name a benchmark need it.
    carriers
        `--transport`, `--device` and the like for all rows; a row is measured over each of several transports.

    Returns
    -------
    Plan
        The rows with their rounds and predicted times.

    Raises
    ------
    UsageError
        Naming the line at fault, or the file when it holds no row.
    """
    rows: list[PlanRow] = []
    names: dict[str, int] = {}
    each = media(carriers or {})
    for number, line in _lines(text):
        try:
            for carrier in each:
                request = parse_row(line.split(), benchmarks, carrier)
                request = _named(request, names) if len(each) > 1 else request
                for name in _names(request):
                    _refuse_twice(name, names)
                    names[name] = number
                rows.append(plan_row(request, ranks, read_file))
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


def _named(row: RowSpec, taken: Collection[str]) -> RowSpec:
    """Return the row named after its medium; a number makes the name of a row without a name unique."""
    named = named_after_medium(row)
    if row.name is not None:
        return named
    later = (f"{named.name}-{number}" for number in count(2))
    return replace(row, name=next(name for name in chain([named.name], later) if name not in taken))


def _names(row: RowSpec) -> Iterator[str]:
    """Return what the row calls its groups; a row without a name gets a free one from the engine."""
    if row.name is not None:
        yield row.name
        if row.retest:
            yield f"{row.name}-retest"


def _refuse_twice(name: str, names: dict[str, int]) -> None:
    if name in names:
        raise UsageError(f"the name {name} is taken by line {names[name]}", "give --name another value")


def plan_of(rows: Iterable[RowSpec], ranks: int) -> Plan:
    """Return the plan of rows without rounds files. Raises UsageError where one makes no sense for `ranks` ranks."""
    return Plan(ranks, tuple(plan_row(row, ranks) for row in rows))


def plan_row(row: RowSpec, ranks: int, read_file: ReadFile | None = None) -> PlanRow:
    """Return the row with rounds and predicted time. Raises UsageError where it makes no sense for `ranks` ranks."""
    size = _extent(row, ranks, read_file)
    rounds = size.rounds * row.repeats
    if row.only_rounds is not None:
        last = max(row.only_rounds, default=0)
        if last >= rounds:
            raise UsageError(f"--only-rounds: round {last} does not exist", f"the row has rounds 0-{rounds - 1}")
        rounds = len(row.only_rounds)
    return PlanRow(row, rounds, row_seconds(row, size, rounds))


def _extent(row: RowSpec, ranks: int, read_file: ReadFile | None) -> Extent:
    """Rounds and groups of one repeat of the row."""
    if row.rounds is not None:
        return extent(row, ranks, parse_inline_rounds(row.rounds, ranks))
    if row.rounds_file is None:
        return extent(row, ranks)
    if read_file is None:
        raise UsageError(f"--rounds-file {row.rounds_file}: files cannot be read here", "put the row into a plan file")
    try:
        return extent(row, ranks, parse_rounds(read_file(row.rounds_file), ranks, row.rounds_file))
    except OSError as error:
        raise UsageError(
            f"--rounds-file {row.rounds_file}: {error.strerror or error}", "name a readable file"
        ) from None
