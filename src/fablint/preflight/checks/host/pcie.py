"""What is behind PCI Express: fabric devices and GPUs, their links, errors and NUMA nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import UniformCheck
from fablint.preflight.checks.growth import Counted, Excess, GrowthCheck, Limit
from fablint.preflight.checks.peers import Part, PeerCheck
from fablint.preflight.host import CXI, INFINIBAND, NET, Host

NO_DEVICE = "no fabric device behind PCI Express"
_FAST_MBIT = 10_000  # a slower network interface has lanes to spare
_PCI = "/sys/bus/pci/devices"
_GPU_CLASSES = ("0x0302", "0x1200")  # 3D controller, processing accelerator
_VIRTUAL = re.compile(r"QEMU|KVM|VMware|Xen|VirtualBox|Virtual Machine|EC2|Google|OpenStack|Bochs", re.IGNORECASE)
_FIGURE = re.compile(r"\d{1,4}(?:\.\d{1,3})?")


def fabric_devices(host: Host) -> Mapping[str, str]:
    """The folders of the fabric's PCI devices, by name; of one that has several names the first."""
    named = [(device, f"{CXI}/{device}/device") for device in host.cxi]
    named += [(device, f"{INFINIBAND}/{device}/device") for device in host.snapshot.names(INFINIBAND)]
    of_devices = {nic for _, folder in named for nic in host.snapshot.names(f"{folder}/net")}
    fast = [nic.name for nic in host.interfaces if (nic.speed or 0) >= _FAST_MBIT and nic.name not in of_devices]
    named += [(nic, f"{NET}/{nic}/device") for nic in fast if host.read(f"{NET}/{nic}/device/vendor")]
    found: dict[str, str] = {}
    for name, folder in named:
        found.setdefault(host.snapshot.link(folder) or folder, name)
    return {name: folder for name, folder in named if name in found.values()}


def gpus(host: Host) -> Iterator[str]:
    """PCI addresses of GPUs and accelerators."""
    for address, kind in sorted(host.accelerators.items()):
        if kind.startswith(_GPU_CLASSES):
            yield address


class _PcieLink(PeerCheck):
    """What a device's PCI Express link has, of what it could have."""

    severity = Severity.FAIL
    absent = NO_DEVICE
    absolute = True
    file: ClassVar[str]

    def parts(self, host: Host) -> Iterable[Part]:
        for name, folder in fabric_devices(host).items():
            yield self.part(host, name, folder, str(host.read(f"{folder}/device")))

    def part(self, host: Host, name: str, folder: str, make: str) -> Part:
        now, most = (_figure(host.read(f"{folder}/{when}_link_{self.file}")) for when in ("current", "max"))
        if most is None:
            now = None  # a driver or a virtual machine that knows neither
        alone = None if _is_virtual(host.machine) else most
        return Part(name, now, f"{make} {most}", alone, "its PCI Express link cannot be seen")


class PcieWidth(_PcieLink):
    id = "pcie.width"
    what = "PCI Express lanes of fabric devices and GPUs"
    source = f"{CXI}, {INFINIBAND}, {NET}: DEVICE/device/current_link_width, max_link_width; {_PCI}"
    rule = "no fewer than most similar hosts have; a warning of all where most have fewer than the device could have"
    component = "nic"
    remedy = "reseat the card or its riser; check bifurcation in the BIOS"
    words = "x{:g}"
    file = "width"

    def parts(self, host: Host) -> Iterable[Part]:
        yield from super().parts(host)
        for address in gpus(host):  # in a workstation's second slot a GPU has fewer for good
            yield self.part(host, f"GPU {address}", f"{_PCI}/{address}", "GPU")._replace(most=None)


class PcieSpeed(_PcieLink):
    id = "pcie.speed"
    what = "PCI Express speed of fabric devices; idle GPUs lower theirs"
    source = f"{CXI}, {INFINIBAND}, {NET}: DEVICE/device/current_link_speed, max_link_speed"
    rule = "no less than most similar hosts have; a warning of all where most have less than the device could have"
    component = "nic"
    remedy = "reseat the card or its riser; check the slot's speed in the BIOS"
    words = "{:g} GT/s"
    file = "speed"


@lru_cache(maxsize=1024)
def _is_virtual(kind: str) -> bool:
    return _VIRTUAL.search(kind) is not None


@lru_cache(maxsize=1024)  # a fleet has thousands of links, and few figures
def _figure(text: str | None) -> float | None:
    """`16.0 GT/s PCIe` as 16; None where the driver says 0, 255 or `Unknown`."""
    match = _FIGURE.match((text or "").strip())
    figure = float(match[0]) if match else 0.0
    return figure if 0 < figure < 255 else None


class PcieErrors(GrowthCheck):
    id = "pcie.aer"
    what = "PCI Express errors of fabric devices"
    source = f"{CXI}, {INFINIBAND}, {NET}: DEVICE/device/aer_dev_correctable, _nonfatal, _fatal"
    rule = (
        "no fatal one and fewer than 5 others within a week; 10 corrected ones in an hour warn, at the first reading "
        "totals far above those of similar hosts"
    )
    severity = Severity.FAIL
    component = "nic"
    remedy = "reseat the card or its riser; check the kernel log"
    absent = NO_DEVICE

    limits: ClassVar = {"fatal": Limit(1, 1, 1), "nonfatal": Limit(5, 5, 5), "correctable": Limit(10, 10)}

    _FILES: ClassVar = {kind: f"aer_dev_{kind}" for kind in limits}

    def parts(self, host: Host) -> Iterable[Counted]:
        for name, folder in fabric_devices(host).items():
            part = Counted(name, folder, self._FILES)
            yield part if part.grows(host) else part._replace(why_not="its errors are not counted (no AER)")

    def judged(self, host: Host, part: Counted, found: Excess) -> Result:
        words = found.words("{} PCI Express errors: {}")
        if not words:
            return self.passed(host.name, part.target)
        say = self.wrong if found.grown.keys() - {"correctable"} else self.warned
        return say(host.name, part.target, ", ".join(words), found.most, 0)


class PcieNuma(UniformCheck):
    id = "pcie.numa"
    what = "the NUMA node of every fabric device"
    source = f"{CXI}, {INFINIBAND}, {NET}: DEVICE/device/numa_node"
    rule = "known where there are several, and as most similar hosts have it"
    severity = Severity.WARN
    component = "host"
    remedy = "check the slot that the card is in, and at NUMA settings in the BIOS"
    words = "NUMA node {}"
    numeric = True
    absent = NO_DEVICE

    def values(self, host: Host) -> Mapping[str, Any]:
        online = (host.read("/sys/devices/system/node/online") or "0").strip()
        known = {name: host.number(f"{folder}/numa_node") for name, folder in fabric_devices(host).items()}
        if online == "0":  # all is on one node; some drivers then say -1
            return {name: 0 if node == -1 else node for name, node in known.items()}
        return {name: "unknown" if node == -1 else node for name, node in known.items()}
