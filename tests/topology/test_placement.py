"""Where ranks are: from a run and from lists of hosts, by full and by short names, by NIC, and the scope of pairs."""

from __future__ import annotations

import numpy as np
import pytest

from fablint.model import SCOPES, Placement, Run, Scope, Switch, Topology
from fablint.model.host_name import NicRef
from fablint.topology.routed_placement import RoutedPlacement, number_within
from fact_cases import run_facts

FABRIC = Topology(
    {"s2": Switch("s2", "b"), "s0": Switch("s0", "a"), "s1": Switch("s1", "a"), "s9": Switch("s9")},
    {"h0": "s2", "h1": "s2", "h2": "s0", "h3": "s1"},
    nic_switch={NicRef("h3/hsn0"): "s1", NicRef("h3/hsn1"): "s9"},
)
HOSTS = ["h1.site.org", "h1.site.org", "h0", "h2", "x", "x2", "h3", "h3"]
NICS = ["", "", "", "", "", "", "hsn0", "hsn1"]


def run_of(hosts: list[str], nics: list[str]) -> Run:
    """A run with ranks on these hosts."""
    names = list(dict.fromkeys(hosts))
    attributes = {"hosts": names, "rank_host": [names.index(host) for host in hosts], "rank_nic": nics}
    return Run(None, run_facts({"ranks": len(hosts), **attributes}), ())


def both() -> list[Placement]:
    return [Placement.of(run_of(HOSTS, NICS), FABRIC), RoutedPlacement.on_routes(HOSTS, FABRIC, NICS)]


@pytest.mark.parametrize("placement", both(), ids=["of a run", "to be started"])
def test_ranks_are_found_by_short_names_and_by_nic(placement: Placement) -> None:
    at = [placement.switches[code] if code >= 0 else "" for code in placement.switch.tolist()]
    assert at == ["s2", "s2", "s2", "s0", "", "", "s1", "s9"]
    groups = [placement.groups[code] if code >= 0 else "" for code in placement.group.tolist()]
    assert groups == ["b", "b", "b", "a", "", "", "a", "s9"]
    assert [placement.hosts[code] for code in placement.host.tolist()] == HOSTS
    assert placement.location.tolist() == [1, 1, 0, 2, -1, -1, 3, 3]


def test_the_switches_of_a_run_are_its_own_and_those_of_a_plan_are_all() -> None:
    of_run, planned = both()
    assert (of_run.switches, of_run.groups) == (("s0", "s1", "s2", "s9"), ("a", "b", "s9"))
    assert (planned.switches, planned.groups) == (("s2", "s0", "s1", "s9"), ("b", "a", "s9"))
    few = Placement.of(run_of(["h0", "h1"], ["", ""]), FABRIC)
    assert (few.switches, few.groups) == (("s2",), ("b",))


@pytest.mark.parametrize("placement", both(), ids=["of a run", "to be started"])
def test_scopes_and_strata(placement: Placement) -> None:
    pairs = np.array([[0, 1], [0, 2], [3, 6], [0, 3], [4, 5], [0, 4], [6, 7]])
    scopes = [SCOPES[code] for code in placement.scopes(*pairs.T)]
    assert scopes == [
        Scope.INTRA_NODE, Scope.EDGE, Scope.LOCAL, Scope.GLOBAL, Scope.UNKNOWN, Scope.UNKNOWN, Scope.INTRA_NODE,
    ]  # fmt: skip
    strata = [SCOPES[code] for code in placement.strata(pairs)]
    assert strata == [Scope.EDGE, Scope.EDGE, Scope.LOCAL, *[Scope.GLOBAL] * 3, Scope.EDGE]
    within = {scope: placement.in_stratum(pairs, scope).tolist() for scope in (Scope.EDGE, Scope.GLOBAL, None)}
    assert within[Scope.EDGE] == [False, True, False, False, False, False, False]
    assert within[Scope.GLOBAL] == [False, False, False, True, True, True, False]
    assert within[None] == [False, True, True, True, True, True, False]


def test_a_host_without_a_switch_is_one_of_its_own() -> None:
    _, placement = both()
    codes = placement.switch_or_host.tolist()
    assert codes[4] != codes[5]
    assert min(codes[4:6]) >= len(FABRIC.switches)
    groups = placement.group_or_host.tolist()
    assert groups[4] != groups[5]
    assert min(groups[4:6]) >= len(placement.groups)


def test_positions_count_over_the_whole_topology() -> None:
    placement = RoutedPlacement.on_routes(["h1", "h3", "x"], FABRIC)
    assert placement.host_index.tolist() == [1, 0, 0]  # h0 is the first of s2, though it takes no part
    assert placement.switch_index.tolist() == [0, 1, 0]  # s0 is the first of group a
    one_each = placement.one_per_host(np.array([1, 2], np.int32))
    assert (one_each.hosts, one_each.host.tolist(), one_each.location.tolist()) == (("h3", "x"), [0, 1], [3, -1])


def test_numbers_within_containers() -> None:
    container, item = np.array([5, 5, 1, 5, 1]), np.array([7, 3, 9, 7, 9])
    assert number_within(container, item).tolist() == [1, 0, 0, 1, 0]
    assert number_within(np.zeros(0, np.int32), np.zeros(0, np.int32)).tolist() == []
