"""Lines of the kernel log about the bandwidth of PCI Express that a device has, since Linux 4.17.

Drivers of NICs report it when they load (drivers/pci/pci.c): `63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s
PCIe x8 link at 0000:3a:00.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)`, or what the device is capable of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fablint.snapshot.parsers.kernel_log import BDF, Line

WORD = "available PCIe bandwidth"
_LINE = re.compile(
    rf"{BDF}: (?P<now>\d{{1,6}}\.\d{{1,3}}) Gb/s available PCIe bandwidth"
    r"(?:, limited by .{1,40} link at (?P<at>\S{1,20}) \(capable of (?P<most>\d{1,6}\.\d{1,3}) Gb/s)?"
)


class Bandwidth(NamedTuple):
    """Bandwidth of a device in Gb/s."""

    now: float
    most: float  # of the device
    limited_at: str  # the bridge above the slowest link; '': not limited


def bandwidths(lines: Iterable[Line]) -> Mapping[str, Bandwidth]:
    """Return the last report of each device by its address."""
    result = {}
    for line in lines:
        if match := _LINE.search(line.text):
            now = float(match["now"])
            result[match["device"]] = Bandwidth(now, float(match["most"] or now), match["at"] or "")
    return result
