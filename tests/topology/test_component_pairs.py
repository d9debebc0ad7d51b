"""How many pairs use the component of a finding, counted one by one for comparison, and which hosts are behind it."""

from __future__ import annotations

import numpy as np
import pytest

from fablint.model import Placement, State
from fablint.simulate import fat_tree, simulate
from fablint.topology.component_pairs import FindingPairs, hosts_behind
from fablint.topology.routing import routes_of
from finding_cases import finding

FABRIC = fat_tree(4, 2)


@pytest.mark.parametrize("ranks_per_host", [1, 2])
@pytest.mark.parametrize(
    ("kind", "name", "direction", "behind"),
    [
        ("host", "h05", "both", ["h05"]),
        ("host", "h05", "tx", ["h05"]),
        ("cable", "h05=leaf1", "both", ["h05"]),
        ("link", "leaf1>spine2", None, ["h04", "h05", "h06", "h07"]),
        ("cable", "leaf1=spine2", "both", ["h04", "h05", "h06", "h07"]),
        ("switch", "leaf1", "both", ["h04", "h05", "h06", "h07"]),
        ("switch", "spine2", None, [f"h{host:02d}" for host in range(16)]),
        ("route", "h00=h05", None, ["h00", "h05"]),
    ],
)
def test_pairs_that_use_a_component_and_hosts_behind_it(kind, name, direction, behind, ranks_per_host):
    run = simulate(FABRIC, seed=1, ranks_per_host=ranks_per_host)
    placement, routes = Placement.of(run, FABRIC.topology), routes_of(FABRIC.topology)
    of_component = finding(State.FAULT, kind, name, direction=direction)
    (crossing,) = FindingPairs([of_component], placement, routes).crossings
    assert crossing is not None
    src, dst = (ranks.ravel() for ranks in np.indices((placement.ranks, placement.ranks)))
    used = crossing.of(src, dst, placement.switch, "src") & (placement.host[src] != placement.host[dst])
    assert crossing.number(placement) == np.count_nonzero(used) > 0
    assert [placement.hosts[code] for code in hosts_behind(of_component, crossing, placement)] == behind
