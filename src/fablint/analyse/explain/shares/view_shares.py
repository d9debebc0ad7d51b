"""Components of a view that are slow for a share of the time, by isolated measurements first."""

from __future__ import annotations

from fablint.analyse.explain.evidence import Evidence
from fablint.analyse.explain.shares.share_bounds import ShareBounds, share_bounds
from fablint.analyse.explain.shares.slow_measurements import isolated_cells, slow_measurements
from fablint.analyse.explain.shares.slow_shares import SlowShare, find_slow_shares
from fablint.analyse.null_model.effects import Effects
from fablint.analyse.observations.samples import Flows
from fablint.analyse.settings import Settings


def shares_of_view(
    flows: Flows, evidence: Evidence, effects: Effects, settings: Settings, *, views: int
) -> tuple[list[SlowShare], ShareBounds | None]:
    """Return the components that are slow for a share of the time, and the bounds of the others.

    What they explain is removed from `evidence`. Measurements that no other message delayed come first: what all
    measurements show in addition is never a FAULT.

    Parameters
    ----------
    flows
        The view.
    evidence
        Evidence after the search for components that are slow at all times.
    effects
        Fitted model of the view.
    settings
        Error probabilities, and `shares`.
    views
        Number of views of the run, which share the error probability.
    """
    placement, routes = evidence.placement, effects.message_paths.routes
    if flows.is_star or len(placement.hosts) == 1:
        return [], None
    isolated = isolated_cells(flows, effects)
    shares: list[SlowShare] = []
    bounds = None
    for together in (False,) if isolated is None else (False, True):
        measured = slow_measurements(evidence, effects, flows, settings, isolated=isolated, together=together)
        found = find_slow_shares(measured, placement, routes, settings, views=views)
        bounds = bounds or share_bounds(measured, effects, settings)
        for share in found:
            if share.evidence.explained_by is None:
                cells = share.detection.cells
                live = evidence.gain[cells] != 0
                evidence.remove((cells[0][live], cells[1][live]))
        shares += found
    return shares, bounds
