"""Which NICs of RoCE and plain Ethernet hosts are the fabric's, from trees of files that the collector reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fablint.snapshot import Snapshot, adapters, nics_of, rails
from fablint.snapshot.agent.machine import MOST_NICS, Machine
from roce_hosts import Nic, RoceHost, read

ENO1 = Nic("eno1", address="10.9.0.1/24", speed=1000, mtu=1500, card=("0x14e4", "0x165f"))


def taken(folder: Path, *nics: Nic, **more: str) -> Snapshot:
    return read(RoceHost("n001", nics, **{"default_route": "eno1", **more}), folder)


def interfaces(snapshot: Snapshot) -> list[str]:
    """Interfaces of the fabric."""
    return [nic.name for nic in rails(nics_of(snapshot)) if not nic.is_port]


def bonded(*, gids: Sequence[str] = ("bond0",), device: str = "mlx5_bond_0") -> tuple[Nic, ...]:
    """Both ports of a card in a bond: the kernel makes one RDMA device of them."""
    first = Nic("ens3f0np0", rdma=device, bond="bond0", gids=gids)
    return first, Nic("ens3f1np1", bond="bond0"), Nic("bond0", "10.1.0.1/24", members=("ens3f0np0", "ens3f1np1"))


@pytest.mark.parametrize(
    ("name", "device"),
    [("ens3f0np0", "mlx5_0"), ("eth2", "mlx5_0"), ("enp65s0", "mlx5_2"), ("ens1f0", "rocep1s0f0"), ("p1", "bnxt_re0")],
)
def test_the_interface_of_an_rdma_device_is_the_fabric_s(tmp_path: Path, name: str, device: str) -> None:
    assert interfaces(taken(tmp_path, Nic(name, rdma=device), ENO1)) == [name]


def test_a_bond_of_the_device_s_interfaces_with_its_members(tmp_path: Path) -> None:
    snapshot = taken(tmp_path, *bonded(), ENO1)
    assert interfaces(snapshot) == ["bond0", "ens3f0np0", "ens3f1np1"]
    assert [nic.name for nic in adapters(nics_of(snapshot))] == ["mlx5_bond_0"], "one adapter for ranks"


def test_a_bond_of_two_devices_that_no_gid_names(tmp_path: Path) -> None:
    first, second, bond = bonded(gids=(), device="mlx5_0")
    snapshot = taken(tmp_path, first, replace(second, rdma="mlx5_1"), bond, ENO1)
    assert interfaces(snapshot) == ["bond0", "ens3f0np0", "ens3f1np1"]


def test_a_device_that_only_its_gids_connect_to_an_interface(tmp_path: Path) -> None:
    """As of a virtual function whose PCI device shows no `net`: the interface's own device is another."""
    snapshot = taken(tmp_path, Nic("eth7", "10.1.0.1/24"), Nic("spare", rdma="mlx5_0", gids=("eth7",)), ENO1)
    folders = {path: [] if path.endswith("device/net") else names for path, names in snapshot.folders.items()}
    files = dict(snapshot.files)
    ndevs = files["sys"]["class"]["infiniband"]["mlx5_0"]["ports"]["1"]["gid_attrs"]["ndevs"]
    ndevs.update({key: "eth7" for key in ndevs})
    assert interfaces(replace(snapshot, folders=folders, files=files)) == ["eth7"]


def test_eight_rails_and_a_slower_card_for_management(tmp_path: Path) -> None:
    rdma = [Nic(f"ens{i}np0", f"10.{i}.0.1/24", f"mlx5_{i}", speed=400_000, psid="MT_0838") for i in range(8)]
    management = Nic("eno2np0", "10.9.0.2/24", "mlx5_8", speed=25_000, psid="MT_0531")
    trained = replace(rdma[3], speed=100_000)  # below its card's speed: it stays
    snapshot = taken(tmp_path, *rdma[:3], trained, *rdma[4:], management, ENO1)
    assert interfaces(snapshot) == [f"ens{i}np0" for i in range(8)]
    assert [nic.name for nic in adapters(nics_of(snapshot))] == [f"mlx5_{i}" for i in range(8)]


def test_a_port_without_link_stays(tmp_path: Path) -> None:
    both = Nic("ens3f0np0", rdma="mlx5_0", state="down"), Nic("ens3f1np1", rdma="mlx5_1")
    assert interfaces(taken(tmp_path, *both, ENO1)) == ["ens3f0np0", "ens3f1np1"]


def test_vlans_count_where_the_address_is_theirs(tmp_path: Path) -> None:
    base, vlan = (
        Nic("ens3np0", rdma="mlx5_0", gids=("ens3np0.40",)),
        Nic("ens3np0.40", "10.1.0.1/24", vlan_of="ens3np0"),
    )
    assert interfaces(taken(tmp_path / "a", base, vlan, ENO1)) == ["ens3np0", "ens3np0.40"]
    assert interfaces(taken(tmp_path / "b", replace(base, address="10.2.0.1/24"), vlan, ENO1)) == ["ens3np0"]


