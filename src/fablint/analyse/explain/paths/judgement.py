"""Judgements of the paths between switches."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import stdtrit

from fablint.analyse.null_model.geometry import most_extra_s
from fablint.analyse.null_model.path_levels import PathLevels
from fablint.model import EvidenceRecord
from fablint.model.arrays import Codes, Floats


class Judgement(Enum):
    """Judgement of one path."""

    FEW = auto()  # measured between too few hosts, or with nothing to compare it with
    FINE = auto()  # as fast as the others of its kind
    DESIGN = auto()  # as slow as all others of its kind
    GEOMETRY = auto()  # later by no more than a longer cable or more switches explain
    SLOW = auto()  # slower than the others of its kind
    ONCE = auto()  # slower than the others of its kind, but not evenly over time
    BESIDE = auto()  # slower among other messages; alone it was not measured
    LONE = auto()  # slower than messages on a switch, with nothing of its kind to compare it with
    POPULATION = auto()  # in one of two populations, of which nothing says which is healthy


class Reference(NamedTuple):
    """What the time of a path is compared with. `fablint.text.evidence_sentences` has words for each kind."""

    kind: Literal["", "faster_population", "faster_of_kind", "other_direction", "other_paths", "switch", "declared"]
    paths: int = 0  # number of other paths


@dataclass
class PathJudgements:
    """Judgements of the entries of `levels`, in the same order. Entries on a switch are FEW."""

    levels: PathLevels
    of: list[Judgement]
    reference: Floats  # log time of the reference, NaN without reference
    beside: list[Reference]
    edge: Floats  # log time of messages on the switches at both ends, NaN where unknown
    edge_error: Floats  # standard error of that from scatter beyond the noise of all pairs
    kind: Codes
    cables: Codes  # (k,) cables of each path of small messages, 0 where their number is unknown
    group: Codes  # (S,) group of each switch
    tolerance: Floats  # log-effect that a healthy member of the kind may have
    unknown_lengths: bool  # whether the numbers of cables of the paths are unknown
    slow_at: dict[int, EvidenceRecord] = field(default_factory=dict)  # time of slowness by entry

    @property
    def loss(self) -> Floats:
        """(k,) log-effect relative to the reference."""
        return self.levels.level - self.reference

    @cached_property
    def on_switch_s(self) -> Floats:
        """(k,) time of a message on the switches at both ends, s; where it is unknown, that of the fastest path."""
        fastest = self.levels.level[self.levels.is_path].min()
        return np.asarray(np.exp(np.where(np.isnan(self.edge), fastest, self.edge)))

    @cached_property
    def geometry_s(self) -> Floats:
        """(k,) largest time that the geometry of a path adds to a small message, s."""
        return most_extra_s(self.on_switch_s, unknown_lengths=self.unknown_lengths)

    def entries(self, *judgements: Judgement) -> list[int]:
        """Return the entries with one of these judgements."""
        return [entry for entry, judgement in enumerate(self.of) if judgement in judgements]


@dataclass(frozen=True)
class Measure:
    """Parameters of the judgement of one row and size."""

    latency: bool
    tolerance: float  # smallest tolerance, log-effect
    spread_factor: float
    chance: float  # probability of a false judgement among all paths
    in_scope: float  # loss relative to messages on a switch, from which a path is reported


def error_quantile(levels: PathLevels, measure: Measure) -> float:
    """Return the number of standard errors that a path of all paths exceeds by chance."""
    tests = max(1, int(levels.is_path.sum()))
    return float(stdtrit(levels.freedom, 1 - measure.chance / tests))
