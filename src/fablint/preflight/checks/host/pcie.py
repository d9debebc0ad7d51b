"""Checks of PCI Express: links, errors and NUMA nodes of fabric devices and GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import UniformCheck
from fablint.preflight.checks.growth import CountedPart, Excess, GrowthCheck, Limit
from fablint.preflight.checks.peers import Part, PeerCheck
from fablint.preflight.host import CXI, INFINIBAND, NET, Host

NO_DEVICE = "no fabric device on PCI Express"
_PCI = "/sys/bus/pci/devices"
_GPU_CLASSES = ("0x0302", "0x1200")  # 3D controller, processing accelerator
_VIRTUAL = re.compile(r"QEMU|KVM|VMware|Xen|VirtualBox|Virtual Machine|EC2|Google|OpenStack|Bochs", re.IGNORECASE)
_FIGURE = re.compile(r"\d{1,4}(?:\.\d{1,3})?")


def gpus(host: Host) -> Iterator[str]:
    """Yield the PCI addresses of GPUs and accelerators."""
    for address, kind in sorted(host.accelerators.items()):
        if kind.startswith(_GPU_CLASSES):
            yield address


class _PcieLink(PeerCheck):
    """Base of checks that compare a property of PCI Express links with its maximum and with similar hosts."""

    severity = Severity.FAIL
    absent = NO_DEVICE
    absolute = True
    file: ClassVar[str]

    def parts(self, host: Host) -> Iterable[Part]:
        for name, folder in host.fabric_devices.items():
            yield self.part(host, name, folder, str(host.read(f"{folder}/device")))

    def part(self, host: Host, name: str, folder: str, make: str) -> Part:
        now, most = (_figure(host.read(f"{folder}/{when}_link_{self.file}")) for when in ("current", "max"))
        if most is None:
            now = None  # neither is known in some drivers and virtual machines
        alone = None if _is_virtual(host.machine) else most
        return Part(name, now, f"{make} {most}", alone, "its PCI Express link is not visible")


class PcieWidth(_PcieLink):
    id = "pcie.width"
    what = "PCI Express lanes of fabric devices and GPUs"
    source = f"{CXI}, {INFINIBAND}, {NET}: DEVICE/device/current_link_width, max_link_width; {_PCI}"
    rule = "not fewer than on most similar hosts; a warning for all if most have fewer than the device supports"
    component = "nic"
    remedy = "reseat the card or its riser; check bifurcation in the BIOS"
    words = "x{:g}"
    file = "width"

    def parts(self, host: Host) -> Iterable[Part]:
        yield from super().parts(host)
        for address in gpus(host):  # the second slot of a workstation has fewer lanes by design
            yield self.part(host, f"GPU {address}", f"{_PCI}/{address}", "GPU")._replace(most=None)


class PcieSpeed(_PcieLink):
    id = "pcie.speed"
    what = "PCI Express speed of fabric devices (not of GPUs, which reduce it when idle)"
    source = f"{CXI}, {INFINIBAND}, {NET}: DEVICE/device/current_link_speed, max_link_speed"
    rule = "not lower than on most similar hosts; a warning for all if most have less than the device supports"
    component = "nic"
    remedy = "reseat the card or its riser; check the slot's speed in the BIOS"
    words = "{:g} GT/s"
    file = "speed"


@lru_cache(maxsize=1024)
def _is_virtual(kind: str) -> bool:
    return _VIRTUAL.search(kind) is not None


@lru_cache(maxsize=1024)  # a fleet has many links but few values
def _figure(text: str | None) -> float | None:
    """Parse `16.0 GT/s PCIe` as 16; None for 0, 255 and `Unknown`."""
    match = _FIGURE.match((text or "").strip())
    figure = float(match[0]) if match else 0.0
    return figure if 0 < figure < 255 else None


class PcieErrors(GrowthCheck):
    id = "pcie.aer"
    what = "PCI Express errors of fabric devices"
    source = f"{CXI}, {INFINIBAND}, {NET}: DEVICE/device/aer_dev_correctable, _nonfatal, _fatal"
    rule = (
        "no fatal and fewer than 5 non-fatal errors within a week; 10 corrected errors in an hour warn, at the first "
        "reading totals far above those of similar hosts"
    )
    severity = Severity.FAIL
    component = "nic"
    remedy = "reseat the card or its riser; check the kernel log"
    absent = NO_DEVICE

    limits: ClassVar = {"fatal": Limit(1, 1, 1), "nonfatal": Limit(5, 5, 5), "correctable": Limit(10, 10)}

    _FILES: ClassVar = {kind: f"aer_dev_{kind}" for kind in limits}

    def parts(self, host: Host) -> Iterable[CountedPart]:
        for name, folder in host.fabric_devices.items():
            part = CountedPart(name, folder, self._FILES)
            yield part if part.grows(host) else part._replace(why_not="its errors are not counted (no AER)")

    def judged(self, host: Host, part: CountedPart, found: Excess) -> Result:
        words = found.words("{} PCI Express errors: {}")
        if not words:
            return self.ok(host.name, part.target)
        say = self.failure if found.grown.keys() - {"correctable"} else self.warning
        return say(host.name, part.target, ", ".join(words), found.most, 0)


class PcieNuma(UniformCheck):
    id = "pcie.numa"
    what = "the NUMA node of every fabric device"
    source = f"{CXI}, {INFINIBAND}, {NET}: DEVICE/device/numa_node"
    rule = "known if the host has several, and the same as on most similar hosts"
    severity = Severity.WARN
    component = "host"
    remedy = "check the slot of the card, and the NUMA settings in the BIOS"
    words = "NUMA node {}"
    numeric = True
    absent = NO_DEVICE

    def values(self, host: Host) -> Mapping[str, Any]:
        online = (host.read("/sys/devices/system/node/online") or "0").strip()
        known = {name: host.number(f"{folder}/numa_node") for name, folder in host.fabric_devices.items()}
        if online == "0":  # with a single node some drivers report -1
            return {name: 0 if node == -1 else node for name, node in known.items()}
        return {name: "unknown" if node == -1 else node for name, node in known.items()}
