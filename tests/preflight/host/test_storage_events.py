"""Events of disks and file systems in the kernel log."""

from __future__ import annotations

import pytest
from kernel_log_hosts import ROOT, reported

from fablint.preflight.checks.host.storage_log import LOG_LUSTRE, LOG_NFS, LOG_STORAGE

EXT4 = "EXT4-fs (sda1): Remounting filesystem read-only"
XFS = "XFS (dm-0): Please unmount the filesystem and rectify the problem(s)"
EVICTED = (
    "LustreError: 167-0: scratch-OST000a-osc-ffff8f0d2a0b8000: This client was evicted by scratch-OST000a; "
    "in progress operations using this service will fail."
)
LOST = (
    "Lustre: scratch-OST000a-osc-ffff8f0d2a0b8000: Connection to scratch-OST000a (at 10.1.4.7@o2ib) was lost; "
    "in progress operations using this service will wait for recovery to complete"
)
RESTORED = "Lustre: scratch-OST000a-osc-ffff8f0d2a0b8000: Connection restored to 10.1.4.7@o2ib (at 10.1.4.7@o2ib)"


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        (
            "blk_update_request: I/O error, dev nvme0n1, sector 32776 op 0x1:(WRITE) flags 0x3000 phys_seg 6",
            "WARN nvme0n1",
        ),
        ("I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2", "WARN sda"),
        ("critical medium error, dev sda, sector 98304 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0", "WARN sda"),
        ("Buffer I/O error on dev dm-0, logical block 20639616, async page read", "WARN dm-0"),
        ("nvme nvme0: I/O 258 (I/O Cmd) QID 4 timeout, aborting", "WARN nvme0"),
        ("nvme nvme0: I/O tag 258 (0102) opcode 0x2 (I/O Cmd) QID 4 timeout, reset controller", "WARN nvme0"),
        ("nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10", "WARN nvme0"),
        ("nvme nvme0: Removing after probe failure status: -19", "WARN nvme0"),
        ("EXT4-fs error (device sda1): ext4_get_branch:171: inode #8: block 30343695: invalid block", "WARN sda1"),
        (EXT4, "WARN sda1"),
        ("BTRFS info (device sda1 state EA): forced readonly", "WARN sda1"),
        ("BTRFS info (device sda1: state EA): forced readonly", "WARN sda1"),
        ("BTRFS info (device sda1): forced readonly", "WARN sda1"),
        (XFS, "FAIL dm-0"),
        (EXT4.replace("sda1", "dm-0"), "FAIL dm-0"),
        # what healthy hosts have
        (
            "blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
            "PASS fd0",
        ),
        ("I/O error, dev sr0, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2", "PASS sr0"),
        ("I/O error, dev loop7, sector 0 op 0x1:(WRITE) flags 0x800 phys_seg 0 prio class 0", "PASS loop7"),
        ("I/O error, dev sda, sector 2048 op 0x3:(DISCARD) flags 0x800 phys_seg 1 prio class 0", "PASS"),
        ("critical target error, dev sda, sector 0 op 0x9:(WRITE_ZEROES) flags 0x8000000 phys_seg 0", "PASS"),
        ("nvme nvme0: I/O 5 QID 1 timeout, completion polled", "PASS"),
        ("nvme nvme0: 63/0/0 default/read/poll queues", "PASS"),
        ("nvme nvme0: Shutdown timeout set to 10 seconds", "PASS"),
        ("XFS (dm-0): Ending clean mount", "PASS"),
        (
            "EXT4-fs (sda1): mounted filesystem with ordered data mode. Opts: errors=remount-ro. Quota mode: none.",
            "PASS",
        ),
    ],
)
def test_disks_and_file_systems(line: str, outcome: str) -> None:
    assert reported(LOG_STORAGE, line, files=ROOT) == [outcome]


