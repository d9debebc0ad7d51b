"""What an option of `fablint bench` is: its spellings, what it sets, and for which benchmarks it means something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from fablint.plan import Benchmark
    from fablint.plan.rows.options import RowRequest

# Why an option means nothing for a benchmark that is made of these rows; empty where it means something.
Reason = Callable[["Benchmark", "Sequence[RowRequest]"], str]


class Count(click.ParamType[int]):
    """A whole number of at least `least`."""

    name = "count"

    def __init__(self, least: int) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        if not str(value).isdecimal() or int(value) < self.least:
            self.fail(f"'{value}' is no whole number of at least {self.least}", param, ctx)
        return int(value)


@dataclass(frozen=True)
class Setting:
    """An option of `bench`.

    `row` is the option of the row that it sets, to what the user gives or, for a switch, to `text` (None: an option
    without a value). With `messages` the user counts messages where the row counts repetitions.
    """

    spellings: tuple[str, ...]
    help: str
    row: str = ""
    text: str | None = None
    messages: bool = False
    why_not: Reason | None = None
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def spelling(self) -> str:
        """The long one."""
        return next(spelling for spelling in self.spellings if spelling.startswith("--"))

    @property
    def parameter(self) -> str:
        """Its name as an argument of the verb."""
        return self.spelling.removeprefix("--").replace("-", "_")

    def no_meaning(self, benchmark: Benchmark, rows: Sequence[RowRequest]) -> str:
        """Why it means nothing for a benchmark; empty where it means something."""
        from fablint.plan import without_meaning

        why = self.why_not(benchmark, rows) if self.why_not else ""
        return why or (without_meaning(self.row, rows) if self.row else "")

    def decorate(self, verb: Callable[..., Any]) -> Callable[..., Any]:
        return click.option(*self.spellings, self.parameter, help=self.help, **self.attributes)(verb)


def switch(
    spellings: str, words: str, row: str = "", text: str | None = None, why_not: Reason | None = None
) -> Setting:
    """An option without a value."""
    return Setting((*spellings.split(),), words, row, text, why_not=why_not, attributes={"is_flag": True})


def value(spellings: str, form: str, words: str, row: str = "", **more: Any) -> Setting:
    """An option with a value. `form` names it, or lists the choices with `|` between them."""
    own = {key: more.pop(key) for key in ("messages", "why_not") if key in more}
    if "|" in form:
        more |= {"type": click.Choice(form.split("|"))}
    else:
        more |= {"metavar": form}
    return Setting((*spellings.split(),), words, row, attributes=more, **own)


def of(*families: str) -> Reason:
    """For the benchmarks of these programs alone."""
    return lambda benchmark, _: "" if benchmark.family in families else f"it is for {_and(families)}"


def named(*names: str) -> Reason:
    """For these benchmarks alone."""
    return lambda benchmark, _: "" if benchmark.name in names else f"it is for {_and(names)}"


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def both(one: Reason, other: Reason) -> Reason:
    """For benchmarks that both are for."""
    return lambda benchmark, rows: one(benchmark, rows) or other(benchmark, rows)


def not_the_world(benchmark: Benchmark, rows: Sequence[RowRequest]) -> str:
    """For rows in which ranks have partners."""
    return "" if any(row.pattern != "world" for row in rows) else f"in {benchmark.name} all ranks meet at once"


def percentiles_shown(benchmark: Benchmark, _: Sequence[RowRequest]) -> str:
    """For tables with columns of percentiles."""
    return "" if benchmark.family in ("fablint", "OSU") else f"the table of {benchmark.name} has none"


def counted(benchmark: Benchmark, rows: Sequence[RowRequest]) -> str:
    """For rows that stop after a number of repetitions."""
    found = any(row.iterations for row in rows)
    return "" if found else f"{benchmark.name} has no fixed counts and stops when it is sure"


def paired(benchmark: Benchmark, rows: Sequence[RowRequest]) -> str:
    """For rows of the pairs i and i + n/2, and for kernels, which have them with more than two ranks."""
    patterns = {row.pattern for row in rows}
    found = "pairs" in patterns or (benchmark.family == "fablint" and "pair" in patterns)
    return "" if found else f"{benchmark.name} does not pair rank i with i + n/2"


def collective(benchmark: Benchmark, rows: Sequence[RowRequest]) -> str:
    """For collectives."""
    return "" if any(row.does.uses == "collectives" for row in rows) else f"{benchmark.name} is no collective"
