"""Checks of PCI Express: links, errors and NUMA nodes of fabric devices and GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check
from fablint.preflight.host import CXI, INFINIBAND, NET, PCI, Host
from fablint.preflight.judges import at_least_peers, growth, limit, uniform
from fablint.preflight.judges.growth import CountedPart, Excess, Limit
from fablint.preflight.judges.outputs import NO_PCI_DEVICE
from fablint.preflight.judges.peers import Part
from fablint.snapshot.cards import bridges_above
from fablint.snapshot.parsers.tallies import pcie_figure

_ONES = "63"  # 6 bits of the register of the link, the number of lanes
_GPU_CLASSES = ("0x0302", "0x1200")  # 3D controller, processing accelerator


def _addresses(host: Host) -> Iterable[str]:
    """Return the PCI addresses of the fabric devices."""
    return [address for folder in host.fabric_devices.values() if (address := host.snapshot.link(folder))]


def _speeds(host: Host) -> Iterator[Part]:
    yield from _links(host, "speed")
    yield from _bridges(host, "speed", _addresses(host))


def _links(host: Host, file: str) -> Iterator[Part]:
    for name, folder in host.fabric_devices.items():
        yield _link(host, name, folder, str(host.read(f"{folder}/device")), file)


def _link(host: Host, name: str, folder: str, make: str, file: str) -> Part:
    """Return a property of a PCI Express link with its maximum; they are files such as `current_link_width`."""
    now, most = (pcie_figure(host.read(f"{folder}/{when}_link_{file}")) for when in ("current", "max"))
    if most is None or _is_silent(host, folder):
        now = None  # neither is known in some drivers and virtual machines
    alone = None if host.is_virtual else most
    return Part(name, now, f"{make} {most}", alone, "its PCI Express link is not visible")


def _is_silent(host: Host, folder: str) -> bool:
    """Return whether all bits of a device's registers are 1: so the bus reads a device that does not answer."""
    return host.read(f"{folder}/current_link_width") == _ONES


def _answers(check: Check, host: Host) -> Iterable[Result]:
    gpus = {f"GPU {address}": f"{PCI}/{address}" for address in sorted(host.accelerators)}
    for name, folder in {**host.fabric_devices, **gpus}.items():
        if host.read(f"{folder}/current_link_width") is None:
            yield check.skip(host.name, name, "its PCI Express link is not visible")
        elif _is_silent(host, folder):
            yield check.failure(host.name, name, "does not answer: all bits of its registers are 1")
        else:
            yield check.ok(host.name, name)


PCIE_ANSWER = Check(
    id="pcie.answer",
    what="whether fabric devices and GPUs answer on PCI Express",
    source=f"{CXI}, {INFINIBAND}, {NET}: DEVICE/device/current_link_width; {PCI}",
    rule="the width of the link is one that exists: a device that fell off the bus has 63 lanes",
    severity=Severity.FAIL,
    component="nic",
    remedy="check the kernel log; power the host off and on, then reseat or replace the card",
    judge=limit(_answers, NO_PCI_DEVICE),
)


def _widths(host: Host) -> Iterator[Part]:
    yield from _links(host, "width")
    for address, kind in sorted(host.accelerators.items()):
        if kind.startswith(_GPU_CLASSES):  # the second slot of a workstation has fewer lanes by design
            yield _link(host, f"GPU {address}", f"{PCI}/{address}", "GPU", "width")._replace(most=None)
    yield from _bridges(host, "width", (*_addresses(host), *host.accelerators))


def _bridges(host: Host, file: str, devices: Iterable[str]) -> Iterator[Part]:
    """Yield a property of the link of each bridge above devices to the bridge above it; ports below are its devices'.

    A switch of PCI Express has a port up and one for each device; the links of these are those of the devices.
    """
    addresses = {bridge: None for device in devices for bridge in bridges_above(host.snapshot, device)[1::2]}
    for address in addresses:
        folder = f"{PCI}/{address}"
        make = f"{host.read(f'{folder}/vendor')} {host.read(f'{folder}/device')}"
        part = _link(host, f"bridge {address}", folder, f"bridge {make}", file)
        yield part._replace(most=None)  # it may be wired with fewer lanes by design


