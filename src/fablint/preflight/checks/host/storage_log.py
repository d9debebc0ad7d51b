"""Checks of the kernel log for errors of disks, local file systems and Lustre.

Measurements do not depend on storage, so most events are warnings. A read-only root file system is a failure, because
nothing can be written on the host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fablint.model.preflight_results import Severity
from fablint.preflight.checks.log_checks import PatternCheck
from fablint.preflight.host import Host
from fablint.snapshot.parsers.kernel_log import Event, Grade, Line, Pattern, RecoveryPattern

MOUNTS = "/proc/self/mountinfo"
BLOCK = "/sys/class/block"
_DISK = r"(?P<device>[\w!-]{1,40})"
_READ_ONLY = "file system made read-only"
_SHUT_DOWN = "file system shut down"
_NVME = ("NVMe command without an answer", "NVMe controller down", "NVMe controller disabled")
_GIVEN_UP = ("Removing after probe failure", "Disabling device after reset failure", "Device not ready; aborting")
_LUSTRE = "Lustre"  # in all of its lines
_EVICTIONS = 4  # within a day, each with a restored connection
# Floppies, optical and virtual drives often have no medium; loop devices and RAM disks are not disks.
_NO_DISKS = re.compile(r"(?:fd|sr|loop|ram|zram|nbd)\d")
_REMOVABLE = re.compile(r"\[(sd[a-z]{1,4})\] Attached SCSI removable disk")
_ROOT = re.compile(r"^\d+ \d+ (\d+:\d+) \S+ / ", re.MULTILINE)


class LogStorage(PatternCheck):
    id = "log.storage"
    what = "errors of disks and local file systems"
    rule = (
        "no I/O error, no stalled NVMe controller, no file system made read-only within a day; "
        "the root file system not made read-only within a week"
    )
    severity = Severity.FAIL
    component = "host"
    remedy = "check the disk with smartctl or nvme smart-log; check the file system; replace the disk"
    patterns = (
        # unsupported commands (discard, write zeroes) fail as well, without damage
        Pattern(
            "I/O error, dev ",
            re.compile(rf"I/O error, dev {_DISK}, sector \d+(?!\d| op 0x\w+:\((?:DISCARD|WRITE_ZEROES|WRITE_SAME))"),
            Grade.WARN,
            "I/O error",
        ),
        Pattern(
            " error, dev ",
            re.compile(rf"critical medium error, dev {_DISK}, sector"),
            Grade.WARN,
            "unreadable sector",
        ),
        Pattern(
            "Buffer I/O error on dev",
            re.compile(rf"Buffer I/O error on dev(?:ice)? {_DISK}, logical block"),
            Grade.WARN,
            "buffer I/O error",
        ),
        Pattern(
            " timeout, ",
            re.compile(r"nvme (?P<device>nvme\d{1,4}): I/O .*QID \d+ timeout, (?!completion polled)"),
            Grade.WARN,
            _NVME[0],
        ),
        Pattern(
            "controller is down; will reset",
            re.compile(r"nvme (?P<device>nvme\d{1,4}): controller is down"),
            Grade.WARN,
            _NVME[1],
        ),
        *(
            Pattern(words, re.compile(rf"nvme (?P<device>nvme\d{{1,4}}): {words}"), Grade.WARN, _NVME[2])
            for words in _GIVEN_UP
        ),
        Pattern(
            "EXT4-fs error",
            re.compile(rf"EXT4-fs error \(device {_DISK}\)"),
            Grade.WARN,
            "damaged file system",
        ),
        Pattern(
            "emounting filesystem read-only",
            re.compile(rf"\({_DISK}\): Remounting filesystem read-only"),
            Grade.FAIL,
            _READ_ONLY,
        ),
        Pattern(
            "forced readonly",
            re.compile(
                rf"BTRFS\w*:? (?:info|error|critical|warning) \(device {_DISK}(?::? state \w+)?\):? forced readonly"
            ),
            Grade.FAIL,
            _READ_ONLY,
        ),
        Pattern(
            "Please unmount the filesystem",
            re.compile(rf"XFS \({_DISK}\): Please unmount the filesystem"),
            Grade.FAIL,
            _SHUT_DOWN,
        ),
    )
    endings = (
        RecoveryPattern(
            "default/read/poll queues",
            re.compile(r"nvme (?P<device>nvme\d{1,4}): \d+/\d+/\d+ default/read/poll queues"),
            _NVME,
        ),
        # an administrator may mount it read-only: `re-mounted UUID ro.`, `Opts: ro`
        RecoveryPattern(
            "mounted",
            re.compile(rf"EXT4-fs \({_DISK}\): (?:re-)?mounted\b(?!.* ro\b)"),
            (_READ_ONLY, f"root {_READ_ONLY}"),
        ),
        RecoveryPattern(
            "XFS (",
            re.compile(rf"XFS \({_DISK}\): Ending (?:clean mount|recovery)"),
            (_SHUT_DOWN, f"root {_SHUT_DOWN}"),
        ),
        RecoveryPattern(
            "first mount of filesystem",
            re.compile(rf"BTRFS info \(device {_DISK}\): first mount"),
            (_READ_ONLY, f"root {_READ_ONLY}"),
        ),
    )

    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        found = list(super().events(host, lines))
        if not found:
            return
        attached = host.kernel_log.lines_with(["Attached SCSI removable disk"])
        removable = {match[1] for line in attached if (match := _REMOVABLE.search(line.text))}
        root = _root_disk(host)
        for event in found:
            disk = event.device
            if _NO_DISKS.match(disk) or disk.rstrip("0123456789") in removable:
                yield event._replace(grade=Grade.NOTE)
            elif event.grade is Grade.FAIL and disk != root:
                yield event._replace(grade=Grade.WARN)
            elif event.grade is Grade.FAIL:
                yield event._replace(what=f"root {event.what}")
            else:
                yield event


class LogLustre(PatternCheck):
    id = "log.lustre"
    what = "Lustre servers that evicted the host or do not answer"
    rule = f"no lost connection within a day without a recovery, at most {_EVICTIONS} evictions with one"
    severity = Severity.WARN
    component = "host"
    remedy = "check the network between the host and the servers (lctl ping), and the log of the server"
    patterns = (
        Pattern(
            "client was evicted by ",
            re.compile(r"This client was evicted by (?P<device>[\w.-]{1,80})"),
            Grade.WARN,
            "evicted",
            _EVICTIONS,
        ),
        Pattern(
            " was lost; in progress",
            re.compile(r"Connection to (?P<device>[\w.-]{1,80}-(?:OST|MDT)[0-9a-f]{4}) \(at .{1,80}\) was lost"),
            Grade.WARN,
            "connection lost",
        ),
    )
    endings = (
        RecoveryPattern(
            "Connection restored",
            re.compile(r"(?P<device>[\w.-]{1,80}-(?:OST|MDT)[0-9a-f]{4})-(?:osc|mdc|lwp)\S*: Connection restored"),
        ),
    )

    def lacks(self, host: Host) -> str:
        return "" if host.kernel_log.lines_with([_LUSTRE]) else "no line of Lustre in the log"


def _root_disk(host: Host) -> str:
    """Return the kernel's name of the block device of the root file system; '' if it has none."""
    root = _ROOT.search(host.read(MOUNTS) or "")
    for disk in host.snapshot.names(BLOCK) if root else ():
        if root and host.read(f"{BLOCK}/{disk}/dev") == root[1]:
            return disk
    return ""
