"""Check of the payload and read request sizes of PCI Express devices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import UniformCheck
from fablint.preflight.checks.host.pcie import NO_DEVICE
from fablint.preflight.checks.outputs import with_reasons, without_answer
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host

_HEAD = re.compile(r"^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ")
_SIZES = re.compile(r"\bMaxPayload (\d{2,5}) bytes, MaxReadReq (\d{2,5}) bytes")


class PcieRequests(UniformCheck):
    id = "pcie.requests"
    what = "the largest payload and the largest read request of every fabric device"
    source = "lspci -vvv, DevCtl: MaxPayload, MaxReadReq"
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "config"
    root = True
    remedy = "use the same BIOS setting (PCIe maximum payload), or set MaxReadReq in the driver; setpci for a test"
    words = "{}"
    absent = "lspci does not show it"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        reasons = {host.name: self._why_not(host) for host in fleet.hosts}
        return with_reasons(super().judge(fleet), self.absent, reasons)

    def _why_not(self, host: Host) -> str:
        """Return why a host has no values."""
        output = host.command("lspci")
        if not host.fabric_devices:
            return NO_DEVICE
        return "lspci shows it to root only" if "<access denied>" in output.text else f"lspci: {without_answer(output)}"

    def values(self, host: Host) -> Mapping[str, Any]:
        output = host.command("lspci")
        sizes = _sizes(output.text) if output.status == 0 else {}
        links = {name: host.snapshot.link(folder) for name, folder in host.fabric_devices.items()}
        return {name: sizes.get(address) for name, address in links.items() if sizes}


@lru_cache(maxsize=64)
def _sizes(text: str) -> Mapping[str, str]:
    """Return `MaxPayload 256, MaxReadReq 4096` by PCI address with domain."""
    found = {}
    for part in re.split(r"\n\s*\n", text):
        head, sizes = _HEAD.match(part), _SIZES.search(part)
        if head and sizes:
            found[f"{head[1] or '0000'}:{head[2]}"] = f"MaxPayload {sizes[1]}, MaxReadReq {sizes[2]}"
    return found
