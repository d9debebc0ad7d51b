"""Fleets of hosts in one chassis: with GPUs, without, with cards of two generations, and a login node.

Made by hand from public documentation: PCI ids of pci.ids, PSIDs of NVIDIA's firmware pages, files as the kernel's
Documentation/ABI describes them. No such hardware was there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from preflight_help import NOW

from fablint.model.preflight_results import Fitness, Outcome
from fablint.preflight import Fleet, Host, judge
from fablint.snapshot.host_snapshot import Snapshot
from snapshot_trees import nested

DMI = "/sys/devices/virtual/dmi/id"
PCI = "/sys/bus/pci/devices"
IB = "/sys/class/infiniband"
NET = "/sys/class/net"
NDR = ("0x15b3", "0x1021", "MT_0000000838", "400 Gb/sec (4X NDR)", "28.41.1000")  # ConnectX-7
HDR = ("0x15b3", "0x101b", "MT_0000000223", "200 Gb/sec (4X HDR)", "20.41.1000")  # ConnectX-6
ONBOARD = ("0x8086", "0x1563")  # X550
OTHER = ("0x14e4", "0x16d7")  # BCM57414
H100 = ("0x10de", "0x2330")

Files = dict[str, str]
Change = Callable[[Files, dict[str, str]], None]  # of files and of links


def gpu_files(count: int = 8) -> Files:
    """GPUs on the bus, and known to the driver."""
    found: Files = {}
    for index in range(count):
        at = f"0000:{0x40 + index:02x}:00.0"
        found |= {f"{PCI}/{at}/class": "0x030200", f"{PCI}/{at}/vendor": H100[0], f"{PCI}/{at}/device": H100[1]}
        found |= {f"{PCI}/{at}/current_link_width": "16", f"{PCI}/{at}/max_link_width": "16"}
        found[f"/proc/driver/nvidia/gpus/{at}/information"] = "Model: NVIDIA H100 80GB HBM3"
    return found


def add_hca(files: Files, links: Files, index: int, make: Sequence[str]) -> None:
    """An InfiniBand card with its port, and the network interface on it."""
    vendor, device, board, rate, firmware = make
    at, name = f"0000:{0xA0 + index:02x}:00.0", f"mlx5_{index}"
    card = {"vendor": vendor, "device": device, "current_link_width": "16", "max_link_width": "16"}
    card |= {"current_link_speed": "32.0 GT/s PCIe", "max_link_speed": "32.0 GT/s PCIe", "numa_node": str(index % 2)}
    for folder in (f"{PCI}/{at}", f"{IB}/{name}/device", f"{NET}/ib{index}/device"):
        files.update({f"{folder}/{key}": text for key, text in card.items()})
    files[f"{PCI}/{at}/class"] = "0x020700"
    files |= {f"{IB}/{name}/board_id": board, f"{IB}/{name}/fw_ver": firmware, f"{IB}/{name}/hca_type": "MT"}
    port = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": rate, "link_layer": "InfiniBand"}
    port |= {"lid": "0x11", "sm_lid": "0x1"}
    files |= {f"{IB}/{name}/ports/1/{key}": text for key, text in port.items()}
    nic = {"address": f"00:00:{index:02x}", "mtu": "4092", "operstate": "up", "carrier": "1", "type": "32"}
    files |= {f"{NET}/ib{index}/{key}": text for key, text in {**nic, "flags": "0x1003"}.items()}
    links |= {f"{IB}/{name}/device": f"../../../{at}", f"{NET}/ib{index}/device": f"../../../{at}"}


def add_ethernet(files: Files, links: Files, index: int, make: Sequence[str]) -> None:
    at, name = f"0000:{0x01:02x}:00.{index}", f"eno{index + 1}"
    files |= {f"{PCI}/{at}/class": "0x020000", f"{PCI}/{at}/vendor": make[0], f"{PCI}/{at}/device": make[1]}
    files |= {f"{NET}/{name}/device/vendor": make[0], f"{NET}/{name}/device/device": make[1]}
    nic = {"address": f"3c:ec:ef:00:00:{index:02x}", "mtu": "1500", "operstate": "up", "carrier": "1", "type": "1"}
    files |= {f"{NET}/{name}/{key}": text for key, text in {**nic, "speed": "10000", "flags": "0x1003"}.items()}
    links[f"{NET}/{name}/device"] = f"../../../{at}"


def built(kind: str) -> tuple[Files, Files]:
    """Files and links of a host: `gpu` (8 GPUs, 4 NDR cards), `ndr`, `hdr` (one card), `login` (Ethernet only)."""
    files: Files = {f"{DMI}/sys_vendor": "Supermicro", f"{DMI}/product_name": "Super Server"}
    files |= {f"{DMI}/bios_version": "1.9", "/proc/cpuinfo": "model name\t: AMD EPYC 9654 96-Core Processor\n"}
    files |= {"/proc/meminfo": "MemTotal: 790000000 kB\nHugePages_Total: 0\nHugepagesize: 2048 kB\n"}
    files |= {"/proc/loadavg": "0.10 0.10 0.10 1/900 7\n", "/sys/devices/system/cpu/online": "0-191"}
    files |= {"/sys/devices/system/node/online": "0-1", "/sys/devices/system/cpu/smt/active": "0"}
    files |= {"/proc/self/limits": "Max locked memory         unlimited            unlimited            bytes\n"}
    files |= {"/proc/sys/kernel/osrelease": "5.14.0-427.13.1.el9_4.x86_64"}
    links: Files = {}
    for index in range(2):
        add_ethernet(files, links, index, ONBOARD)
    if kind == "login":
        add_ethernet(files, links, 2, OTHER)
    if kind == "gpu":
        files |= gpu_files()
    for index in range({"gpu": 4, "login": 0}.get(kind, 1)):
        add_hca(files, links, index, HDR if kind == "hdr" else NDR)
    return files, links


def made(name: str, kind: str, change: Change | None = None) -> Host:
    """A host; `change` may alter its files and links."""
    files, links = built(kind)
    if change:
        change(files, links)
    tree = nested(files)
    kernel = files["/proc/sys/kernel/osrelease"]
    return Host(Snapshot(name, NOW, 4.0, kernel=kernel, files=tree, counters=tree, later=tree, links=links))


def fleet(kinds: Mapping[str, int], changes: Mapping[str, Change] | None = None) -> list[Host]:
    """So many hosts of each kind, `gpu1`, `gpu2`, ...; `changes` by name of host."""
    changes = changes or {}
    names = [(f"{kind}{number}", kind) for kind, count in kinds.items() for number in range(1, count + 1)]
    return [made(name, kind, changes.get(name)) for name, kind in names]


def judged(hosts: Sequence[Host]) -> Fitness:
    return judge(Fleet(list(hosts)))


def said(fitness: Fitness, *grades: Outcome) -> dict[str, set[str]]:
    """Hosts by check of which something is wrong."""
    found: dict[str, set[str]] = {}
    for one in fitness.results:
        if one.outcome in (grades or (Outcome.FAIL, Outcome.WARN)):
            found.setdefault(one.check, set()).add(one.host)
    return found


def late(name: str, kind: str) -> Host:
    """A host whose time ran out: of /sys the first cards were read, and no InfiniBand."""
    host = made(name, kind, without("/infiniband/", "/ib0/", "/ib1/", "/proc/driver"))
    return Host(replace(host.snapshot, counters={}, later={}, incomplete="reading /sys/class/infiniband/mlx5_0"))


# ------------------------------------------------------------------------------------------------ faults


def without(*parts: str) -> Change:
    """The host without files whose path has one of these in it."""

    def change(files: Files, links: Files) -> None:
        for tree in (files, links):
            for path in [path for path in tree if any(part in path for part in parts)]:
                del tree[path]

    return change


def rewritten(old: str, new: str, within: str = "") -> Change:
    """The host with another text in files whose path has `within` in it."""

    def change(files: Files, links: Files) -> None:
        for path, text in files.items():
            if within in path and old in text:
                files[path] = text.replace(old, new)

    return change


def _recovering(files: Files, links: Files) -> None:
    """A card without valid firmware: another PCI device, and no driver that makes an InfiniBand device of it."""
    without("/mlx5_0", "/ib0")(files, links)
    files[f"{PCI}/0000:a0:00.0/device"] = "0x0218"  # ConnectX-7 in flash recovery mode


def _one_lane(files: Files, links: Files) -> None:
    path = f"{IB}/mlx5_0/ports/1/rate"
    gbit, _, speed = files[path].partition(" Gb/sec (4X ")
    files[path] = f"{int(gbit) // 4} Gb/sec (1X {speed}"


FAULTS: Mapping[str, tuple[Change, str]] = {
    "HCA is off the bus": (without("/mlx5_0", "/ib0", "0000:a0:00.0"), "net.rails.count"),
    "HCA in recovery mode": (_recovering, "net.rails.count"),
    "HCA without its driver": (without("/mlx5_0", "/ib0"), "net.rails.count"),
    "port is down": (rewritten("4: ACTIVE", "1: DOWN", "mlx5_0/ports"), "ib.port.state"),
    "cable lost lanes": (_one_lane, "ib.port.rate"),
    "slot lost lanes": (rewritten("16", "8", "mlx5_0/device/current_link_width"), "pcie.width"),
    "other MTU": (rewritten("4092", "2044", "/ib0/mtu"), "net.link.mtu"),
    "DIMM lost": (rewritten("790000000", "750000000", "meminfo"), "host.memory"),
    "other kernel": (rewritten("5.14.0-427", "5.14.0-362", "osrelease"), "host.kernel"),
    "spare part": (rewritten("MT_", "XX_", "mlx5_0/board_id"), "ib.psid"),
}
GPU_FAULTS: Mapping[str, tuple[Change, str]] = {
    "GPU is off the bus": (without("0000:43:00.0"), "gpu.count"),
    "GPU without its driver": (without("gpus/0000:43:00.0"), "gpu.count"),
    "all GPUs are off the bus": (
        without("/proc/driver/nvidia", *(f"0000:4{index}:00.0" for index in range(8))),
        "gpu.count",
    ),
}
