"""Measurements that would settle what is open, one for each component."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from fablint.analyse.explain.outlier_pairs import SlowPair
from fablint.analyse.findings.judged_run import JudgedRun
from fablint.model import ComponentRef, FollowUp, Placement


@dataclass(frozen=True)
class ProposedMeasurements:
    """Fields of a `Diagnosis` that say what to measure next."""

    follow_ups: tuple[FollowUp, ...]
    retests: tuple[FollowUp, ...]
    distances: tuple[FollowUp, ...]
    routes: tuple[FollowUp, ...]

    @classmethod
    def of(cls, judged: JudgedRun, distances: Iterable[FollowUp]) -> Self:
        """Return those of all views; `distances` are those about paths between switches."""
        views = judged.views
        slow_pairs = [pair for view in views for pair in view.slow_pairs if pair.loss > 0]
        return cls(
            follow_ups=_once(follow_up for view in views for follow_up in view.follow_ups),
            retests=_once(follow_up for view in views for follow_up in view.retests),
            distances=_once(distances),
            routes=_once(_route_of(pair, judged.placement) for pair in slow_pairs),
        )


def _once(follow_ups: Iterable[FollowUp]) -> tuple[FollowUp, ...]:
    """Return one follow-up measurement per component: that of the first view that proposes one."""
    first: dict[ComponentRef, FollowUp] = {}
    for follow_up in follow_ups:
        first.setdefault(follow_up.component, follow_up)
    return tuple(first.values())


def _route_of(pair: SlowPair, placement: Placement) -> FollowUp:
    """Return the follow-up measurement about the route of a slow pair."""
    ends = [placement.hosts[placement.host[rank]] for rank in pair.ranks]
    component = ComponentRef.of("route", *(ends if pair.one_way else sorted(ends)), directed=pair.one_way)
    return FollowUp(component, np.array([pair.ranks, pair.ranks[::-1]]))
