"""The accepted loss of a quantity as a change of the log time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fablint.model.registry import Quantity
from fablint.model.run_changes import ChangeState
from fablint.text import units


@dataclass(frozen=True)
class MarginLimits:
    """Changes of the log time that the margin of a quantity stands for."""

    quantity: Quantity
    margin: float  # relative loss

    @property
    def loss(self) -> float:
        """Change of the log time of a loss of the margin: positive."""
        return -math.log1p(-self.margin) if self.quantity == "bandwidth" else math.log1p(self.margin)

    @property
    def gain(self) -> float:
        """Change of the log time of a gain of the margin: negative."""
        return -math.log1p(self.margin) if self.quantity == "bandwidth" else math.log1p(-self.margin)

    def state(self, low: float, high: float) -> ChangeState:
        """Return the result for an interval of the change of the log time."""
        if low > self.loss:
            return ChangeState.WORSE
        if high < self.gain:
            return ChangeState.BETTER
        return ChangeState.NOT_WORSE if high < self.loss else ChangeState.UNDECIDED

    def state_of_host(self, change: float, reach: float) -> ChangeState:
        """Return the result for a change of the log time of a host; healthy hosts may change by `reach`."""
        if min(self.gain, -reach) < change < max(self.loss, reach):
            return ChangeState.NOT_WORSE
        return ChangeState.WORSE if change > 0 else ChangeState.BETTER

    def interval(self, centre: float, reach: float) -> tuple[float, float]:
        """Return the interval of the quantity's relative change from one of the log time."""
        ends = sorted(units.change(self.quantity, end) for end in (centre - reach, centre + reach))
        return ends[0], ends[1]

    def smallest(self, reach: float) -> float:
        """Return the relative loss that stands for a change of the log time of `reach`, or the margin if larger."""
        return abs(units.change(self.quantity, max(self.loss, reach)))
