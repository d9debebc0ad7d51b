"""How much later a message may be on a healthy path than on another one: longer cables, and more switches.

Where the cables of all paths are known, paths over equally many cables are compared, and the lengths of cables and one
more switch in a path explain a constant. Where no cables are known, or they are assumed, paths have unknown lengths: of
two paths between groups, one may cross a single cable, and the other one as many as a network has on its longest path.
"""

from __future__ import annotations

import numpy as np

from fablint.analyse.settings import CABLE_S, GEOMETRY_S, HOP_S, MOST_HOPS
from fablint.model import Placement
from fablint.model.arrays import Floats
from fablint.topology.routing import Routes


def are_lengths_unknown(routes: Routes | None, placement: Placement) -> bool:
    """Return whether the numbers of cables of the paths are unknown.

    No cables may be declared, or they were assumed: then messages leave a group through a switch with the name of the
    group.
    """
    if routes is None or not len(routes.ends):
        return True
    gates = set(placement.groups) - set(placement.switches)
    return not gates.isdisjoint(routes.switches)


def most_hop_s(on_switch_s: Floats | float) -> Floats:
    """Return the largest time that one more switch may add, in s: that of a whole message on one switch."""
    return np.asarray(np.maximum(GEOMETRY_S, on_switch_s), dtype=np.float64)


def most_cables_s(cables: int) -> float:
    """Return the largest time that so many known cables between two switches add, in s; 0 if their number is unknown.

    A switch for each, and a longer cable.
    """
    return cables * HOP_S + CABLE_S if cables else 0.0


def most_extra_s(on_switch_s: Floats | float, *, unknown_lengths: bool) -> Floats:
    """Return the largest time that the geometry of a path adds to a small message, in s.

    Parameters
    ----------
    on_switch_s
        Time of a message on one switch, s.
    unknown_lengths
        Whether the numbers of cables of the paths are unknown.
    """
    hop_s = most_hop_s(on_switch_s)
    return (MOST_HOPS - 1) * hop_s if unknown_lengths else np.full_like(hop_s, GEOMETRY_S)
