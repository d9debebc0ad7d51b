"""The kernel log: disks, file systems of the host, and Lustre.

What is measured does not depend on storage: such events warn. Only the file system that the host runs from is an
exception, since nothing can be written there any more.
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
_NVME = ("NVMe command without answer", "NVMe controller down", "NVMe controller given up")
_GIVEN_UP = ("Removing after probe failure", "Disabling device after reset failure", "Device not ready; aborting")
_LUSTRE = "Lustre"  # begins all of its lines
_EVICTIONS = 4  # within a day, although the connection was restored
# Floppies, optical and virtual drives have no medium most of the time, loop devices and RAM disks are files.
_NO_DISKS = re.compile(r"(?:fd|sr|loop|ram|zram|nbd)\d")
_REMOVABLE = re.compile(r"\[(sd[a-z]{1,4})\] Attached SCSI removable disk")
_ROOT = re.compile(r"^\d+ \d+ (\d+:\d+) \S+ / ", re.MULTILINE)


class LogStorage(PatternCheck):
    id = "log.storage"
    what = "errors of disks and local file systems"
    rule = (
        "no I/O error, no hung NVMe controller, no file system made read-only within a day; "
        "the root file system not made read-only within a week"
    )
    severity = Severity.FAIL
    component = "host"
    remedy = "check the disk with smartctl or nvme smart-log; check the file system; replace the disk"
    patterns = (
        # commands that a disk does not know (discard, write zeroes) fail as well, and harm nothing
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
        root = root_disk(host)
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
    what = "servers of Lustre that evicted the host or do not answer"
    rule = f"no connection lost within a day that was not restored, no more than {_EVICTIONS} evictions that ended"
    severity = Severity.WARN
    component = "host"
    remedy = "check the network between the host and the servers (lctl ping), and at the log of the server"
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
        return "" if host.kernel_log.lines_with([_LUSTRE]) else "no sign of Lustre in the log"


def root_disk(host: Host) -> str:
    """The block device of the root file system, as the kernel names it; empty where it has none of its own."""
    root = _ROOT.search(host.read(MOUNTS) or "")
    for disk in host.snapshot.names(BLOCK) if root else ():
        if root and host.read(f"{BLOCK}/{disk}/dev") == root[1]:
            return disk
    return ""