PCIE_WIDTH = Check(
    id="pcie.width",
    what="PCI Express lanes of fabric devices and GPUs, and of the bridges above them",
    source=f"{CXI}, {INFINIBAND}, {NET}: DEVICE/device/current_link_width, max_link_width; {PCI}",
    rule="not fewer than on most similar hosts; a warning for all if most have fewer than the device supports",
    severity=Severity.FAIL,
    component="nic",
    remedy="reseat the card or its riser; check bifurcation in the BIOS",
    judge=at_least_peers(_widths, "x{:g}", NO_PCI_DEVICE, absolute=True),
)

PCIE_SPEED = Check(
    id="pcie.speed",
    what="PCI Express speed of fabric devices and bridges above them (not of GPUs, which reduce it when idle)",
    source=f"{CXI}, {INFINIBAND}, {NET}: DEVICE/device/current_link_speed, max_link_speed",
    rule="not lower than on most similar hosts; a warning for all if most have less than the device supports",
    severity=Severity.FAIL,
    component="nic",
    remedy="reseat the card or its riser; check the slot's speed in the BIOS",
    judge=at_least_peers(_speeds, "{:g} GT/s", NO_PCI_DEVICE, absolute=True),
)


_LIMITS = {"fatal": Limit(1, 1, 1), "nonfatal": Limit(5, 5, 5), "correctable": Limit(10, 10)}
_FILES = {kind: f"aer_dev_{kind}" for kind in _LIMITS}


def _pcie_errors(host: Host) -> Iterable[CountedPart]:
    for name, folder in host.fabric_devices.items():
        part = CountedPart(name, folder, _FILES)
        yield part if part.grows(host) else part._replace(why_not="its errors are not counted (no AER)")


def _judged_pcie_errors(check: Check, host: Host, part: CountedPart, excess: Excess) -> Result:
    words = excess.words("{} PCI Express errors: {}")
    if not words:
        return check.ok(host.name, part.target)
    say = check.failure if excess.grown.keys() - {"correctable"} else check.warning
    return say(host.name, part.target, ", ".join(words), excess.most, 0)


PCIE_ERRORS = Check(
    id="pcie.aer",
    what="PCI Express errors of fabric devices",
    source=f"{CXI}, {INFINIBAND}, {NET}: DEVICE/device/aer_dev_correctable, _nonfatal, _fatal",
    rule=(
        "no fatal and fewer than 5 non-fatal errors within a week; 10 corrected errors in an hour warn, at the first "
        "reading totals of a week, or far above those of similar hosts"
    ),
    severity=Severity.FAIL,
    component="nic",
    remedy="reseat the card or its riser; check the kernel log",
    judge=growth(
        _LIMITS,
        _pcie_errors,
        _judged_pcie_errors,
        NO_PCI_DEVICE,
    ),
)


def _pcie_numa(host: Host) -> Mapping[str, Any]:
    online = (host.read("/sys/devices/system/node/online") or "0").strip()
    nodes = {name: host.number(f"{folder}/numa_node") for name, folder in host.fabric_devices.items()}
    if online == "0":  # with a single node some drivers report -1
        return {name: 0 if node == -1 else node for name, node in nodes.items()}
    return {name: "unknown" if node == -1 else node for name, node in nodes.items()}


PCIE_NUMA = Check(
    id="pcie.numa",
    what="the NUMA node of every fabric device",
    source=f"{CXI}, {INFINIBAND}, {NET}: DEVICE/device/numa_node",
    rule="known if the host has several, and the same as on most similar hosts",
    component="host",
    remedy="check the slot of the card, and the NUMA settings in the BIOS",
    judge=uniform(_pcie_numa, "NUMA node {}", absent=NO_PCI_DEVICE, numeric=True),
)
