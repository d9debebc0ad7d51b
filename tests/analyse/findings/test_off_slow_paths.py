"""Slow routes and paths of messages that choose their path: what they cross explains them, in one finding."""

from __future__ import annotations

import pytest

from fablint.analyse import diagnose
from fablint.analyse.findings.common_causes import explained
from fablint.analyse.findings.paths.pair_routes import routes_on_slow_paths
from fablint.analyse.settings import Settings
from fablint.model import Diagnosis, Placement, State
from fablint.simulate import Fabric, dragonfly, simulate
from fablint.simulate.fault_syntax import parse_fault
from fablint.topology.routing import routes_of
from finding_cases import finding

FABRIC = dragonfly(9, 4, 2)
ROUTES = routes_of(FABRIC.topology)
PLACEMENT = Placement.of(simulate(FABRIC, rows=()), FABRIC.topology)
AT = {host: FABRIC.topology.host_switch[host] for host in FABRIC.hosts}
ON = {switch: host for host, switch in AT.items()}  # a host on each switch
ADAPTIVE = dragonfly(5, 4, 2)
LOCAL_CABLES = ("g1r0=g1r2", "g3r1=g3r2", "g0r0=g0r3", "g2r1=g2r3")
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


@pytest.mark.parametrize(
    ("link", "route", "is_explained"),
    [
        (State.SUSPECT, State.SUSPECT, True),
        (State.SUSPECT, State.NOT_JUDGED, True),
        (State.SUSPECT, State.FAULT, False),
        (State.CONFOUNDED, State.SUSPECT, False),
    ],
)
def test_a_suspect_explains_routes_that_are_no_fault(link: State, route: State, is_explained: bool) -> None:
    claims = [
        finding(link, "link", "g0r1>g0r2", quantity="bandwidth", effect=-0.4),
        finding(route, "route", f"{ON['g0r1']}>{ON['g0r2']}", quantity="bandwidth", effect=-0.35),
    ]
    left = explained(claims, routes_on_slow_paths(claims, {}, PLACEMENT, ROUTES, Settings()))
    assert left == (claims[:1] if is_explained else claims)


def judged(fault: str, seed: int) -> Diagnosis:
    """Rows without histograms: links are not judged by late messages."""
    return diagnose(simulate(ADAPTIVE, faults=(parse_fault(fault),), seed=seed), ADAPTIVE.topology)


def doubtful(diagnosis: Diagnosis) -> set[str]:
    """Names of what is neither OK nor left unjudged."""
    findings = diagnosis.verdict.findings
    return {finding.name for finding in findings if finding.state not in (State.OK, State.NOT_JUDGED)}


@pytest.mark.parametrize("effect", ["-40%", "-60%"])
@pytest.mark.parametrize(("seed", "cable"), list(enumerate(LOCAL_CABLES, 1)))
def test_one_slow_cable_is_one_finding(cable: str, effect: str, seed: int) -> None:
    assert doubtful(judged(f"cable:{cable}:{effect}", seed)) == {cable}


@pytest.mark.parametrize("switch", ["g0r1", "g0r2", "g0r3", "g2r0"])
def test_a_slow_switch_explains_the_slow_share_of_its_neighbours(switch: str) -> None:
    assert doubtful(judged(f"switch:{switch}:-30%", 1)) == {switch}


def test_a_slow_direction_explains_the_slow_share_of_hosts_at_its_ends() -> None:
    assert doubtful(judged("link:g1r2>g1r3:-40%", 1)) == {"g1r2>g1r3"}


def cables_of(fabric: Fabric) -> set[frozenset[str]]:
    return {frozenset((cable.a, cable.b)) for cable in fabric.topology.cables}


@pytest.mark.parametrize("seed", range(4))
def test_no_finding_names_a_cable_that_does_not_exist(seed: int) -> None:
    cable = sorted("=".join(sorted(ends)) for ends in cables_of(ADAPTIVE))[7 * seed]
    for case in judged(f"cable:{cable}:-50%", seed).verdict.findings:
        if case.component in ("cable", "link") and case.state not in (State.OK, State.NOT_JUDGED):
            hosts = case.nodes & {*ADAPTIVE.topology.host_switch}
            assert hosts or case.nodes in cables_of(ADAPTIVE), case.name
