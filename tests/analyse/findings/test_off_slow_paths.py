"""Routes between hosts that a component at fault on their shortest path explains, where messages choose their path."""

from __future__ import annotations

import pytest

from fablint.analyse.findings.common_causes import explained
from fablint.analyse.findings.paths.pair_routes import routes_on_slow_paths
from fablint.analyse.settings import Settings
from fablint.model import Placement, State
from fablint.simulate import dragonfly, simulate
from fablint.topology.routing import routes_of
from finding_cases import finding

FABRIC = dragonfly(9, 4, 2)
ROUTES = routes_of(FABRIC.topology)
PLACEMENT = Placement.of(simulate(FABRIC, rows=()), FABRIC.topology)
AT = {host: FABRIC.topology.host_switch[host] for host in FABRIC.hosts}
ON = {switch: host for host, switch in AT.items()}  # a host on each switch
LINK = finding(State.FAULT, "link", "g0r1>g0r2", quantity="bandwidth", effect=-0.4)
SWITCH = finding(State.FAULT, "switch", "g2r1", quantity="bandwidth", effect=-0.4)


def crossing(switch: str) -> str:
    """A route between hosts on other switches whose shortest path crosses a switch."""
    names = list(ROUTES.switches)
    for a in names:
        for b in names:
            _, links, shares = ROUTES.exposure(ROUTES.codes((a,)), ROUTES.codes((b,)))
            used = {end for link in links[shares > 0.4].tolist() for end in ROUTES.names[link].split(">")}
            if switch in used - {a, b}:
                return f"{ON[a]}>{ON[b]}"
    raise AssertionError(switch)


@pytest.mark.parametrize(
    ("fault", "route", "effect", "is_explained"),
    [
        (LINK, f"{ON['g0r1']}>{ON['g0r2']}", -0.35, True),
        (LINK, f"{ON['g0r1']}>{ON['g0r2']}", -0.6, False),  # it loses more than the link
        (LINK, f"{ON['g0r2']}>{ON['g0r1']}", -0.35, False),  # the other direction
        (LINK, f"{ON['g3r1']}>{ON['g3r2']}", -0.03, False),
        (SWITCH, crossing("g2r1"), -0.38, True),
        (SWITCH, crossing("g4r1"), -0.38, False),
    ],
)
def test_a_route_is_explained_by_what_is_at_fault_on_its_shortest_path(fault, route, effect, is_explained) -> None:
    suspect = finding(State.SUSPECT, "route", route, quantity="bandwidth", effect=effect)
    left = explained([fault, suspect], routes_on_slow_paths([fault, suspect], {}, PLACEMENT, ROUTES, Settings()))
    assert left == ([fault] if is_explained else [fault, suspect])


def test_a_finding_that_is_no_fault_explains_no_route() -> None:
    suspects = [
        finding(State.SUSPECT, "link", "g0r1>g0r2", quantity="bandwidth", effect=-0.4),
        finding(State.SUSPECT, "route", f"{ON['g0r1']}>{ON['g0r2']}", quantity="bandwidth", effect=-0.35),
    ]
    assert explained(suspects, routes_on_slow_paths(suspects, {}, PLACEMENT, ROUTES, Settings())) == suspects
