"""Cables that are declared slower than others: what that costs is a note, and no fault.

The speed is that of the topology file, as ordered, and not what a cable trained to: a cable that trained below its
speed is a fault. It limits streams, and no round trips.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fablint.analyse.settings import Settings
from fablint.model import ComponentRef, Finding, Note, Placement, State
from fablint.text import evidence as seen, notes as noted
from fablint.topology.routing import Routes

Speeds = dict[frozenset[str], float]  # bytes/s of the cable between two switches


@dataclass(frozen=True)
class ByDesign:
    """What is left of findings when the declared speeds are known."""

    findings: list[Finding]
    notes: list[Note]  # one for each cable, or direction of it, that loses what it is declared to
    effects: dict[ComponentRef, float]  # of these


def by_design(findings: Sequence[Finding], routes: Routes | None, placement: Placement, settings: Settings) -> ByDesign:
    """The findings without those of cables that lose what they are declared to.

    A cable that loses more than that by the loss in scope stays a finding; one of which the interval of the loss does
    not exclude that is CONFOUNDED.
    """
    speeds = _speeds(routes)
    usual = float(np.median(list(speeds.values()))) if speeds else 0.0
    kept: list[Finding] = []
    notes: list[Note] = []
    effects: dict[ComponentRef, float] = {}
    for finding in findings:
        speed = speeds.get(finding.nodes, usual)
        loss = _loss(speed, usual, placement)
        of_cable = finding.component in ("cable", "link", "route") and finding.state is not State.OK
        if not of_cable or finding.quantity != "bandwidth" or finding.effect is None or loss <= settings.tolerance:
            kept.append(finding)
            continue
        least = (1 - loss) * (1 - settings.loss_in_scope)
        if 1 + min(finding.effect, *finding.interval or ()) >= least:
            notes.append(noted.declared_slower(finding.name, finding.effect, speed * 8 / 1e9, usual * 8 / 1e9))
            effects |= dict.fromkeys(finding.components, finding.effect)
            continue
        state = finding.state if 1 + finding.effect < least else State.CONFOUNDED
        seen_speed = seen.declared_speed(speed * 8 / 1e9, usual * 8 / 1e9, -loss)
        kept.append(finding.model_copy(update={"state": state, "evidence": (*finding.evidence, seen_speed)}))
    return ByDesign(kept, notes, effects)


def _speeds(routes: Routes | None) -> Speeds:
    if routes is None:
        return {}
    names = routes.switches
    every = zip(routes.ends.tolist(), routes.speeds.tolist(), strict=True)
    return {frozenset((names[a], names[b])): speed for (a, b), speed in every if not np.isnan(speed)}


def _loss(speed: float, usual: float, placement: Placement) -> float:
    """Share of the bandwidth of a stream that a cable of this speed loses beside one of the usual speed."""
    limit = np.inf if placement.line_rate is None else float(placement.line_rate.max())
    return 1.0 - min(speed, limit) / min(usual, limit) if usual else 0.0
