"""Checks of the requests of PCI Express devices: payload and read request sizes, relaxed ordering."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fablint.preflight.check import Check
from fablint.preflight.host import Host
from fablint.preflight.judges import uniform
from fablint.preflight.judges.outputs import NO_PCI_DEVICE, without_answer
from fablint.snapshot.parsers.lspci import PciFunction, pci_functions


def _why_not(host: Host) -> str:
    """Return why a host has no values."""
    output = host.command("lspci")
    if not host.fabric_devices:
        return NO_PCI_DEVICE
    return "lspci shows it to root only" if "<access denied>" in output.text else f"lspci: {without_answer(output)}"


def _of_functions(host: Host, attribute: Callable[[PciFunction], str]) -> Mapping[str, Any]:
    """Return an attribute of every fabric device; none where lspci shows it of no function."""
    output = host.command("lspci")
    functions = pci_functions(output.text) if output.status == 0 else ()
    values = {function.address: attribute(function) for function in functions if attribute(function)}
    links = {name: host.snapshot.link(folder) for name, folder in host.fabric_devices.items()}
    return {name: values.get(address) for name, address in links.items() if values}


PCIE_REQUESTS = Check(
    id="pcie.requests",
    what="the largest payload and the largest read request of every fabric device",
    source="lspci -vvv, DevCtl: MaxPayload, MaxReadReq",
    root=True,
    remedy="use the same BIOS setting (PCIe maximum payload), or set MaxReadReq in the driver; setpci for a test",
    judge=uniform(lambda host: _of_functions(host, lambda function: function.sizes), "{}", absent=_why_not),
)

PCIE_ORDERING = Check(
    id="pcie.ordering",
    what="relaxed ordering of the requests of every fabric device",
    source="lspci -vvv, DevCtl: RlxdOrd",
    root=True,
    remedy="use the same setting in the BIOS (PCIe relaxed ordering) and in the NIC (PCI_WR_ORDERING)",
    judge=uniform(
        lambda host: _of_functions(host, lambda function: function.ordering), "relaxed ordering {}", absent=_why_not
    ),
)
