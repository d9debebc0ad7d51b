"""Parsers of Slingshot's tools and of the names of its speeds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fablint.text.sanitise import shortened

LINE_RATES = {  # bits per second on the wire, including the coding
    "CK_400G": 425e9,
    "BS_200G": 212.5e9,
    "CD_100G": 106.25e9,
    "BJ_100G": 103.125e9,
    "CD_50G": 53.125e9,
}
_SPEED = re.compile(r"[A-Z]+_(\d{1,4})G")
_DEVICE = re.compile(r"cxi\d{1,3}")
_RESULT = re.compile(r"Check:\s*(\w{1,60})\s+Result:\s*(Pass|Fail|Skip)\s*$")
_WARNING = re.compile(r"(?:\*{3}\s*Warning|ACTION):\s*(\S.*)")
_SERVICE_DEVICE = re.compile(r"\s*(?:Device\s*:\s*)?(cxi\d{1,3})\b")
_ENABLED = re.compile(r"\s*Enabled\s*:\s*(\w+)")


def nominal_gbit(speed: str | None) -> float | None:
    """Return the nominal speed of a NIC in Gbit/s: 200 for `BS_200G`; None if unknown."""
    match = _SPEED.fullmatch(speed or "")
    return float(match[1]) if match else None


@dataclass
class HealthSummary:
    """Results and warnings of cxi_healthcheck for a NIC."""

    results: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def health_summaries(text: str) -> Mapping[str, HealthSummary]:
    """Return results and warnings of cxi_healthcheck by device; '' for a device without a name."""
    result: dict[str, HealthSummary] = {}
    device = ""
    for line in map(str.strip, text.splitlines()):
        if _DEVICE.fullmatch(line):
            device = line
            result.setdefault(device, HealthSummary())
        elif match := _RESULT.match(line):
            result.setdefault(device, HealthSummary()).results[match[1]] = match[2]
        elif match := _WARNING.match(line):
            result.setdefault(device, HealthSummary()).warnings.append(shortened(match[1], 120))
    return result


def enabled_services(text: str) -> Mapping[str, bool]:
    """Return for each device in an output of cxi_service whether one of its services is enabled."""
    device, result = "", dict[str, bool]()
    for line in text.splitlines():
        if head := _SERVICE_DEVICE.match(line):
            device = head[1]
        elif state := _ENABLED.match(line):
            result[device] = result.get(device, False) or state[1].lower() == "yes"
    return result
