"""All uplinks of a switch slow at once are one finding, and some of them are theirs."""

from fablint.analyse.findings.common_causes import explained
from fablint.analyse.findings.paths.uplinks import slow_uplinks
from fablint.model import Finding, Placement, State
from fablint.simulate import fat_tree, simulate
from fablint.topology.routing import routes_of
from finding_cases import finding

TREE = fat_tree(4, 2)
PLACES = Placement.of(simulate(TREE), TREE.topology)
ROUTES = routes_of(TREE.topology)
LEAF = PLACES.switches[0]
CABLES = sorted({f"{cable.a}={cable.b}" for cable in TREE.topology.cables if LEAF in (cable.a, cable.b)})


def fault(name: str) -> Finding:
    return finding(State.FAULT, "link" if ">" in name else "cable", name, effect=-0.1)


def test_all_of_a_switch_are_one_suspect() -> None:
    (first, *others) = CABLES
    given = [fault(first.replace("=", ">")), *map(fault, others)]
    (found,) = explained(given, slow_uplinks(given, PLACES, ROUTES))
    assert (found.state, found.component, found.name) == (State.SUSPECT, "switch", LEAF)
    assert len(found.ambiguity_group) == len(CABLES)


def test_all_but_one_are_faults() -> None:
    given = list(map(fault, CABLES[1:]))
    assert explained(given, slow_uplinks(given, PLACES, ROUTES)) == given
    assert len(CABLES) > 2
