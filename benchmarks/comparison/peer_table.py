"""Tables of the engine beside other programs: the columns of the figures, and the comparisons that can be made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Protocol, TypeVar

from comparison.alternating import ratio_of_medians
from comparison.failed_starts import FailedStart


class Named(Protocol):
    """A comparison with a program."""

    @property
    def name(self) -> str: ...
    @property
    def program(self) -> str: ...


C = TypeVar("C", bound=Named)


def columns_of(figures: Mapping[str, Sequence[float]], unit: str) -> str:
    """Return the medians of `ours` and `theirs`, the unit, and the ratio of the medians with its interval."""
    ours, theirs = figures["ours"], figures["theirs"]
    return f"{median(ours):>11.4g} {median(theirs):>11.4g} {unit:<5} {ratio_of_medians(ours, theirs)}"


def print_lines(name: str, lines: Iterable[str]) -> None:
    """Print the lines of a comparison as they are measured; where a start fails, the reason in place of the rest."""
    try:
        for line in lines:
            print(line, flush=True)
    except FailedStart as failure:
        print(f"{name:<22} skipped: {failure}", flush=True)


def print_installed(comparisons: Iterable[C], only: str, lines: Callable[[C], Iterable[str] | None]) -> None:
    """Print the lines of the comparisons whose name contains `only`, then the programs that are not installed.

    `lines` measures and yields the lines of a comparison; it returns None where the program is not installed.
    """
    missing: dict[str, None] = {}
    for comparison in comparisons:
        if only not in comparison.name:
            continue
        measured = lines(comparison)
        if measured is None:
            missing[comparison.program] = None
            continue
        print_lines(comparison.name, measured)
    if missing:
        print(f"not installed: {', '.join(missing)}")
