"""The answer, and the data that the report and follow-up measurements also need."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fablint.model.component import ComponentRef
from fablint.model.topology import Scope, Topology
from fablint.model.verdict import Verdict

if TYPE_CHECKING:
    import numpy as np

    from fablint.model.limits.thresholds import Comparison


@dataclass(frozen=True)
class Fit:
    """The fitted model of one row and size without the pairs that findings explain: classes and effects of ranks."""

    row: str
    kernel: str
    size: int
    class_time: Mapping[Scope, float]  # seconds
    tx: np.ndarray  # (n,) log-effect of each rank as sender
    rx: np.ndarray  # (n,) as receiver
    noise: float  # robust standard deviation of what is left over, log scale
    tolerance: float = math.inf  # log-effect that a healthy rank may have

    @property
    def healthy(self) -> tuple[np.ndarray, np.ndarray]:
        """`tx` and `rx` (n,) of a healthy fabric: 0 where a rank adds more than healthy ranks do, or is not known."""
        import numpy as np

        tx, rx = (
            np.where(np.abs(effect) <= self.tolerance, np.nan_to_num(effect), np.float32(0))
            for effect in (self.tx, self.rx)
        )
        return tx, rx


@dataclass(frozen=True)
class FollowUp:
    """A part that more measuring would tell more about, and what to measure."""

    component: ComponentRef
    pairs: np.ndarray  # (k, 2) int: sender and receiver ranks, the most informative first

    @property
    def name(self) -> str:
        """The label of the component."""
        return self.component.label

    @property
    def open(self) -> bool:
        """True if there is anything to measure."""
        return len(self.pairs) > 0


@dataclass(frozen=True)
class Diagnosis:
    """Everything the report needs: the verdict, the fits, and the scope of every pair on demand."""

    verdict: Verdict
    fits: tuple[Fit, ...]
    topology: Topology | None = None
    settings: Mapping[str, float] = field(default_factory=dict)
    follow_ups: tuple[FollowUp, ...] = ()  # undecided parts
    retests: tuple[FollowUp, ...] = ()  # parts that findings report
    routes: tuple[FollowUp, ...] = ()  # pairs that were slow by themselves: the same once more
    distances: tuple[FollowUp, ...] = ()  # paths whose streams were slow beside others: the same streams alone
    comparison: Comparison | None = None  # where the site has thresholds
