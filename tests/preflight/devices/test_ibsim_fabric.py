"""The real infiniband-diags on a simulated fabric, asked by the real collector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from preflight_help import of, wrong
from simulated_fabric import MISSING, Simulator, Tree, simulated

from fablint.model import Cable, Switch, Topology
from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.fabric.infiniband_fabric import FABRIC_BALANCE, FABRIC_ERRORS, FABRIC_LINKS, FABRIC_SM
from fablint.snapshot import Snapshot, snapshot_of
from fablint.system import System
from fablint.workflows.host_preflight import FABRIC, query_fabric
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
PORT_COUNTERS = 0x12  # an attribute ID
CHECKS = (FABRIC_LINKS, FABRIC_ERRORS, FABRIC_BALANCE, FABRIC_SM)


class Inside(System):
    """This machine as a host of the simulated fabric."""

    def __init__(self, simulator: Simulator) -> None:
        self._environ = simulator.environ

    @property
    def environ(self) -> Mapping[str, str]:
        return self._environ


def seen(simulator: Simulator) -> Snapshot:
    """What fablint hears of the fabric."""
    return snapshot_of(query_fabric(Inside(simulator), ["node001"])[FABRIC])


def planned() -> Topology:
    """How the tree was meant to be."""
    tree = Tree()
    hosts = {low[0]: high[0] for low, high in tree.cables() if low[0].startswith("node")}
    cables = {(low[0], high[0]) for low, high in tree.cables() if high[0].startswith("spine")}
    switches = {name for ends in cables for name in ends}
    return Topology(
        {switch: Switch(switch) for switch in switches}, hosts, tuple(Cable(*ends) for ends in sorted(cables))
    )


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    with simulated(Tree(), tmp_path_factory.mktemp("good")) as simulator:
        yield simulator


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    """A host at a lower speed, an uplink that lost lanes, two hosts swapped."""
    damage = {("node006", 1): "4xQDR", ("leaf2", 21): "1xEDR"}
    with simulated(Tree(rates=damage, swapped=("node004", "node009")), tmp_path_factory.mktemp("bad")) as simulator:
        yield simulator


def test_a_good_fabric_is_silent(good: Simulator) -> None:
    fabric = seen(good)
    for check in CHECKS:
        results = of(check, fabric=fabric, topology=planned())
        assert {result.outcome for result in results} == {Outcome.PASS}, (check.id, results)
    links = of(FABRIC_LINKS, fabric=fabric, topology=planned())
    assert len(links) == 12 + 5, "every host and every switch passes"


def test_degraded_cables_and_swapped_hosts_are_named(bad: Simulator) -> None:
    fabric = seen(bad)
    found = {
        (host, target): (outcome, message) for host, target, outcome, message in wrong(of(FABRIC_LINKS, fabric=fabric))
    }
    assert found == {
        ("node006", "mlx5_0"): (
            Outcome.FAIL,
            PINNED["leaf2 port 2 to node006/mlx5_0"],
        ),
        ("leaf2", "port 21"): (
            Outcome.FAIL,
            PINNED["leaf2 port 21 to spine1 port"],
        ),
    }
    placed = wrong(of(FABRIC_LINKS, fabric=fabric, topology=planned()))
    assert [one for one in placed if one[0] in ("node004", "node009")] == [
        ("node004", "", Outcome.FAIL, PINNED["connected to leaf3, expected"]),
        ("node009", "", Outcome.FAIL, PINNED["connected to leaf1, expected"]),
    ]
    assert len(placed) == 4


def test_error_counters_are_named_with_their_growth(bad: Simulator) -> None:
    bad.count("spine1", 3, "PortXmitDiscards", 812)
    before = seen(bad)
    bad.count("leaf2", 21, "SymbolErrorCounter", 4711)
    bad.count("node006", 1, "LocalLinkIntegrityErrors", 15)
    after = seen(bad)
    first = [
        ("leaf2", "port 21", Outcome.WARN, "symbol_error 4711 since it was cleared"),
        ("node006", "mlx5_0/1", Outcome.WARN, "local_link_integrity_errors is saturated: >= 15 since it was cleared"),
        ("spine1", "port 3", Outcome.WARN, "port_xmit_discards 812 since it was cleared"),
    ]
    assert sorted(wrong(of(FABRIC_ERRORS, fabric=after))) == first
    grown = sorted(wrong(of(FABRIC_ERRORS, fabric=after, fabric_before=[before])))
    assert [one[:2] for one in grown] == [("leaf2", "port 21"), ("node006", "mlx5_0/1")], (
        "old errors are not reported again"
    )
    assert grown[0][3].startswith("symbol_error 4711 in ")


def test_counters_that_were_not_read_are_an_error(tmp_path: Path) -> None:
    with simulated(Tree(leaves=1), tmp_path) as simulator:
        simulator.leave_unanswered("node002", 1, PORT_COUNTERS)
        (unread,) = wrong(of(FABRIC_ERRORS, fabric=seen(simulator)))
    assert unread[2:] == (Outcome.ERROR, PINNED["ibqueryerrors had no answer"])


def test_a_fabric_whose_subnet_manager_has_gone(tmp_path: Path) -> None:
    with simulated(Tree(leaves=1), tmp_path) as simulator:
        simulator.opensm.kill()
        ((host, _, outcome, message),) = wrong(of(FABRIC_SM, fabric=seen(simulator)))
    assert (host, outcome) == ("fabric", Outcome.FAIL)
    assert message.startswith("no subnet manager answers: ")
