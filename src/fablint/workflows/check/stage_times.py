"""How long each stage of a check took."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

Stage = Literal["asking", "planning", "starting", "judging"]


class StageTimes:
    """Seconds spent in each stage of a check, without the measurement; stages do not overlap.

    Ranks start beside the first two stages: `starting` is what is waited for them after that.

    Attributes
    ----------
    seconds
        By stage: `asking` the hosts (preflight, counters), `planning` (topology, engine), `starting` ranks, `judging`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begun = clock, clock()
        self.seconds: dict[Stage, float] = defaultdict(float)

    @property
    def total_s(self) -> float:
        """Return the seconds since the check began."""
        return self._clock() - self._begun

    @contextmanager
    def spent_on(self, stage: Stage) -> Iterator[None]:
        """Count the time until the end of the `with` block."""
        begun = self._clock()
        try:
            yield
        finally:
            self.seconds[stage] += self._clock() - begun
