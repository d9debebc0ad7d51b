"""`fablint preflight` of a virtual cluster: what is set wrong is named on the right host; a clean cluster is silent.

What hosts find out by pinging each other is in tests/preflight/pings/test_reach_on_cluster.py.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vcluster import Cluster, StartCluster

FABLINT = (sys.executable, "-m", "fablint.cli")
HOSTS = "nid[001000-001007]"
FAULTY_HOST = "nid001003"
NEIGH = "/proc/sys/net/ipv4/neigh"


@pytest.fixture(scope="module")
def bed(virtual_cluster: StartCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Readings of counters are kept apart from those of other clusters, whose hosts have the same names."""
    one = virtual_cluster("pre", groups=2, switches=2, hosts=2, slurm=False)
    with pytest.MonkeyPatch.context() as patch, one as made:
        patch.setenv("FABLINT_HOME", str(tmp_path_factory.mktemp("home")))
        yield made


@pytest.fixture
def faulty(bed: Cluster) -> Iterator[Cluster]:
    """The cluster, healed afterwards: lldpd forgets the neighbours of a link that went down."""
    yield bed
    bed.heal()
    wait_for_neighbours(bed, FAULTY_HOST, 1)


@pytest.fixture
def topology(bed: Cluster, tmp_path: Path) -> Path:
    """What stalls where, as `fablint discover` finds it while all is well."""
    output = tmp_path / "site.yaml"
    done = bed.run([*FABLINT, "-q", "discover", "-w", HOSTS, "-o", output], timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return output


def preflight(bed: Cluster, *words: str | Path, status: int) -> dict[str, Any]:
    """The verb's JSON."""
    done = bed.run([*FABLINT, "-q", "--json", "preflight", "-w", HOSTS, *words], timeout=120)
    assert done.returncode == status, done.stdout[:3000] + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def reported(found: dict[str, Any], *outcomes: str) -> set[tuple[str, str, str]]:
    """Check, host and target."""
    wanted = outcomes or ("FAIL",)
    return {(one["check"], one["host"], one["target"]) for one in found["results"] if one["outcome"] in wanted}


def of_this_machine(found: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Results that this machine gives all hosts of the bed: those of its kernel log, and CPU time that it is denied.

    The hypervisor takes CPU time now and then: what a second reading reports of it says nothing about the first.
    """
    done = subprocess.run([*FABLINT, "-q", "--json", "preflight"], capture_output=True, text=True, timeout=120)
    results = reported(json.loads(done.stdout), "FAIL", "WARN", "ERROR")
    of_log = {(check, target) for check, _, target in results if check.startswith("log.")}
    return {(check, host, target) for check, target in {*of_log, ("host.steal", "")} for host in found["hosts"]}


def test_a_clean_cluster_is_silent(bed: Cluster, topology: Path) -> None:
    found = preflight(bed, "--topology", topology, status=0)
    assert found["hosts"] == [f"nid{number:06}" for number in range(1000, 1008)]
    assert reported(found, "FAIL", "WARN", "ERROR") - of_this_machine(found) == set()
    passed = reported(found, "PASS")
    for check in ("net.link.mtu", "net.link.up", "lldp.neighbor", "lldp.placement", "net.ping", "net.ip.duplicate"):
        assert {host for name, host, _ in passed if name == check} == set(found["hosts"]), check


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (("mtu", FAULTY_HOST, "--mtu", "1500", "--dir", "tx"), "net.link.mtu"),
        (("down", FAULTY_HOST), "net.link.up"),
    ],
)
def test_a_fault_is_named_on_its_host(faulty: Cluster, fault: tuple[str, ...], check: str) -> None:
    faulty.fault(*fault)
    found = preflight(faulty, status=1)
    assert (check, FAULTY_HOST, "hsn0") in reported(found)
    assert set(found["unfit"]) == {FAULTY_HOST}


def test_a_link_that_flaps_is_reported_by_its_counter(faulty: Cluster) -> None:
    preflight(faulty, status=0)  # the reading to compare with
    before = int(of_link(faulty, "carrier_down_count"))
    faulty.fault("flap", FAULTY_HOST, "--period", "0.6s", "--duty", "0.3")
    wait_until(lambda: int(of_link(faulty, "carrier_down_count")) >= before + 6, "six losses of the link")
    faulty.heal()
    wait_until(lambda: of_link(faulty, "operstate") == "up", "the link to be up")
    found = preflight(faulty, status=1)
    assert ("net.link.flaps", FAULTY_HOST, "hsn0") in reported(found)
    assert set(found["unfit"]) == {FAULTY_HOST}


def test_a_neighbour_that_is_not_heard_is_missed(faulty: Cluster) -> None:
    switch, port = where(faulty, FAULTY_HOST)
    silent = ["lldpcli", "configure", "ports", port, "lldp", "status"]
    assert faulty.run([*silent, "disabled"], node=switch).returncode == 0
    try:
        wait_for_neighbours(faulty, FAULTY_HOST, 0)
        found = preflight(faulty, status=1)
        assert reported(found) == {("lldp.neighbor", FAULTY_HOST, "hsn0")}
    finally:
        faulty.run([*silent, "rx-and-tx"], node=switch)
        wait_for_neighbours(faulty, FAULTY_HOST, 1)


def test_a_small_arp_table_is_reported(faulty: Cluster, tmp_path: Path) -> None:
    """Namespaces have no table of their own: files stand in for the kernel's, on every host."""
    for host in [f"nid{number:06}" for number in range(1000, 1008)]:
        folder = tmp_path / host
        (folder / "default").mkdir(parents=True)
        for name, most in (("gc_thresh1", 4096), ("gc_thresh2", 8192), ("gc_thresh3", 16384)):
            (folder / "default" / name).write_text(f"{4 if host == FAULTY_HOST else most}\n")
        assert faulty.run(["mount", "--bind", folder, NEIGH], node=host).returncode == 0
    try:
        found = preflight(faulty, status=1)
        assert {host for check, host, _ in reported(found) if check.startswith("net.arp")} == {FAULTY_HOST}
        assert set(found["unfit"]) == {FAULTY_HOST}
    finally:
        for host in [f"nid{number:06}" for number in range(1000, 1008)]:
            faulty.run(["umount", NEIGH], node=host)


def test_a_host_that_calls_itself_as_another_is_reported(faulty: Cluster) -> None:
    assert faulty.run(["hostname", "nid001006"], node=FAULTY_HOST).returncode == 0
    try:
        found = preflight(faulty, status=1)
    finally:
        faulty.run(["hostname", FAULTY_HOST], node=FAULTY_HOST)
    assert {host for _, host, _ in reported(found)} <= {FAULTY_HOST, "nid001006"}
    assert FAULTY_HOST in {host for check, host, _ in reported(found) if check in ("host.identity", "host.name")}


@pytest.mark.skipif(shutil.which("ethtool") is None, reason="ethtool is not installed")
def test_an_offload_that_one_host_has_switched_off_is_reported(faulty: Cluster) -> None:
    assert faulty.run(["ethtool", "-K", "hsn0", "tx", "off"], node=FAULTY_HOST).returncode == 0
    try:
        found = preflight(faulty, "--level", "full", status=0)
    finally:
        faulty.run(["ethtool", "-K", "hsn0", "tx", "on"], node=FAULTY_HOST)
    warnings = {(host, target) for check, host, target in reported(found, "WARN") if check == "net.offload"}
    assert {(host, target) for host, target in warnings if target != "hsn0"} == {(FAULTY_HOST, "hsn0 tx-checksumming")}


def test_an_address_without_a_name_is_reported(faulty: Cluster) -> None:
    before = faulty.run(["cat", "/etc/hosts"], node=FAULTY_HOST).stdout
    without = "".join(line for line in before.splitlines(True) if f"{FAULTY_HOST}-hsn0" not in line)
    assert without != before
    faulty.run(["tee", "/etc/hosts"], node=FAULTY_HOST, text=without)
    try:
        found = preflight(faulty, status=0)  # nothing is lost by it
        assert {host for check, host, _ in reported(found, "WARN") if check.startswith("net.dns")} == {FAULTY_HOST}
    finally:
        faulty.run(["tee", "/etc/hosts"], node=FAULTY_HOST, text=before)


def test_a_host_that_was_plugged_in_elsewhere_is_reported_by_the_site_s_topology(bed: Cluster, topology: Path) -> None:
    """The last test: the switch has forgotten the host."""
    here, port = where(bed, FAULTY_HOST)
    there = next(switch for switch in sorted(switches(bed)) if switch != here)
    move(bed, port, here, there, "h7")
    wait_for_neighbours(bed, FAULTY_HOST, 1, there)
    found = preflight(bed, "--topology", topology, status=1)
    assert ("lldp.placement", FAULTY_HOST, "hsn0") in reported(found)
    (result,) = [one for one in found["results"] if (one["check"], one["outcome"]) == ("lldp.placement", "FAIL")]
    assert here in result["message"]
    assert there in result["message"]
    assert set(found["unfit"]) == {FAULTY_HOST}


# ------------------------------------------------------------------------------------------------ the bed


def where(bed: Cluster, host: str) -> tuple[str, str]:
    """The switch of a host, and the port there."""
    one = bed.topology()["hosts"][host]
    return one["switch"], one["port"]


def switches(bed: Cluster) -> list[str]:
    return [name for name in bed.topology()["switches"] if not name.startswith("sw-")]


def of_link(bed: Cluster, name: str) -> str:
    """What the kernel's file of that name says about the fabric NIC of the host with the fault."""
    return bed.run(["cat", f"/sys/class/net/hsn0/{name}"], node=FAULTY_HOST).stdout.strip()


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.5)


def wait_for_neighbours(bed: Cluster, host: str, count: int, name: str = "") -> None:
    """Wait until lldpd of a host has so many neighbours on its fabric NIC, of that name."""

    def heard() -> bool:
        said = bed.run(["lldpcli", "-f", "json0", "show", "neighbors", "ports", "hsn0"], node=host).stdout
        return said.count('"chassis"') == count and name in said

    wait_until(heard, f"{count} neighbours of {host}")


def move(bed: Cluster, port: str, here: str, there: str, name: str) -> None:
    """Unplug a cable from a port of one switch and plug it into another, where the port is called `name`."""
    pid = sleeper(bed, there)
    for node, words in (
        (here, ["link", "set", port, "netns", pid, "name", name]),
        (there, ["link", "set", name, "master", "br0", "up"]),
    ):
        done = bed.run(["ip", *words], node=node)
        assert done.returncode == 0, done.stderr


def sleeper(bed: Cluster, node: str) -> str:
    """The process that holds a node's namespaces."""
    space = bed.run(["readlink", "/proc/self/ns/net"], node=node).stdout.strip()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str((process / "ns" / "net").readlink()) == space and b"infinity" in (process / "cmdline").read_bytes():
                return process.name
        except OSError:
            continue
    raise AssertionError(node)
