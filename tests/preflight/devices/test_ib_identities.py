"""Identity of InfiniBand ports: GUIDs, LIDs, planes, links that went down."""

from __future__ import annotations

import pytest
from preflight_help import host, of, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.check import Check
from fablint.preflight.checks.infiniband.identities import IB_FLAPS, IB_IDENTITY, IB_LIDS, IB_PLANES
from fablint.preflight.host import Host
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

PREFIXES = ("fe80:0000:0000:0000", "fe80:0000:0000:0001")


def machine(number: int, *, swapped: bool = False, layer: str = "InfiniBand", **changed: str) -> Host:
    """A host with two rails in two subnets, whose subnet managers have LIDs 1 and 2; `changed` is of the first rail."""
    files = {}
    for rail in (0, 1):
        plane = 1 - rail if swapped else rail
        at = f"/sys/class/infiniband/mlx5_{rail}"
        port = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "link_layer": layer, "lid": hex(10 + number)}
        port |= {"sm_lid": hex(1 + plane), "gids/0": f"{PREFIXES[plane]}:b83f:d203:00ab:{rail:02x}{number:02x}"}
        port |= {"counters/link_downed": "0"}
        own = {"node_guid": f"b83f:d203:00ab:{rail:02x}{number:02x}", **(changed if rail == 0 else {})}
        port |= {key.replace("__", "/"): text for key, text in own.items() if key != "node_guid"}
        files |= {f"{at}/node_guid": own["node_guid"]} | {f"{at}/ports/1/{key}": text for key, text in port.items()}
    return host(f"n{number}", files)


def fleet(odd: Host | None = None) -> list[Host]:
    return [*(machine(number) for number in range(5)), *([odd] if odd else [])]


@pytest.mark.parametrize("check", [IB_IDENTITY, IB_LIDS, IB_PLANES, IB_FLAPS], ids=lambda check: check.id)
def test_healthy_fleets_are_quiet(check: Check) -> None:
    for hosts in (fleet(), fleet()[:1], fleet()[:2], [machine(n, layer="Ethernet", lid="0x0") for n in range(4)]):
        assert wrong(of(check, *hosts)) == []


def test_hosts_with_one_guid() -> None:
    twin = "b83f:d203:00ab:0002"
    found = wrong(of(IB_IDENTITY, *fleet(machine(7, node_guid=twin))))
    assert [(name, target, message) for name, target, _, message in found] == [
        ("n2", "mlx5_0", f"GUID {twin} is also that of n7 mlx5_0"),
        ("n7", "mlx5_0", f"GUID {twin} is also that of n2 mlx5_0"),
    ]
    assert wrong(of(IB_IDENTITY, *fleet(machine(7, node_guid="0000:0000:0000:0000")))) == [], "a virtual function"


def test_hosts_with_one_lid() -> None:
    found = wrong(of(IB_LIDS, *fleet(machine(7, lid="0xc"))))
    assert [(name, target, message) for name, target, _, message in found] == [
        ("n2", "mlx5_0/1", "LID 12 is also that of n7"),
        ("n7", "mlx5_0/1", "LID 12 is also that of n2"),
    ]
    assert len(wrong(of(IB_LIDS, machine(2), machine(7, lid="0xc")))) == 2, "two hosts alone"


@pytest.mark.parametrize(
    "changed",
    [
        {"lid": "0xc", "node_guid": "b83f:d203:00ab:0002"},  # copies of a snapshot
        {"lid": "0xc", "node_guid": "0000:0000:0000:0000"},  # a virtual function
        {"lid": "0xc", "sm_lid": "0x9"},  # of another subnet
        {"lid": "0xc", "gids__0": "fe80:0000:0000:0009:b83f:d203:00ab:0007"},
        {"lid": "0x0"},  # not assigned
        {"lid": "0xc", "state": "1: DOWN"},
    ],
)
def test_ports_that_may_have_one_lid(changed: dict[str, str]) -> None:
    assert wrong(of(IB_LIDS, *fleet(machine(7, **changed)))) == []


def test_lids_of_two_clusters_and_of_virtual_machines() -> None:
    clusters = [*fleet(), *(machine(20 + n, lid=hex(10 + n)) for n in range(5))]
    assert {one.outcome for one in of(IB_LIDS, *clusters) if one.target == "mlx5_0/1"} == {Outcome.SKIP}
    guest = machine(7, lid="0xc")
    guest.snapshot.files["sys"]["devices"] = {"virtual": {"dmi": {"id": {"sys_vendor": "QEMU"}}}}  # type: ignore[index]
    assert wrong(of(IB_LIDS, *fleet(guest))) == []


def test_swapped_planes_name_both_cables() -> None:
    found = wrong(of(IB_PLANES, *fleet(machine(7, swapped=True))))
    assert [(name, target, outcome) for name, target, outcome, _ in found] == [
        ("n7", "mlx5_0/1", Outcome.FAIL),
        ("n7", "mlx5_1/1", Outcome.FAIL),
    ]
    assert found[0][3] == PINNED["subnet manager LID 2, prefix"]


def test_a_port_with_another_subnet_manager() -> None:
    ((name, target, outcome, message),) = wrong(of(IB_PLANES, *fleet(machine(7, sm_lid="0x9"))))
    assert (name, target, outcome) == ("n7", "mlx5_0/1", Outcome.FAIL)
    assert "swapped" not in message


@pytest.mark.parametrize(("count", "found"), [("2", 0), ("3", 1), ("40", 1)])
def test_links_that_went_down_more_often_than_others(count: str, found: int) -> None:
    results = wrong(of(IB_FLAPS, *fleet(machine(7, counters__link_downed=count))))
    assert [(name, message) for name, _, _, message in results] == [
        ("n7", PINNED["link went down count times"].filled(count=count))
    ] * found
    every = [machine(number, counters__link_downed=str(30 + number)) for number in range(5)]
    assert wrong(of(IB_FLAPS, *every)) == []


def test_copies_of_one_snapshot_are_no_conflict() -> None:
    copies = [machine(number, node_guid="b83f:d203:00ab:0000", lid="0x5") for number in range(5)]
    assert wrong(of(IB_IDENTITY, *copies)) == []
