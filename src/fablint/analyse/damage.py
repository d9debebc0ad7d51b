"""What faults cost: the hosts behind them, the pairs that use them, and the figures of such a pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.model import SCOPES, Finding, Fit, Placement, Run, State
from fablint.model.verdict import Damage, PairFigures
from fablint.text import units
from fablint.topology.component_pairs import ComponentPairs, FindingPairs, hosts_behind
from fablint.topology.routing import Routes

_OF_COMPONENTS = {State.FAULT, State.SUSPECT, State.CONFOUNDED}
_AT_ONCE = 32  # findings whose paths are followed together: each link takes a matrix of switches and ranks
_SENDERS = 64  # of the pairs whose distance is looked at


def damages_of(
    findings: Sequence[Finding], run: Run, placement: Placement, routes: Routes | None, fits: Sequence[Fit]
) -> list[Damage | None]:
    """Return what each finding costs; None where the pairs that use its components are not known."""
    places = [place for place, finding in enumerate(findings) if finding.state in _OF_COMPONENTS]
    damages: list[Damage | None] = [None] * len(findings)
    for start in range(0, len(places), _AT_ONCE):
        part = places[start : start + _AT_ONCE]
        pairs = FindingPairs([findings[place] for place in part], placement, routes)
        for place, crossing in zip(part, pairs.crossings, strict=True):
            if crossing is not None:
                damages[place] = Damage(
                    hosts=len(hosts_behind(findings[place], crossing, placement)),
                    pairs=crossing.number(placement),
                    figures=_figures(findings[place], crossing, run, placement, fits),
                )
    return damages


def _figures(
    finding: Finding, crossing: ComponentPairs, run: Run, placement: Placement, fits: Sequence[Fit]
) -> PairFigures | None:
    """Figures of a pair at the most frequent distance of those that use a component: healthy, and with the effect."""
    if finding.effect is None or finding.quantity is None:
        return None
    rows = {row.name: row for row in run.rows}
    measured = {(record.row, record.size) for record in finding.evidence}
    for fit in fits:
        row = rows.get(fit.row)
        if row is None or (fit.row, fit.size) not in measured or row.quantity != finding.quantity:
            continue
        time = fit.class_time.get(SCOPES[_distance(crossing, placement)], np.nan)
        if np.isfinite(time):
            expected = row.counted_bytes(fit.size) / time if units.is_rate(finding.quantity) else time
            return PairFigures(
                row=fit.row, size=fit.size, expected=float(expected), measured=float(expected * (1 + finding.effect))
            )
    return None


def _distance(crossing: ComponentPairs, placement: Placement) -> int:
    """Code of the most frequent distance of the pairs that use a component, from some of their senders."""
    ranks = np.arange(placement.ranks)
    senders = np.flatnonzero(crossing.senders(placement))[:_SENDERS]
    src, dst = (pair.ravel() for pair in np.meshgrid(senders, ranks, indexing="ij"))
    used = crossing.of(src, dst, placement.switch, "src") & (placement.host[src] != placement.host[dst])
    return int(np.bincount(placement.scopes(src[used], dst[used]), minlength=len(SCOPES)).argmax())
