"""What a site promises of its fabric, and what became of it: words that planning, judging and reporting share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fablint.model import Finding, Note, Scope
from fablint.model.registry import Quantity


@dataclass(frozen=True)
class Threshold:
    """What pairs of a scope should reach. `value`, `lowest` and `highest` are seconds, or bytes/s of a bandwidth.

    A figure below `lowest` or above `highest` is outside; None: there is no limit on that side.
    """

    scope: Scope | None  # None: of any scope that has no threshold of its own
    kernel: str
    size: int
    quantity: Quantity
    value: float
    lowest: float | None
    highest: float | None
    source: str  # `site.toml: threshold 3`
    single_pairs: bool = True  # report single pairs outside the limits; else only scopes and hosts

    def facts(self) -> dict[str, Any]:
        """Return the facts for programs."""
        return {**vars(self), "scope": str(self.scope) if self.scope else "any"}


@dataclass(frozen=True)
class Compared:
    """A threshold beside what was measured of one scope: ordered pairs, each with its median."""

    threshold: Threshold
    scope: Scope
    rows: tuple[str, ...]
    pairs: int
    least: float
    median: float
    most: float
    outside: int

    @property
    def verdict(self) -> Literal["met", "missed"]:
        """`missed` if any figure is outside the threshold, else `met`."""
        return "missed" if self.outside else "met"

    def facts(self) -> dict[str, Any]:
        """Return the facts for programs."""
        figures = {name: getattr(self, name) for name in ("pairs", "least", "median", "most", "outside", "verdict")}
        rows = list(self.rows)
        return {"threshold": self.threshold.facts(), "scope": str(self.scope), "rows": rows, **figures}


@dataclass(frozen=True)
class Comparison:
    """A site's thresholds compared with a run, the findings, and the thresholds that could not be compared."""

    compared: tuple[Compared, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[Note, ...] = ()
