"""What every table is: text for people and the parsers of other tools, facts for programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from fablint.errors import UsageError
from fablint.model import Medium, Row, Run
from fablint.text import units
from fablint.version import __version__

Part = TypeVar("Part")  # what a section of a table shows


class Table(Protocol):
    """A rendered table."""

    @property
    def text(self) -> str:
        """Newline-terminated."""
        ...

    def as_dict(self) -> dict[str, Any]:
        """JSON-able, with the same figures unrounded: seconds, bytes and bytes/s unless a key names another unit."""
        ...


@dataclass(frozen=True)
class Options:
    """What a user can ask of any table; a table refuses an option that it has no use for."""

    percentiles: tuple[float, ...] = ()
    full: bool = False  # all columns, all lines
    slowest: int | None = None  # so many of the slowest pairs, slowest first

    @property
    def given(self) -> dict[str, bool]:
        """Return which options are set, by name."""
        return {"percentiles": bool(self.percentiles), "full": self.full, "slowest": self.slowest is not None}


@dataclass(frozen=True)
class Rendered:
    """A table whose lines are made."""

    lines: tuple[str, ...]
    facts: Mapping[str, Any]

    @property
    def text(self) -> str:
        return "".join(f"{units.printable(line)}\n" for line in self.lines)

    def as_dict(self) -> dict[str, Any]:
        return {key: _plain(value) for key, value in self.facts.items()}


@dataclass(frozen=True)
class Several:
    """Tables below each other."""

    name: str
    tables: tuple[Table, ...]

    @property
    def text(self) -> str:
        return "\n".join(table.text for table in self.tables)

    def as_dict(self) -> dict[str, Any]:
        return {"table": self.name, "tables": [table.as_dict() for table in self.tables]}


def _plain(value: Any) -> Any:
    """Return a value for JSON, which has no infinity and no NaN."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def stacked(name: str, tables: Sequence[Table]) -> Table:
    """One table as it is, several below each other."""
    return tables[0] if len(tables) == 1 else Several(name, tuple(tables))


@dataclass(frozen=True)
class TableKind(Generic[Part]):
    """A table that `report --table` prints: a call with a run, some of its rows and options makes it.

    Attributes
    ----------
    name
        For the option.
    options
        The `Options` that it has a use for.
    needs, measure
        What of a run it shows, and how to measure that: for the error where the rows have none.
    parts
        Function that returns what the table shows of a run and its rows, one part for each section.
    section
        Function that makes the section of a part.
    """

    name: str
    options: tuple[str, ...]
    needs: str
    measure: str
    parts: Callable[[Run, Sequence[Row]], Sequence[Part]]
    section: Callable[[Run, Part, Options], Table]

    def __call__(self, run: Run, rows: Sequence[Row], options: Options) -> Table:
        """Return the table. Raises UsageError if it shows none of the rows, or lacks an option that is set."""
        for option, is_given in options.given.items():
            if is_given and option not in self.options:
                raise UsageError(f"table {self.name} has no use for --{option}", "leave it out")
        parts = self.parts(run, rows)
        if not parts:
            have = ", ".join(f"{row.name} ({row.kernel}, {row.pattern})" for row in rows[:4]) or "none"
            more = f" and {len(rows) - 4} more" if len(rows) > 4 else ""
            where = f"run {run.path}" if run.path else "the run"
            raise UsageError(f"table {self.name} needs {self.needs}, {where} has rows: {have}{more}", self.measure)
        return stacked(self.name, [self.section(run, part, options) for part in parts])


def medium_words(*rows: Row) -> list[str]:
    """Return a line that says how the messages travelled; none if all are those of MPI in memory of the host."""
    labels = dict.fromkeys(row.medium.label for row in rows)
    return [f"messages over the transport {', '.join(labels)}"] if {*labels} - {Medium().label} else []


def program() -> str:
    """Name and version of the program, as the tables print them."""
    return f"fablint {__version__}"


def fixed(value: float | None, digits: int = 3) -> str:
    """Return a figure with two decimals, as OSU prints it, or more where it has less than `digits` significant digits.

    >>> fixed(0.012345), fixed(1.5), fixed(0.99999), fixed(16557062.357), fixed(0.0), fixed(None), fixed(0.0123, 0)
    ('0.0123', '1.50', '1.00', '16557062.36', '0.00', '-', '0.01')
    """
    if value is None or not math.isfinite(value):
        return "-"
    exponent = int(f"{value:.2e}".partition("e")[2])  # of what is printed: 0.9999 is 1.00
    return f"{value:.{max(2, digits - 1 - exponent) if digits else 2}f}"


def right(cell: str, width: int) -> str:
    """Align right in a column; what is too wide for it still stands apart from its neighbour."""
    return cell.rjust(width) if len(cell) < width else f" {cell}"
