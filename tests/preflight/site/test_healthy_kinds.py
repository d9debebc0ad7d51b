"""Healthy hosts of further kinds, alone and in small fleets, have no finding: clouds, GH200, IPv6, containers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from documented_hosts import KINDS as MANUALS, infiniband, mac, management, smi
from documented_machine import Machine
from preflight_help import of, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight import Fleet, Host, judge
from fablint.preflight.checks.network.ipv6_addresses import IP6_ADDRESS
from fablint.snapshot import snapshot_of
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

pytestmark = pytest.mark.long  # many generated fleets

WRONG = (Outcome.FAIL, Outcome.WARN, Outcome.ERROR)


def grace_hopper(name: str, index: int) -> Machine:
    """GH200 with one NDR card: Arm CPU, GPU memory that is memory of the host as well (ATS)."""
    host = infiniband(name, index)
    host.put("/sys/devices/virtual/dmi/id", sys_vendor="NVIDIA", product_name="GH200 P4352")
    host.files["/proc/cpuinfo"] = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n\nprocessor\t: 1\n"
    gpu = "0009:01:00.0"
    host.card(gpu, "0x030200", "0x10de", "0x2342", 1, "32.0", 0, "3D controller: NVIDIA GH200 480GB")
    host.files[f"/proc/driver/nvidia/gpus/{gpu}/information"] = "Model: NVIDIA GH200 480GB"
    host.commands["nvidia-smi-q"] = smi([f"0000{gpu}"]).replace(
        "</product_name>", "</product_name><addressing_mode>ATS</addressing_mode>"
    )
    return host


def efa(name: str, index: int) -> Machine:
    """EC2 instance with an ENA interface and four EFA devices: no InfiniBand link layer, no subnet manager."""
    host = Machine(name, index)
    host.base("Amazon EC2", "p5.48xlarge", "AMD EPYC 7R13 Processor", 192, 2, 2048, driver="amd")
    host.card("0000:48:00.0", "0x020000", "0x1d0f", "0xec20", 0, "0", 0, "Ethernet controller: Amazon ENA")
    host.interface(
        "ens32", "0000:48:00.0", mac(index, 9), mbit=0, mtu=9001, ip=f"10.1.0.{index}/16", driver="ena", firmware=""
    )
    host.route("10.1.0.254", "ens32")
    for number in range(4):
        at = f"0000:{0x50 + 0x10 * number:02x}:00.0"
        host.card(at, "0x020000", "0x1d0f", "0xefa2", 8, "16.0", number // 2, "Ethernet controller: Amazon EFA")
        host.rdma(f"rdmap{0x50 + 0x10 * number}s0", at, "100 Gb/sec (4X EDR)", "", "", layer="Unspecified", hca="EFA")
        port = f"/sys/class/infiniband/rdmap{0x50 + 0x10 * number}s0/ports/1"
        host.put(f"{port}/hw_counters", retrans_pkts=9_000 + index, retrans_timeout_events=3, rx_drops=0)
        host.files[f"/sys/class/infiniband/rdmap{0x50 + 0x10 * number}s0/node_type"] = "4: usnic UDP"
    return host


def virtual_function(name: str, index: int) -> Machine:
    """Virtual machine with a virtual function of an InfiniBand card, which shares the LID of its card."""
    host = infiniband(name, index)
    host.put("/sys/devices/virtual/dmi/id", sys_vendor="QEMU", product_name="Standard PC (Q35 + ICH9, 2009)")
    host.files["/sys/class/infiniband/mlx5_0/node_guid"] = "0000:0000:0000:0000"
    host.files["/sys/class/infiniband/mlx5_0/ports/1/lid"] = "0x21"
    for file in ("current_link_width", "max_link_width"):
        host.files[f"/sys/bus/pci/devices/0000:c1:00.0/{file}"] = "0"
    return host


def ipv6_only(name: str, index: int) -> Machine:
    """Host of an Ethernet fabric with IPv6 addresses only."""
    host = Machine(name, index)
    host.base("HPE", "ProLiant DL385 Gen10 Plus", "AMD EPYC 7543 32-Core Processor", 128, 2, 256, driver="amd")
    management(host, "eno1")
    host.card("0000:c1:00.0", "0x020000", "0x15b3", "0x101d", 16, "16.0", 1, "Ethernet controller: Mellanox MT2892")
    host.interface("ens1np0", "0000:c1:00.0", mac(index, 0), mbit=100_000, mtu=9000)
    host.addresses[-1]["addr_info"] = [
        {"family": "inet6", "local": f"fd00:1::{index:x}", "prefixlen": 64, "scope": "global"},
        {"family": "inet6", "local": f"fe80::{index:x}", "prefixlen": 64, "scope": "link"},
    ]
    host.interrupts("0000:c1:00.0", 300, range(32, 64))
    host.heard({"ens1np0": (f"tor{index // 8 + 1}", f"Ethernet{index}")})
    host.put("/proc/sys/net/ipv6/neigh/default", gc_thresh1=8192, gc_thresh2=16384, gc_thresh3=32768)
    return host


def container(name: str, index: int) -> Machine:
    """Container with the RDMA device of its host: no limits of neighbour tables, no kernel log, no DMI."""
    host = infiniband(name, index)
    for path in list(host.files):
        if path.startswith(("/sys/devices/virtual/dmi", "/proc/sys/net/ipv4/neigh", "/var/log", "/proc/net/stat")):
            del host.files[path]
    return host


def azure(name: str, index: int) -> Machine:
    """HPC instance of Azure: a virtual function of an InfiniBand card."""
    host = virtual_function(name, index)
    host.put("/sys/devices/virtual/dmi/id", sys_vendor="Microsoft Corporation", product_name="Virtual Machine")
    host.put("/sys/bus/pci/devices/0000:c1:00.0", device="0x101e")
    host.files["/sys/class/infiniband/mlx5_0/ports/1/lid"] = hex(64 + index)
    return host


def gvnic(name: str, index: int) -> Machine:
    """Instance of Google Cloud with a gVNIC: no LLDP, an MTU of the cloud, each address a network of its own."""
    host = Machine(name, index)
    host.base("Google", "Google Compute Engine", "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", 176, 2, 704)
    host.card("0000:00:04.0", "0x020000", "0x1ae0", "0x0042", 0, "0", 0, "Ethernet controller: Google gVNIC")
    address = f"10.128.0.{index + 1}/32"
    host.interface("ens4", "0000:00:04.0", mac(index, 4), mbit=0, mtu=8896, ip=address, driver="gve", firmware="")
    host.route("10.128.0.1", "ens4")
    return host


def two_planes(name: str, index: int) -> Machine:
    """Two InfiniBand cards in separate subnets, whose subnet managers give the same LIDs."""
    host = infiniband(name, index)
    at = "0000:41:00.0"
    host.card(at, "0x020700", "0x15b3", "0x1021", 16, "32.0", 0, "Infiniband controller: Mellanox")
    host.rdma("mlx5_1", at, "400 Gb/sec (4X NDR)", "MT_0000000838", "28.41.1000")
    guid = f"00:00:10:4a:fe:80:00:00:00:00:00:01:b8:3f:d2:04:00:{index // 256:02x}:{index % 256:02x}:01"
    host.interface("ib1", at, guid, mtu=4092, hardware=32, ip=f"10.2.0.{index}/16")
    host.files["/sys/class/net/ib1/mode"] = "datagram"
    host.interrupts(at, 400, range(0, 32))
    return host


def connected(name: str, index: int) -> Machine:
    """IP over InfiniBand in connected mode, with its long frames."""
    host = MANUALS["hdr"](name, index)
    host.put("/sys/class/net/ib0", mode="connected", mtu=65520)
    return host


def kubernetes(name: str, index: int) -> Machine:
    """Worker of Kubernetes with RoCE: bridges, tunnels and interfaces of pods beside the fabric."""
    host = MANUALS["roce"](name, index)
    for number, virtual in enumerate(("cni0", "flannel.1", "vetha1b2c3d4", "cali0123456789a", "docker0")):
        host.put(
            f"/sys/class/net/{virtual}", address=f"0a:58:0a:f4:{index:02x}:{number:02x}", mtu=1450, operstate="up",
            carrier=1, type=1, flags="0x1003", carrier_changes=50 * number,
        )  # fmt: skip
    return host


def arm(name: str, index: int) -> Machine:
    """Ampere Altra with RoCE: another CPU, no frequency or idle driver of Intel or AMD."""
    host = MANUALS["roce-eth"](name, index)
    host.put("/sys/devices/virtual/dmi/id", sys_vendor="GIGABYTE", product_name="R272-P30-JG")
    host.files["/proc/cpuinfo"] = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nprocessor\t: 1\n"
    for path in list(host.files):
        if "/cpuidle/" in path or "/intel_pstate/" in path:
            del host.files[path]
    return host


KINDS: Mapping[str, Callable[[str, int], Machine]] = {
    "gh200": grace_hopper,
    "efa": efa,
    "vf": virtual_function,
    "ipv6": ipv6_only,
    "container": container,
    "mi300": MANUALS["mi300"],
    "omnipath": MANUALS["omnipath"],
    "dgx": MANUALS["dgx"],
    "azure": azure,
    "gvnic": gvnic,
    "two-planes": two_planes,
    "connected": connected,
    "kubernetes": kubernetes,
    "arm": arm,
    **{name: MANUALS[name] for name in ("roce", "roce-bond", "roce-one", "hdr", "hdr100", "ethernet", "ethernet-bond")},
}


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_healthy_hosts_of_further_kinds_are_quiet(tmp_path: Path, kind: str, count: int) -> None:
    documents = [KINDS[kind](f"{kind}-{index}", index).collected(tmp_path, "full") for index in range(1, count + 1)]
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    results = judge(Fleet([Host(snapshot_of(document)) for document in documents])).results
    for result in results:
        if result.outcome in WRONG:
            found[result.check, result.message].add(result.host)
    assert dict(found) == {}
    assert {result.host for result in results if result.outcome is Outcome.PASS} == {
        document["host"] for document in documents
    }


def _judged_ipv6(tmp_path: Path, change: Callable[[Machine], None]) -> list[tuple[str, str]]:
    """Host and message of the findings about IPv6 in a fleet of five with a changed host."""
    hosts = [ipv6_only(f"n{index}", index) for index in range(1, 6)]
    change(hosts[2])
    snapshots = [Host(snapshot_of(machine.collected(tmp_path, "full"))) for machine in hosts]
    return [(name, message) for name, _, _, message in wrong(of(IP6_ADDRESS, *snapshots))]


def test_an_ipv6_address_that_is_missing_or_of_another_host(tmp_path: Path) -> None:
    def missing(host: Machine) -> None:
        del host.addresses[-1]["addr_info"][0]

    def failed(host: Machine) -> None:
        host.addresses[-1]["addr_info"][0]["dadfailed"] = True

    def taken(host: Machine) -> None:
        host.addresses[-1]["addr_info"][0]["local"] = "fd00:1::2"

    assert _judged_ipv6(tmp_path / "0", lambda _: None) == []
    assert _judged_ipv6(tmp_path / "1", missing) == [("n3", "no IPv6 address, 4 others have one")]
    assert _judged_ipv6(tmp_path / "2", failed) == [("n3", PINNED["fd00:1::3 is not used: another"])]
    assert _judged_ipv6(tmp_path / "3", taken) == [
        ("n2", PINNED["fd00:1::2 is also an address"]),
        ("n3", PINNED["fd00:1::2 is also an address of"]),
    ]
