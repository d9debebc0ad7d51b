"""What the claims about links, cables and switches say that paths between switches lose."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from fablint.analyse.settings import NEARLY_ALL, SETS_MEDIAN
from fablint.model import ComponentRef, Finding, Placement, State
from fablint.model.arrays import Codes
from fablint.topology.routing import Routes


@dataclass(frozen=True)
class SlowPaths:
    """Paths between switches, and links that adaptive messages may cross, with what findings say that they lose."""

    effects: Mapping[tuple[str, str], float]
    losses: Mapping[int, float]
    routes: Routes | None

    @classmethod
    def of(
        cls,
        claims: Sequence[Finding],
        states: Collection[State],
        designed: Mapping[ComponentRef, float],
        routes: Routes | None,
    ) -> Self:
        """Return those of the claims of some states, and of the `designed` cables."""
        reasons = [
            (claim, claim.effect)
            for claim in claims
            if claim.state in states and claim.quantity == "bandwidth" and claim.effect is not None
        ]
        effects = {path: effect for component, effect in designed.items() for path in component.directions}
        for claim, effect in reasons:
            if claim.component in ("link", "cable", "route"):
                effects |= dict.fromkeys(claim.directions, effect)
        is_adaptive = routes is not None and routes.routing.kind == "adaptive"
        return cls(effects, _losses_of_links(reasons, routes) if routes is not None and is_adaptive else {}, routes)

    def __bool__(self) -> bool:
        return bool(self.effects or self.losses)

    def cause_most(self, ends: Codes, placement: Placement) -> bool:
        """Return whether nearly all of (j, 2) ranks, sender and receiver, send over such a path."""
        if not self or not len(ends):
            return False
        pairs, count = np.unique(placement.switch[ends], axis=0, return_counts=True)
        names = [(placement.switches[a], placement.switches[b]) if min(a, b) >= 0 else None for a, b in pairs.tolist()]
        caused = [path is not None and self.loss(path) is not None for path in names]
        return bool(count[caused].sum() >= NEARLY_ALL * count.sum())

    def loss(self, path: tuple[str, str]) -> float | None:
        """Return the effect on the streams between two switches; None: nothing is said of their path."""
        return self.effects[path] if path in self.effects else _shortest_path_loss(path, self.losses, self.routes)


def _losses_of_links(reasons: Sequence[tuple[Finding, float]], routes: Routes) -> dict[int, float]:
    """Effect of each link between switches that findings of bandwidth name, the largest of several."""
    losses: dict[int, float] = {}
    for finding, effect in reasons:
        links = {f"{a}>{b}" for a, b in finding.directions}
        switches = finding.nodes if finding.component == "switch" else frozenset()
        for number, name in enumerate(routes.names):
            if name in links or not switches.isdisjoint(name.split(">")):
                losses[number] = min(losses.get(number, 0.0), effect)
    return losses


def _shortest_path_loss(path: tuple[str, str], losses: Mapping[int, float], routes: Routes | None) -> float | None:
    """The largest loss of the links that enough messages between two switches cross to set their median; None: none."""
    if routes is None or not losses:
        return None
    src, dst = (routes.codes((name,)) for name in path)
    _, links, shares = routes.exposure(src, dst)
    return min((losses[link] for link in links[shares >= SETS_MEDIAN].tolist() if link in losses), default=None)
