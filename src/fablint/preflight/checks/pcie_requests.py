"""How large the pieces are in which a device moves data over PCI Express."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from fablint.fitness import Severity
from fablint.preflight.check import UniformCheck
from fablint.preflight.checks.pcie import fabric_devices
from fablint.preflight.host import Host

_HEAD = re.compile(r"^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ")
_SIZES = re.compile(r"\bMaxPayload (\d{2,5}) bytes, MaxReadReq (\d{2,5}) bytes")


class PcieRequests(UniformCheck):
    id = "pcie.requests"
    what = "the largest payload and the largest read request of every fabric device"
    source = "lspci -vvv, DevCtl: MaxPayload, MaxReadReq"
    rule = "as on most like hosts"
    severity = Severity.WARN
    component = "config"
    root = True
    mend = "set the same in the BIOS (PCIe maximum payload), or let the driver set MaxReadReq; setpci for a trial"
    words = "{}"
    absent = "lspci, asked at level full, shows it to root only"

    def values(self, host: Host) -> Mapping[str, Any]:
        said = host.command("lspci")
        sizes = _sizes(said.text) if said.status == 0 else {}
        links = {name: host.snapshot.link(folder) for name, folder in fabric_devices(host).items()}
        return {name: sizes.get(address) for name, address in links.items() if sizes}


@lru_cache(maxsize=64)
def _sizes(text: str) -> Mapping[str, str]:
    """`MaxPayload 256, MaxReadReq 4096` by PCI address with its domain."""
    found = {}
    for part in re.split(r"\n\s*\n", text):
        head, sizes = _HEAD.match(part), _SIZES.search(part)
        if head and sizes:
            found[f"{head[1] or '0000'}:{head[2]}"] = f"MaxPayload {sizes[1]}, MaxReadReq {sizes[2]}"
    return found
