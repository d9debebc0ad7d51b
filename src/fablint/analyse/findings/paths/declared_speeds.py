"""Cables that are declared slower than others: what that costs is a note, and no fault.

The speed is that of the topology file, as ordered, and not what a cable trained to: a cable that trained below its
speed is a fault. It limits streams, and no round trips.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from fablint.analyse.findings.judged_run import JudgedRun
from fablint.analyse.settings import Settings
from fablint.model import Finding, Note, Placement, State
from fablint.text import evidence as seen, notes as noted
from fablint.topology.routing import Routes

Speeds = dict[frozenset[str], float]  # bytes/s of the cable between two switches


@dataclass(frozen=True)
class DeclaredSpeeds:
    """Declared speeds of the cables of a run, and what they explain."""

    speeds: Speeds
    usual: float  # bytes/s, 0 where none is declared
    limit: float  # bytes/s of a NIC
    settings: Settings

    @classmethod
    def of(cls, routes: Routes | None, placement: Placement, settings: Settings) -> Self:
        """Return those of a topology."""
        speeds = _speeds(routes)
        usual = float(np.median(list(speeds.values()))) if speeds else 0.0
        limit = np.inf if placement.line_rate is None else float(placement.line_rate.max())
        return cls(speeds, usual, limit, settings)

    def explain(self, claim: Finding) -> Finding | Note:
        """Return a note on a cable that loses what it is declared to; else the claim.

        A cable that loses more than that by the loss in scope stays a claim; of a cable of which the interval of the
        loss does not exclude that, the claim is CONFOUNDED.
        """
        speed = self.speeds.get(claim.nodes, self.usual)
        loss = 1.0 - min(speed, self.limit) / min(self.usual, self.limit) if self.usual else 0.0
        of_cable = claim.component in ("cable", "link", "route") and claim.state is not State.OK
        if not of_cable or claim.quantity != "bandwidth" or claim.effect is None or loss <= self.settings.tolerance:
            return claim
        least = (1 - loss) * (1 - self.settings.loss_in_scope)
        gbit, usual_gbit = speed * 8 / 1e9, self.usual * 8 / 1e9
        if 1 + min(claim.effect, *claim.interval or ()) >= least:
            return noted.declared_slower(claim.name, claim.effect, gbit, usual_gbit)
        state = claim.state if 1 + claim.effect < least else State.CONFOUNDED
        evidence = (*claim.evidence, seen.declared_speed(gbit, usual_gbit, -loss))
        return claim.model_copy(update={"state": state, "evidence": evidence})


def unfilled_cables(judged: JudgedRun) -> list[Note]:
    """Return a note on cables that no stream of the run fills; none where streams share them or no speed is known."""
    orders = {row.name: row.facts.schedule.order for row in judged.run.rows}
    streams = [view for view in judged.views if view.quantity == "bandwidth" and view.link_pairs.any()]
    if judged.routes is None or not streams or any(orders[view.row] != "serial" for view in streams):
        return []
    reached = max(view.size / min(view.fit.class_time.values()) for view in streams)
    speeds = _speeds(judged.routes)
    faster = [speed for speed in speeds.values() if reached < speed * (1 - judged.settings.loss_in_scope)]
    if not faster:
        return []
    return [noted.unfilled_cables(reached * 8 / 1e9, len(faster), 1 - reached / max(faster))]


def _speeds(routes: Routes | None) -> Speeds:
    if routes is None:
        return {}
    names = routes.switches
    links = zip(routes.ends.tolist(), routes.speeds.tolist(), strict=True)
    return {frozenset((names[a], names[b])): speed for (a, b), speed in links if not np.isnan(speed)}
