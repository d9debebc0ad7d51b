"""Checks of the kernel log for errors of disks, local file systems, Lustre and NFS.

Measurements do not depend on storage, so most events are warnings. A read-only root file system is a failure, because
nothing can be written on the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fablint.model.preflight_results import Severity
from fablint.preflight.check import Check
from fablint.preflight.host import Host
from fablint.preflight.judges import log_patterns
from fablint.preflight.judges.log_patterns import KERNEL_LOG
from fablint.snapshot.parsers.disk_messages import is_no_disk, removable_disks
from fablint.snapshot.parsers.kernel_log import Event, Grade, Pattern, RecoveryPattern, watch
from fablint.snapshot.parsers.proc_files import root_device

MOUNTS = "/proc/self/mountinfo"
BLOCK = "/sys/class/block"
_DISK = r"(?P<device>[\w!-]{1,40})"
_READ_ONLY = "file system made read-only"
_SHUT_DOWN = "file system shut down"
_NVME = ("NVMe command without an answer", "NVMe controller down", "NVMe controller disabled")
_GIVEN_UP = ("Removing after probe failure", "Disabling device after reset failure", "Device not ready; aborting")
_LUSTRE = "Lustre"  # in all of its lines
_EVICTIONS = 4  # within a day, each with a restored connection


def _on_disks(host: Host, events: Iterable[Event]) -> Iterator[Event]:
    """Return the events with the grade of their disk: the root disk, another disk, or no disk."""
    listed = list(events)
    removable = removable_disks(host.kernel_log) if listed else ()
    root = _root_disk(host) if listed else ""
    for event in listed:
        disk = event.device
        if is_no_disk(disk) or disk.rstrip("0123456789") in removable:
            yield event._replace(grade=Grade.NOTE)
        elif event.grade is Grade.FAIL and disk != root:
            yield event._replace(grade=Grade.WARN)
        elif event.grade is Grade.FAIL:
            yield event._replace(what=f"root {event.what}")
        else:
            yield event


_STORAGE_PATTERNS = (
    # unsupported commands (discard, write zeroes) fail as well, without damage
    Pattern(
        "I/O error, dev ",
        rf"I/O error, dev {_DISK}, sector \d+(?!\d| op 0x\w+:\((?:DISCARD|WRITE_ZEROES|WRITE_SAME))",
        Grade.WARN,
        "I/O error",
    ),
    Pattern(" error, dev ", rf"critical medium error, dev {_DISK}, sector", Grade.WARN, "unreadable sector"),
    Pattern(
        "Buffer I/O error on dev",
        rf"Buffer I/O error on dev(?:ice)? {_DISK}, logical block",
        Grade.WARN,
        "buffer I/O error",
    ),
    Pattern(
        " timeout, ",
        r"nvme (?P<device>nvme\d{1,4}): I/O .*QID \d+ timeout, (?!completion polled)",
        Grade.WARN,
        _NVME[0],
    ),
    Pattern(
        "controller is down; will reset", r"nvme (?P<device>nvme\d{1,4}): controller is down", Grade.WARN, _NVME[1]
    ),
    *(Pattern(words, rf"nvme (?P<device>nvme\d{{1,4}}): {words}", Grade.WARN, _NVME[2]) for words in _GIVEN_UP),
    Pattern("EXT4-fs error", rf"EXT4-fs error \(device {_DISK}\)", Grade.WARN, "damaged file system"),
    Pattern("emounting filesystem read-only", rf"\({_DISK}\): Remounting filesystem read-only", Grade.FAIL, _READ_ONLY),
    Pattern(
        "forced readonly",
        rf"BTRFS\w*:? (?:info|error|critical|warning) \(device {_DISK}(?::? state \w+)?\):? forced readonly",
        Grade.FAIL,
        _READ_ONLY,
    ),
    Pattern(
        "Please unmount the filesystem", rf"XFS \({_DISK}\): Please unmount the filesystem", Grade.FAIL, _SHUT_DOWN
    ),
)
_STORAGE_ENDINGS = (
    RecoveryPattern(
        "default/read/poll queues", r"nvme (?P<device>nvme\d{1,4}): \d+/\d+/\d+ default/read/poll queues", _NVME
    ),
    # an administrator may mount it read-only: `re-mounted UUID ro.`, `Opts: ro`
    RecoveryPattern(
        "mounted", rf"EXT4-fs \({_DISK}\): (?:re-)?mounted\b(?!.* ro\b)", (_READ_ONLY, f"root {_READ_ONLY}")
    ),
    RecoveryPattern("XFS (", rf"XFS \({_DISK}\): Ending (?:clean mount|recovery)", (_SHUT_DOWN, f"root {_SHUT_DOWN}")),
    RecoveryPattern(
        "first mount of filesystem", rf"BTRFS info \(device {_DISK}\): first mount", (_READ_ONLY, f"root {_READ_ONLY}")
    ),
)

LOG_STORAGE = Check(
    id="log.storage",
    what="errors of disks and local file systems",
    source=KERNEL_LOG,
    rule=(
        "no I/O error, no stalled NVMe controller, no file system made read-only within a day; "
        "the root file system not made read-only within a week"
    ),
    severity=Severity.FAIL,
    component="host",
    remedy="check the disk with smartctl or nvme smart-log; check the file system; replace the disk",
    judge=log_patterns(
        _STORAGE_PATTERNS,
        _STORAGE_ENDINGS,
        changed=_on_disks,
    ),
)


_LUSTRE_PATTERNS = (
    Pattern(
        "client was evicted by ",
        r"This client was evicted by (?P<device>[\w.-]{1,80})",
        Grade.WARN,
        "evicted",
        _EVICTIONS,
    ),
    Pattern(
        " was lost; in progress",
        r"Connection to (?P<device>[\w.-]{1,80}-(?:OST|MDT)[0-9a-f]{4}) \(at .{1,80}\) was lost",
        Grade.WARN,
        "connection lost",
    ),
)
_LUSTRE_ENDINGS = (
    RecoveryPattern(
        "Connection restored",
        r"(?P<device>[\w.-]{1,80}-(?:OST|MDT)[0-9a-f]{4})-(?:osc|mdc|lwp)\S*: Connection restored",
    ),
)

watch((_LUSTRE,))
LOG_LUSTRE = Check(
    id="log.lustre",
    what="Lustre servers that evicted the host or do not answer",
    source=KERNEL_LOG,
    rule=f"no lost connection within a day without a recovery, at most {_EVICTIONS} evictions with one",
    component="host",
    remedy="check the network between the host and the servers (lctl ping), and the log of the server",
    judge=log_patterns(
        _LUSTRE_PATTERNS,
        _LUSTRE_ENDINGS,
        lacks=lambda host: "" if host.kernel_log.lines_with([_LUSTRE]) else "no line of Lustre in the log",
    ),
)


_SERVER = r"(?:nfs|lockd): server (?P<device>[\w.:-]{1,80})"
_NFS = ("nfs: server ", "lockd: server ")

LOG_NFS = Check(
    id="log.nfs",
    what="NFS servers that do not answer",
    source=KERNEL_LOG,
    rule="every server that did not answer within a day has answered since",
    component="host",
    remedy="check the network between the host and the server, and the server; unmount what is stale (umount -l)",
    judge=log_patterns(
        [
            Pattern(word, rf"{_SERVER} not responding, (?:still trying|timed out)", Grade.WARN, "no answer")
            for word in _NFS
        ],
        [RecoveryPattern(word, rf"{_SERVER} OK") for word in _NFS],
    ),
)


def _root_disk(host: Host) -> str:
    """Return the kernel's name of the block device of the root file system; '' if it has none."""
    root = root_device(host.read(MOUNTS))
    disks = host.snapshot.names(BLOCK) if root else ()
    return next((disk for disk in disks if host.read(f"{BLOCK}/{disk}/dev") == root), "")