def test_ports_for_virtual_machines_do_not_count(tmp_path: Path) -> None:
    """In switchdev mode a card has an interface for each virtual function."""
    snapshot = taken(tmp_path, Nic("ens3f0np0", rdma="mlx5_0"), Nic("eth9", port_of_guest="pf0vf3"), ENO1)
    near = {path: ["ens3f0np0", "eth9"] for path in snapshot.folders if "infiniband" in path}
    empty = {"sys": {**snapshot.files["sys"], "class": {**snapshot.files["sys"]["class"]}}}
    device = empty["sys"]["class"]["infiniband"]["mlx5_0"]["ports"]["1"]
    device.pop("gid_attrs")
    assert interfaces(replace(snapshot, folders=near, files=empty)) == ["ens3f0np0"]


def test_beside_infiniband_ethernet_is_for_management(tmp_path: Path) -> None:
    ethernet = Nic("ens3f0np0", "10.1.0.1/24", "mlx5_4")
    snapshot = taken(tmp_path, Nic("ibs1", rdma="mlx5_0"), ENO1, link_layer="InfiniBand")
    assert interfaces(snapshot) == []
    assert interfaces(taken(tmp_path / "roce", ethernet, ENO1)) == ["ens3f0np0"]


# ------------------------------------------------------------------------------------------------ plain Ethernet


def test_the_default_route_leads_to_the_nic_of_a_plain_cluster(tmp_path: Path) -> None:
    nics = Nic("eth0", "10.9.0.1/24", speed=10_000), Nic("eth1", speed=10_000), Nic("eth2", "10.8.0.1/24", speed=1000)
    assert interfaces(taken(tmp_path, *nics, default_route="eth0")) == ["eth0"]


def test_a_bond_of_the_default_route_brings_its_members(tmp_path: Path) -> None:
    bond = Nic("bond0", "10.9.0.1/24", members=("eno1", "eno2"))
    plain = Nic("eno1", bond="bond0"), Nic("eno2", bond="bond0"), bond, Nic("eno3", "10.8.0.1/24", speed=10_000)
    assert interfaces(taken(tmp_path, *plain, default_route="bond0")) == ["bond0", "eno1", "eno2"]


def test_a_faster_nic_with_an_address_counts_as_well(tmp_path: Path) -> None:
    fast = Nic("ens5", "10.1.0.1/24")
    assert interfaces(taken(tmp_path / "a", ENO1, fast)) == ["eno1", "ens5"]
    assert interfaces(taken(tmp_path / "b", ENO1, replace(fast, address=""))) == ["eno1"]


def test_without_a_default_route_the_fastest(tmp_path: Path) -> None:
    assert interfaces(taken(tmp_path, ENO1, Nic("ens5", "10.1.0.1/24"), default_route="")) == ["ens5"]


@pytest.mark.parametrize(("default_route", "speed"), [("eno1", 50_000), ("eno1", 1000), ("eno1", 0), ("", 1000)])
def test_a_slower_port_of_the_same_card_stays(tmp_path: Path, default_route: str, speed: int) -> None:
    """It negotiated less than its sibling, or has no link: it may be at fault."""
    fast, slow = (
        Nic("ens5f0", "10.1.0.1/24"),
        Nic("ens5f1", "10.2.0.1/24", speed=speed, state="up" if speed else "down"),
    )
    without = [default_route, "ens5f0"] if default_route else ["ens5f0"]
    others = {"spare": replace(slow, address=""), "storage": replace(slow, card=("0x8086", "0x1572"))}
    found = interfaces(taken(tmp_path / "slow", ENO1, fast, slow, default_route=default_route))
    assert found == [*without, "ens5f1"]
    for name, other in others.items():
        assert interfaces(taken(tmp_path / name, ENO1, fast, other, default_route=default_route)) == without, name


def test_a_default_route_by_a_management_nic_does_not_count(tmp_path: Path) -> None:
    nics = Nic("mgmt0", "10.9.0.1/24", speed=1000), Nic("eth1", "10.1.0.1/24")
    assert interfaces(taken(tmp_path, *nics, default_route="mgmt0")) == ["eth1"]


# ------------------------------------------------------------------------------------------------ named by the user


@pytest.mark.parametrize(
    ("names", "found"),
    [(("eno1",), ["eno1"]), (("mlx5_bond_0",), ["bond0", "ens3f0np0", "ens3f1np1"]), (("none",), [])],
)
def test_nics_that_the_user_names(tmp_path: Path, names: tuple[str, ...], found: list[str]) -> None:
    snapshot = replace(taken(tmp_path, *bonded(), ENO1), nics=names)
    assert interfaces(snapshot) == found


def test_bonds_are_looked_at_on_a_host_with_many_virtual_functions(tmp_path: Path) -> None:
    net = tmp_path / "sys/class/net"
    for number in range(2 * MOST_NICS):
        (net / f"aa{number}v" / "device" / "physfn").mkdir(parents=True)
    for name in ("bond0/bonding", "ens3/device", "zz0"):
        (net / name).mkdir(parents=True)
    assert Machine(str(tmp_path), 1.0).nics[:2] == ["bond0", "ens3"]
