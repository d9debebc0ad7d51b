"""Names of block devices, and messages of the kernel about removable disks."""

from __future__ import annotations

import re
from collections.abc import Collection

from fablint.snapshot.parsers.kernel_log import KernelLog

# Floppies, optical and virtual drives often have no medium; loop devices and RAM disks are not disks.
_NO_DISKS = re.compile(r"(?:fd|sr|loop|ram|zram|nbd)\d")
_REMOVABLE = re.compile(r"\[(sd[a-z]{1,4})\] Attached SCSI removable disk")


def is_no_disk(device: str) -> bool:
    """Tell whether a block device is not a disk, or often has no medium."""
    return _NO_DISKS.match(device) is not None


def removable_disks(log: KernelLog) -> Collection[str]:
    """Return the disks that can be removed from their drive."""
    lines = log.lines_with(["Attached SCSI removable disk"])
    return {match[1] for line in lines if (match := _REMOVABLE.search(line.text))}
