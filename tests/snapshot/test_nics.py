"""Network interfaces, ports and neighbours in a snapshot."""

from __future__ import annotations

from typing import Any

import pytest

from fablint.snapshot import nics_of, rails, snapshot_of
from fablint.snapshot.fabric_nics import message_nics
from fablint.snapshot.host_snapshot import Snapshot
from fablint.snapshot.neighbours import neighbours_of
from fablint.snapshot.parsers.slingshot_tlv import RequestedSettings, requested
from fact_cases import run_facts
from snapshot_trees import FIXTURES, nested

NET = "/sys/class/net"


def read(files: dict[str, str], **more: object) -> Snapshot:
    return snapshot_of({"host": "n1", "files": nested(files), **more})


def nic(name: str, **values: str) -> dict[str, str]:
    return {f"{NET}/{name}/{key}": value for key, value in {"address": "02:11:22:33:44:55", **values}.items()}


def test_what_drivers_do_not_know_is_not_taken_for_a_figure() -> None:
    (fact,) = nics_of(read(nic("hsn0", mtu="0", speed="-1", operstate="unknown", carrier="1")))
    assert (fact.mtu, fact.speed, fact.state) == (None, None, "up")
    (fact,) = nics_of(read(nic("hsn0", speed="9" * 400, operstate="unknown")))
    assert (fact.speed, fact.state) == (None, "")


def test_the_loopback_is_no_nic_and_containers_are_no_rails() -> None:
    facts = nics_of(read({**nic("lo", type="772"), **nic("eth0", type="1"), **nic("veth1", type="1")}))
    assert [(fact.name, fact.kind) for fact in facts] == [("eth0", "ethernet"), ("veth1", "virtual")]
    assert [fact.name for fact in rails(facts)] == ["eth0"]


@pytest.mark.parametrize("rate", ["inf Gb/sec", "nan Gb/sec", "fast", ""])
def test_a_port_whose_rate_is_no_number_has_none(rate: str) -> None:
    (fact,) = nics_of(read({"/sys/class/infiniband/mlx5_0/ports/1/rate": rate}))
    assert (fact.name, fact.speed) == ("mlx5_0", None)


def test_addresses_are_those_of_ip() -> None:
    text = '[{"ifname": "hsn0", "addr_info": [{"local": "10.0.0.1", "prefixlen": 16}, {"family": "inet6"}]}, 3]'
    (fact,) = nics_of(read(nic("hsn0"), commands={"ip-addr": {"output": text, "status": 0}}))
    assert fact.addresses == ("10.0.0.1/16",)


@pytest.mark.parametrize(
    ("command", "name"),
    [("lldpcli", "lldpcli-json0-slingshot-ama-mismatch-on-hsn1.json"), ("lldptool/hsn0", "lldptool-tn-hsn0.txt")],
)
def test_the_tlv_of_a_slingshot_switch_says_how_the_nic_should_be_set(command: str, name: str) -> None:
    text = (FIXTURES / "discover" / name).read_text()
    first = neighbours_of(read({}, commands={command: {"output": text, "status": 0}}))[0]
    address = "10.253.0.21/16" if command == "lldpcli" else "10.253.0.34/16"
    assert (first.port, requested(first.tlv)) == ("hsn0", RequestedSettings(address, 9000))


@pytest.mark.parametrize("digits", ["", "7", "zz", "5b5d", "7b226d7475223a747275657d"])
def test_another_tlv_asks_for_nothing(digits: str) -> None:
    assert requested(digits) in (None, RequestedSettings())


# ------------------------------------------------------------------------------------------------ adapters


def recorded(*names: str, kind: str = "infiniband", **facts: Any) -> list[dict[str, Any]]:
    """Entries of the attribute `nics` that differ in their names only."""
    state = "4: ACTIVE" if kind in ("infiniband", "roce") else "up"
    return [{"name": name, "kind": kind, "state": state, "speed_mbps": 200_000, **facts} for name in names]


FAST = recorded("mlx5_0/1")
ETHERNET = recorded("eth0", "eth1", kind="ethernet")
CASES = {
    "the fastest kind": ([*FAST, *recorded("eth0", kind="ethernet", speed_mbps=400_000)], ["mlx5_0/1"]),
    "nothing but Ethernet": (ETHERNET, ["eth0", "eth1"]),
    "a port is down": ([*FAST, *recorded("mlx5_1/1", state="1: DOWN")], ["mlx5_0/1"]),
    "ports of a bond": (
        [*recorded("eth0", kind="ethernet", port_of="bond0"), *recorded("bond0", kind="ethernet")],
        ["bond0"],
    ),
    "a slow port of storage": ([*FAST, *recorded("mlx5_1/1", speed_mbps=25_000)], ["mlx5_0/1"]),
    "RoCE in another name space": ([*recorded("mlx5_0/1", kind="roce", netdevs=[]), *ETHERNET], ["eth0", "eth1"]),
    "the engine's simulated NICs": (recorded("nic0", kind="simulated"), ["nic0"]),
    "no NIC": ([], []),
}


@pytest.mark.parametrize(("entries", "names"), CASES.values(), ids=CASES)
def test_adapters_that_are_up(entries: list[dict[str, Any]], names: list[str]) -> None:
    assert message_nics(run_facts({"nics": {"n1": entries}}).nics["n1"]) == names


DEGRADED = recorded("mlx5_1/1", speed_mbps=100_000)
DIFFERED = {
    "a link that trained at half the speed is an adapter": ([*FAST, *DEGRADED], ["mlx5_0/1", "mlx5_1/1"]),
    "management without a known speed": (
        [*recorded("hsn0", kind="ethernet", speed_mbps=0), *recorded("eno1", kind="ethernet", speed_mbps=0)],
        ["hsn0"],
    ),
    "a management NIC as fast as the fabric": ([*recorded("eth0", "mgmt0", kind="ethernet")], ["eth0"]),
    "RoCE of the storage beside InfiniBand": (
        [*FAST, *recorded("mlx5_9/1", kind="roce", netdevs=["ens9"])],
        ["mlx5_0/1"],
    ),
    "a container": (recorded("hsn0", "mgmt0", kind="ethernet", physical=False), ["hsn0"]),
}


@pytest.mark.parametrize(("entries", "names"), DIFFERED.values(), ids=DIFFERED)
def test_where_the_tables_had_another_rule_than_discovery(entries: list[dict[str, Any]], names: list[str]) -> None:
    assert message_nics(run_facts({"nics": {"n1": entries}}).nics["n1"]) == names
