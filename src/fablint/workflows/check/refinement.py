"""`--until`: the levels are measured again until the losses that the user asked for would be named."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from fablint.errors import UsageError
from fablint.model import Note, Verdict
from fablint.model.limits.detection_limits import TOLERANCE
from fablint.text import notes as noted
from fablint.text.units import share_text

_MOST_PASSES = 16
_LEAST_GAIN = 0.02  # of the loss by a pass, relative: below it further passes do not help


def refuse_too_small(until: float) -> None:
    """Raise UsageError for a loss that no number of measurements names."""
    if until <= TOLERANCE:
        raise UsageError(
            f"--until {share_text(until)}: healthy components differ by up to {share_text(TOLERANCE)}",
            "give more, as 8%",
        )


@dataclass
class Refinement:
    """The smallest loss that would be named, pass after pass; `until`: that the user asked for, None: no matter.

    Attributes
    ----------
    loss
        The largest of the losses that would be named, by type of component and quantity; infinite before the first
        diagnosis, or where no component is judged.
    passes
        Number of times that the levels were measured again.
    """

    until: float | None = None
    loss: float = field(default=math.inf, init=False)
    passes: int = field(default=0, init=False)
    why: str = field(default="", init=False)  # why no further pass follows, although the loss is larger than asked for

    def needs_pass(self, verdict: Verdict, *, is_time_over: bool) -> bool:
        """Tell whether the levels are to be measured once more after this verdict."""
        if self.until is None:
            return False
        before, self.loss = self.loss, _largest_loss(verdict)
        self.why = ""
        if self.loss <= self.until:
            return False
        if is_time_over:
            self.why = "the budget ended"
        elif self.passes and self.loss > before * (1 - _LEAST_GAIN):
            self.why = "further rounds do not lower it"
        elif self.passes == _MOST_PASSES:
            self.why = "the planned rounds ended"
        self.passes += not self.why
        return not self.why

    @property
    def is_reached(self) -> bool:
        """Return whether all losses that the user asked for would be named."""
        return self.until is None or self.loss <= self.until

    @property
    def notes(self) -> list[Note]:
        """Return a note where a loss that the user asked for would not be named."""
        if self.until is None or self.is_reached:
            return []
        loss = self.loss if math.isfinite(self.loss) else None
        return [noted.loss_not_reached(until=self.until, loss=loss, why=self.why or "the check ended early")]


def _largest_loss(verdict: Verdict) -> float:
    """Return the largest of the losses that would be named; infinite where no component is judged."""
    named = verdict.limits.named if verdict.limits is not None else ()
    return max((item.loss for item in named), default=math.inf)
