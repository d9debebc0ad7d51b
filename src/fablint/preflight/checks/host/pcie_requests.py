"""Check of the payload and read request sizes of PCI Express devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fablint.preflight.check import Check
from fablint.preflight.host import Host
from fablint.preflight.judges import uniform
from fablint.preflight.judges.outputs import NO_PCI_DEVICE, without_answer
from fablint.snapshot.parsers.lspci import pci_functions


def _why_not(host: Host) -> str:
    """Return why a host has no values."""
    output = host.command("lspci")
    if not host.fabric_devices:
        return NO_PCI_DEVICE
    return "lspci shows it to root only" if "<access denied>" in output.text else f"lspci: {without_answer(output)}"


def _pcie_requests(host: Host) -> Mapping[str, Any]:
    output = host.command("lspci")
    sizes = {one.address: one.sizes for one in pci_functions(output.text) if one.sizes} if output.status == 0 else {}
    links = {name: host.snapshot.link(folder) for name, folder in host.fabric_devices.items()}
    return {name: sizes.get(address) for name, address in links.items() if sizes}


PCIE_REQUESTS = Check(
    id="pcie.requests",
    what="the largest payload and the largest read request of every fabric device",
    source="lspci -vvv, DevCtl: MaxPayload, MaxReadReq",
    root=True,
    remedy="use the same BIOS setting (PCIe maximum payload), or set MaxReadReq in the driver; setpci for a test",
    judge=uniform(_pcie_requests, "{}", absent=_why_not),
)