@pytest.mark.parametrize(
    ("event", "end", "other"),
    [
        (
            "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10",
            "nvme nvme0: 63/0/0 default/read/poll queues",
            "nvme nvme1: 63/0/0 default/read/poll queues",
        ),
        (EXT4, "EXT4-fs (sda1): re-mounted. Opts: (null)", "EXT4-fs (sda1): re-mounted. Opts: ro"),
        (
            EXT4,
            "EXT4-fs (sda1): re-mounted 9a5e1b1c-0b2f-4f0e-9f68-1e6f2b7c9d10 r/w. Quota mode: none.",
            "EXT4-fs (sda1): re-mounted 9a5e1b1c-0b2f-4f0e-9f68-1e6f2b7c9d10 ro. Quota mode: none.",
        ),
        (XFS, "XFS (dm-0): Ending recovery (logdev: internal)", "XFS (dm-1): Ending clean mount"),
    ],
)
def test_a_disk_that_works_again(event: str, end: str, other: str) -> None:
    (before,) = reported(LOG_STORAGE, event, files=ROOT)
    assert before.startswith(("WARN", "FAIL"))
    assert reported(LOG_STORAGE, event, end, files=ROOT) == [f"PASS {before.split()[1]}"]
    assert reported(LOG_STORAGE, event, other, files=ROOT) == [before]
    assert reported(LOG_STORAGE, end, event, files=ROOT) == [before]


def test_a_removable_disk_is_no_disk_of_the_host() -> None:
    error = "I/O error, dev sdb, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"
    attached = "sd 7:0:0:0: [sdb] Attached SCSI {}disk"
    assert reported(LOG_STORAGE, attached.format("removable "), error) == ["PASS sdb"]
    assert reported(LOG_STORAGE, attached.format("removable "), EXT4.replace("sda1", "sdb1")) == ["PASS sdb1"]
    assert reported(LOG_STORAGE, attached.format(""), error) == ["WARN sdb"]


def test_only_the_root_file_system_makes_a_host_unfit() -> None:
    assert reported(LOG_STORAGE, XFS, files=ROOT) == ["FAIL dm-0"]
    assert reported(LOG_STORAGE, XFS) == ["WARN dm-0"], "which one is the root is not known"
    diskless = {**ROOT, "/proc/self/mountinfo": "22 1 0:21 / / rw - overlay overlay rw"}
    assert reported(LOG_STORAGE, XFS, files=diskless) == ["WARN dm-0"]
    assert reported(LOG_STORAGE, XFS, files=ROOT, hours=25) == ["FAIL dm-0"]
    assert reported(LOG_STORAGE, XFS, files=diskless, hours=25) == ["PASS dm-0"]


def test_servers_of_lustre() -> None:
    assert reported(LOG_LUSTRE, LOST) == ["WARN scratch-OST000a"]
    assert reported(LOG_LUSTRE, LOST, RESTORED) == ["PASS scratch-OST000a"]
    assert reported(LOG_LUSTRE, EVICTED) == ["WARN scratch-OST000a"]
    assert reported(LOG_LUSTRE, EVICTED, RESTORED.replace("000a", "000b")) == ["WARN scratch-OST000a"]
    assert reported(LOG_LUSTRE, LOST, EVICTED, RESTORED) == ["PASS scratch-OST000a"]
    assert reported(LOG_LUSTRE, *[EVICTED, RESTORED] * 4) == ["PASS scratch-OST000a"]
    assert reported(LOG_LUSTRE, *[EVICTED, RESTORED] * 5) == ["WARN scratch-OST000a"], "5 evictions within a day"
    assert reported(LOG_LUSTRE, "Lustre: Lustre: Build Version: 2.15.4") == ["PASS"]
    assert reported(LOG_LUSTRE, "usb 1-1: new high-speed USB device number 2") == ["SKIP"]


@pytest.mark.parametrize("server", ["nfs01", "10.2.80.41", "fs-1.example.org", "sr1", "2001:db8::7"])
@pytest.mark.parametrize(
    "words", ["nfs: server {} not responding, still trying", "lockd: server {} not responding, timed out"]
)
def test_servers_of_nfs(words: str, server: str) -> None:
    lost, back = words.format(server), f"{words.partition(':')[0]}: server {server} OK"
    assert reported(LOG_NFS, lost) == [f"WARN {server}"]
    assert reported(LOG_NFS, lost, hours=25) == [f"PASS {server}"]
    assert reported(LOG_NFS, lost, back) == [f"PASS {server}"]
    assert reported(LOG_NFS, lost, back.replace(server, "other")) == [f"WARN {server}"]
    assert reported(LOG_NFS, back, lost) == [f"WARN {server}"]
