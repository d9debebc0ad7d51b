"""What a check will be able to tell, said before anything is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fablint.model import SCOPES, Scope
from fablint.model.arrays import RankPairs
from fablint.model.limits.detection_limits import (
    FEWEST_LINK_PAIRS,
    HYPOTHESES,
    SMALLEST_FAULT,
    TOLERANCE,
    required_evidence,
)
from fablint.plan.check.check_rows import ROWS
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.stages import Stage
from fablint.plan.schedule.stratified import collisions
from fablint.text import units
from fablint.topology.contention import link_flows
from fablint.topology.routed_placement import RoutedPlacement

# Noise of a pair's median (standard deviation, relative) that is assumed: of small messages what launches of a
# healthy cluster differ by, of large ones what a stream of 1 MiB messages differs by.
NOISE = {"latency": 0.025, "bandwidth": 0.005}


@dataclass(frozen=True)
class Sight:
    """The smallest fault that one kernel shows in one kind of part: relative, in `measurements` of each of them."""

    kernel: str
    part: str
    measurements: int
    noise: float
    smallest: float | None  # None: measured too seldom to be judged


@dataclass(frozen=True)
class Explained:
    """A plan's first stage in figures."""

    ranks: int
    hosts: int
    rounds: Mapping[str, int]  # per scope
    predicted_s: float
    links: int  # directed, between switches
    most_flows: float  # on one directed link at once; as many as the routes force, or little more
    colliding: float  # share of messages that share a link with another
    fewest_crossings: int
    sights: Sequence[Sight]

    def facts(self) -> dict[str, Any]:
        """Return the facts for programs."""
        return {
            "ranks": self.ranks,
            "hosts": self.hosts,
            "rounds": dict(self.rounds),
            "predicted_s": self.predicted_s,
            "links": self.links,
            "most_flows_per_link": self.most_flows,
            "colliding_share": self.colliding,
            "fewest_crossings": self.fewest_crossings,
            "smallest_faults": [vars(sight) for sight in self.sights],
        }

    def text(self) -> str:
        """Return the text for people."""
        lines = [f"{count:>6} rounds  {name}" for name, count in self.rounds.items()]
        lines.append(f"{self.predicted_s:>6.1f} s       predicted, without starting MPI and without what is asked next")
        if self.links:
            lines += [
                f"{self.most_flows:>6.3g} flows   at most on one of {self.links:,} directed links at once",
                f"{units.share_text(self.colliding):>8}       of the messages share a link with another one",
                f"{self.fewest_crossings:>6} pairs   at least cross each link (not judged below {FEWEST_LINK_PAIRS})",
            ]
        for sight in self.sights:
            what = f"smallest {sight.kernel} fault of a {sight.part}, {sight.measurements} measurements of each"
            size = units.share_text(sight.smallest) if sight.smallest is not None else "none  "
            lines.append(f"{size:>8}       {what}, if the noise is {units.share_text(sight.noise)}")
        return "\n".join(lines)


def explain(stage: Stage, asked: PlanInput, placement: RoutedPlacement | None = None) -> Explained:
    """Return what the first stage of a check measures, and the smallest faults that it can show.

    Parameters
    ----------
    stage
        A stage of a check.
    asked
        The request.
    placement
        Hosts, switches and routes of the ranks, if they are known.
    """
    placement = placement or asked.placement()
    rounds = next(iter(stage.rounds.values()), None)
    if rounds is None:
        return _all_pairs(stage, asked, placement)
    flows = [link_flows(pairs, placement) for pairs in rounds]
    crossed = sum(flow.sum(axis=0) for flow in flows)
    links = crossed.size
    messages = 2 * sum(len(pairs) for pairs in rounds)
    each = int(np.median(np.bincount(np.concatenate([pairs.ravel() for pairs in rounds]), minlength=placement.ranks)))
    fewest = int(crossed[crossed > 0].min(initial=np.inf)) if links and (crossed > 0).any() else 0
    return Explained(
        ranks=placement.ranks,
        hosts=len(placement.hosts),
        rounds=_by_scope(rounds, placement),
        predicted_s=stage.plan.predicted_s,
        links=links,
        most_flows=max((float(flow.max(initial=0.0)) for flow in flows), default=0.0),
        colliding=collisions(rounds, placement) / messages,
        fewest_crossings=fewest,
        sights=_sights(each, fewest, len(placement.hosts), links),
    )


def smallest_fault(measurements: int, noise: float, components: int, views: int = len(ROWS)) -> float:
    """Return the smallest relative slowing of a component that its measurements detect, nine times of ten.

    A component is detected with L nats of evidence (`required_evidence`). A measurement of a component that is slower
    than tolerated by d contributes about d^2 / (2 noise^2). Half of that is assumed: the noise has heavier tails than a
    normal distribution, and its size is estimated from the same data. However small the noise, a slowing is beyond the
    tolerance by SMALLEST_FAULT at least.
    """
    needed = required_evidence(HYPOTHESES * components * views)
    return TOLERANCE + max(SMALLEST_FAULT, noise * math.sqrt(4 * needed / measurements))


def _sights(of_host: int, of_link: int, hosts: int, links: int) -> list[Sight]:
    """Round trips of a host count twice: it is at one end of both."""
    sights = []
    for row in ROWS:
        kernel = row.kernel
        ends = 2 if kernel == "latency" else 1
        for part, count, parts in (("host", ends * of_host, 2 * hosts), ("link", of_link, links)):
            if parts:
                judged = part == "host" or count >= FEWEST_LINK_PAIRS
                size = smallest_fault(count, NOISE[kernel], 2 * hosts + links) if judged and count else None
                sights.append(Sight(kernel, part, count, NOISE[kernel], size))
    return sights


def _by_scope(rounds: Sequence[RankPairs], placement: RoutedPlacement) -> dict[str, int]:
    """Rounds by the scope of most of their pairs, near ones first."""
    counts: dict[str, int] = {}
    for pairs in rounds:
        codes = placement.scopes(pairs[:, 0], pairs[:, 1])
        scopes, number = np.unique(np.array(SCOPES, dtype=str)[codes], return_counts=True)
        name = str(scopes[number.argmax()])
        counts[name] = counts.get(name, 0) + 1
    order = [str(scope) for scope in Scope]
    return dict(sorted(counts.items(), key=lambda item: order.index(item[0])))


def _all_pairs(stage: Stage, asked: PlanInput, placement: RoutedPlacement) -> Explained:
    """Return the figures of a plan of all pairs, without messages per link: the engine makes the schedule."""
    row = stage.plan.rows[0].spec
    return Explained(
        ranks=asked.ranks,
        hosts=len(placement.hosts),
        rounds={row.pattern: stage.plan.rows[0].rounds},
        predicted_s=stage.plan.predicted_s,
        links=0,
        most_flows=0.0,
        colliding=0.0,
        fewest_crossings=0,
        sights=_sights(stage.plan.rows[0].rounds, 0, len(placement.hosts), 0) if len(placement.hosts) > 1 else [],
    )
