"""Fleets of RoCE and plain Ethernet hosts: their network is looked at, and what was not is said first."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from preflight_help import host, nic

from fablint.discover.discovering import discover
from fablint.errors import UsageError
from fablint.model.preflight_results import Fitness, Outcome
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.preflight.pings.mesh import table
from fablint.preflight.runner import judge
from fablint.report.preflight.preflight_text import fitness_json, fitness_table
from fablint.snapshot import CollectedSnapshots, Snapshot
from fablint.snapshot.host_snapshot import Output
from fablint.system import System
from fablint.workflows.fabric_discovery import restrict_to_nics
from pinned import pinned_by
from roce_hosts import Nic, RoceHost, read

PINNED = pinned_by("preflight.toml", __file__)

Build = Callable[[int], Sequence[Nic]]


class BareFakeSystem(System):
    """A machine that has none of the programs that know a fabric."""

    def which(self, name: str) -> Path | None:
        return None


def switch(index: int) -> tuple[str, str]:
    return f"leaf{index // 2}", f"swp{index}"


def single(name: str, device: str = "mlx5_0", *, odd: int = -1) -> Build:
    def build(index: int) -> Sequence[Nic]:
        mtu = 1500 if index == odd else 9000
        return (Nic(name, f"10.1.0.{index + 1}/24", device, mtu=mtu, switch=switch(index)),)

    return build


def bond(index: int) -> Sequence[Nic]:
    first = Nic("ens3f0np0", rdma="mlx5_bond_0", bond="bond0", gids=("bond0",), switch=switch(index))
    second = Nic("ens3f1np1", bond="bond0", switch=(f"leafb{index // 2}", f"swp{index}"))
    return first, second, Nic("bond0", f"10.1.0.{index + 1}/24", members=("ens3f0np0", "ens3f1np1"))


def fleet(folder: Path, build: Build, count: int = 4) -> dict[str, Snapshot]:
    """Hosts with a management network beside."""
    found = {}
    for index in range(count):
        eno1 = Nic("eno1", f"10.9.0.{index + 1}/24", speed=1000, mtu=1500, switch=("mgmt1", f"gi{index}"))
        one = RoceHost(f"n{index:03d}", (*build(index), eno1), default_route="eno1")
        found[one.name] = read(one, folder)
    return found


def judged(snapshots: dict[str, Snapshot]) -> Fitness:
    return judge(Fleet([Host(snapshot) for snapshot in snapshots.values()]))


def wrong(fitness: Fitness) -> set[tuple[str, str, str]]:
    bad = (Outcome.FAIL, Outcome.WARN, Outcome.ERROR)
    return {(result.check, result.host, result.target) for result in fitness.results if result.outcome in bad}


@pytest.mark.parametrize("name", ["ens3f0np0", "eth2", "enp65s0"])
def test_a_roce_fleet_is_looked_at_whatever_its_interfaces_are_called(tmp_path: Path, name: str) -> None:
    healthy = fleet(tmp_path / "healthy", single(name))
    good = judged(healthy)
    assert wrong(good) == set()
    passed = {(result.check, result.target) for result in good.results if result.outcome is Outcome.PASS}
    checks = ("net.link.up", "net.link.mtu", "net.link.speed", "net.ip.assigned", "lldp.neighbor", "lldp.port")
    assert {(check, name) for check in checks} <= passed
    assert {row["host"]: set(row["rails"].values()) for row in table([Host(one) for one in healthy.values()])} == {
        f"n{index:03d}": {(f"10.1.0.{index + 1}", 9000)} for index in range(4)
    }, "they would ping each other by it"
    bad = judged(fleet(tmp_path / "bad", single(name, odd=2), count=5))  # 4 others are enough to FAIL by comparison
    assert wrong(bad) == {("net.link.mtu", "n002", name)}
    assert set(bad.unfit) == {"n002"}


def test_a_bond_is_pinged_and_its_members_are_lldp_reasons(tmp_path: Path) -> None:
    snapshots = fleet(tmp_path, bond)
    good = judged(snapshots)
    assert wrong(good) == set()
    heard = {
        result.target for result in good.results if result.check == "lldp.neighbor" and result.outcome is Outcome.PASS
    }
    assert heard == {"ens3f0np0", "ens3f1np1"}
    assert {
        address
        for row in table([Host(snapshot) for snapshot in snapshots.values()])
        for address, _ in row["rails"].values()
    }


@pytest.mark.parametrize("build", [single("ens3f0np0"), bond])
def test_lldp_of_roce_interfaces_is_a_topology(tmp_path: Path, build: Build) -> None:
    found = discover(
        BareFakeSystem(), CollectedSnapshots({}, fleet(tmp_path, build)), hosts=[f"n{index:03d}" for index in range(4)]
    )
    assert found.topology is not None
    assert found.topology.host_switch == {f"n{index:03d}": f"leaf{index // 2}" for index in range(4)}
    assert "mgmt1" not in found.topology.switches


# ------------------------------------------------------------------------------------------------ not looked at


def test_hosts_without_a_network_are_not_fit_and_the_summary_begins_with_them() -> None:
    names = [f"n{index}" for index in range(4)]
    bare = [host(name, nic("docker0")) for name in names[:2]] + [host(name, nic()) for name in names[2:]]
    fitness = judge(Fleet(bare))
    assert set(fitness.not_examined) == {"n0", "n1"}
    assert (fitness.exit_code, dict(fitness.unfit)) == (3, {})
    lines = fitness_table(fitness, 200).splitlines()
    assert lines[0] == PINNED["network: not examined: n"]
    assert any(line.startswith("4 hosts: 2 fit, 2 not examined; ") for line in lines)
    facts = json.loads("".join(fitness_json("quick", fitness)))
    assert set(facts["not_examined"]) == {"n0", "n1"}
    assert {one["text"]["name"] for one in facts["findings"] if one["state"] == "NOT JUDGED"} == {"n[0-1]"}


def test_roce_ports_without_an_interface_are_not_examined_and_infiniband_is() -> None:
    port = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "100 Gb/sec (4X EDR)"}

    def ports(layer: str) -> dict[str, str]:
        at = "/sys/class/infiniband/mlx5_0/ports/1"
        return {f"{at}/{name}": text for name, text in {**port, "link_layer": layer, "lid": "3", "sm_lid": "1"}.items()}

    roce = judge(Fleet([host("n1", ports("Ethernet"))]))
    assert dict(roce.not_examined) == {"n1": PINNED["no network interface of mlx5_0/1"]}
    several = judge(Fleet([host(f"n{index}", ports("InfiniBand")) for index in range(3)]))
    assert (several.not_examined, several.exit_code) == ({}, 0)
    first = fitness_table(several, 200).splitlines()[0]
    assert first == PINNED["network: not pinged"]


def test_a_snapshot_that_ended_early_says_so() -> None:
    fitness = judge(Fleet([host("n1", incomplete="looking for /sys/class/net/*")]))
    assert dict(fitness.not_examined) == {"n1": PINNED["the time limit was reached"]}


# ------------------------------------------------------------------------------------------------ --nic


def test_a_name_that_no_host_has_is_refused(tmp_path: Path) -> None:
    known = CollectedSnapshots({}, fleet(tmp_path, single("ens3f0np0"), 2))
    with pytest.raises(UsageError) as refused:
        restrict_to_nics(known, ("ens9", "ens3f0np0"))
    assert str(refused.value) == PINNED["--nic ens9: no host has such"]
    chosen = restrict_to_nics(known, ("eno1",)).snapshots
    assert [[interface.name for interface in Host(snapshot).interfaces] for snapshot in chosen.values()] == [
        ["eno1"]
    ] * 2


def test_a_host_without_the_nic_that_was_named(tmp_path: Path) -> None:
    snapshots = fleet(tmp_path, single("ens3f0np0"))
    other = read(RoceHost("n004", [Nic("eno1", "10.9.0.9/24", speed=1000)]), tmp_path)
    known = restrict_to_nics(CollectedSnapshots({}, {**snapshots, "n004": replace(other, host="n004")}), ("ens3f0np0",))
    fitness = judged(dict(known.snapshots))
    assert dict(fitness.not_examined) == {"n004": "it has no ens3f0np0 (--nic)"}
    assert ("net.rails.count", "n004", "ens3f0np0") in wrong(fitness)


# ------------------------------------------------------------------------------------------------ what LLDP says


def lldp_reasons(folder: Path, fabric: bool, management: bool, running: bool = True) -> tuple[set[str], str]:
    """Return why hosts have no LLDP neighbour, as reported by preflight and by discover."""
    snapshots = {}
    for index in range(3):
        ends = Nic("eth2", f"10.1.0.{index + 1}/24", "mlx5_0"), Nic("eno1", f"10.9.0.{index + 1}/24", speed=1000)
        ends = (
            replace(ends[0], switch=switch(index) if fabric else ("", "")),
            replace(ends[1], switch=("mgmt1", f"gi{index}") if management else ("", "")),
        )
        one = read(RoceHost(f"n{index}", ends), folder)
        snapshots[one.host] = one if running else replace(one, commands={"lldpcli": Output(error="not installed")})
    results = [result for result in judged(snapshots).results if result.check == "lldp.neighbor"]
    found = discover(BareFakeSystem(), CollectedSnapshots({}, snapshots), hosts=list(snapshots))
    (report,) = (source for source in found.sources if source.name == "LLDP")
    return {result.message for result in results}, report.silent or str(dict(report.counts))


def test_lldp_tells_a_silent_switch_from_a_daemon_that_does_not_run(tmp_path: Path) -> None:
    like = "; the same on most others"
    no_neighbour = "there is no neighbour: the switch does not send LLDP, or the NIC's firmware consumes it"
    silent = f"LLDP runs on the host, but {no_neighbour}"
    assert lldp_reasons(tmp_path / "silent", fabric=False, management=False) == ({silent + like}, f"{silent} (n[0-2])")
    only = "LLDP runs on the host, but its only neighbours are mgmt1 on eno1, not on a NIC of the fabric"
    assert lldp_reasons(tmp_path / "mgmt", fabric=False, management=True) == ({only + like}, f"{only} (n[0-2])")
    messages, report = lldp_reasons(tmp_path / "none", fabric=True, management=True, running=False)
    assert messages == {PINNED["lldpcli: not installed; lldptool"]}
    assert report == "not installed (n[0-2])"


def test_lldp_does_not_count_the_management_switch(tmp_path: Path) -> None:
    _, report = lldp_reasons(tmp_path, fabric=True, management=True)
    assert report == "{'host': 3, 'switch': 2}"
