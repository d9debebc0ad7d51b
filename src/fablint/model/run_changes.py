"""What changed between two runs: by scope, by host and by finding."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from fablint.model.component import ComponentRef
from fablint.model.registry import Quantity
from fablint.model.verdict import Finding, VerdictWord


class ChangeState(StrEnum):
    """Result of a comparison with the margin; the gravest first."""

    WORSE = "WORSE"  # the whole interval is beyond the margin, on the side of the loss
    UNDECIDED = "UNDECIDED"  # the interval contains the margin
    BETTER = "BETTER"  # the whole interval is beyond the margin, on the side of the gain
    NOT_WORSE = "NOT WORSE"  # the whole interval is above the loss of the margin


@dataclass(frozen=True)
class MeasuredChange:
    """The change of one quantity of a scope or of a host between two runs.

    `change` and `interval` (95 %) are relative changes of the quantity: -0.03 is 3 % less bandwidth, or 3 % less
    latency; without an interval where one cell does not show how much the times vary. A loss of `smallest` or more is
    WORSE.
    """

    state: ChangeState
    row: str
    size: int  # bytes
    quantity: Quantity
    change: float
    interval: tuple[float, float] | None
    smallest: float
    scope: str = ""  # of a change of a scope
    component: ComponentRef | None = None  # of a change of a host or NIC, relative to all other ones
    direction: Literal["tx", "rx"] | None = None


@dataclass(frozen=True)
class FindingChange:
    """A FAULT, SUSPECT or SUPPRESSED finding of one run or of both."""

    kind: Literal["new", "gone", "unchanged"]
    finding: Finding  # of the new run, if the new run has the finding


@dataclass(frozen=True)
class RunChanges:
    """The comparison of a run with an older one."""

    verdict: VerdictWord
    exit_code: int
    margin: float  # relative loss
    scopes: tuple[MeasuredChange, ...]
    hosts: tuple[MeasuredChange, ...]  # those that are WORSE or BETTER
    seen: tuple[MeasuredChange, ...]  # for each row, size and direction, the largest change of a host that is neither
    findings: tuple[FindingChange, ...]
    hosts_compared: int
    only_old: tuple[str, ...]  # hosts or NICs that only the old run measured
    only_new: tuple[str, ...]
    notes: tuple[str, ...]
