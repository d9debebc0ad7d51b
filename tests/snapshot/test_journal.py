"""The kernel log from the journal, and the root file system, as the collector takes them."""

from __future__ import annotations

import json
from pathlib import Path

from fablint.snapshot.agent import collector
from fablint.snapshot.agent.journal import MOST_RECORDS
from fablint.snapshot.agent.log_records import LOG_LETTERS
from fablint.snapshot.collecting import snapshot_of
from fablint.snapshot.host_snapshot import Snapshot

MOUNTS = """\
23 30 0:21 / /proc rw,nosuid,nodev,noexec,relatime shared:5 - proc proc rw
30 1 253:0 / / rw,relatime shared:1 - xfs /dev/mapper/rl-root rw,seclabel,attr2,inode64
45 30 0:40 / /mnt rw,relatime shared:9 - cifs //nas/home rw,username=anna
"""


def taken(root: Path, **files: str) -> Snapshot:
    """What the collector takes of a tree of these files."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return snapshot_of(collector.snapshot("quick", 0.0, 60.0, str(root)))


def record(text: object, moment: object = "9000000", priority: str = "3") -> str:
    """A line of `journalctl -k -o json`, as systemd.journal-fields(7) and its JSON format describe it."""
    known = {"__CURSOR": "s=1;i=2", "PRIORITY": priority, "_SOURCE_MONOTONIC_TIMESTAMP": moment, "MESSAGE": text}
    return json.dumps(known)


def test_the_journal_is_read_where_the_log_cannot_be(tmp_path: Path) -> None:
    lines = (
        record("Linux version 6.8.0", "0", "5"),
        record([77, 67, 69, 255], "1500000"),  # octets that are not UTF-8
        record("two\nlines", "2000000"),
        record("without a time", None),
        '{"PRIORITY":"3","MESSAGE":"cut o',
        "[]",
        record(None),
        record("the last", "123456789012", "6"),
    )
    log = taken(tmp_path, **{"commands/journalctl": "\n".join(lines)}).kernel_log
    assert log.ran
    assert log.text.splitlines() == [
        "<5>[    0.000000] Linux version 6.8.0",
        "<3>[    1.500000] MCE�",
        "<3>[    2.000000] two",
        "<6>[123456.789012] the last",
    ]


def test_an_empty_journal_is_no_log(tmp_path: Path) -> None:
    """A user without access to the journal: journalctl prints nothing and does not fail."""
    log = taken(tmp_path, **{"commands/journalctl": ""}).kernel_log
    assert not log.ran
    assert log.error


def test_the_log_is_preferred_to_the_journal(tmp_path: Path) -> None:
    log = taken(tmp_path, **{"var/log/dmesg": "<6>[    1.0] own", "commands/journalctl": record("of the journal")})
    assert log.kernel_log.text == "<6>[    1.0] own"


def test_of_a_long_journal_the_end_and_its_errors_are_kept(tmp_path: Path) -> None:
    flood = [record(f"news {number} {'x' * 60}", str(number * 1000), "6") for number in range(MOST_RECORDS)]
    log = taken(tmp_path, **{"commands/journalctl": "\n".join([record("an early error", "1"), *flood])}).kernel_log
    assert "an early error" in log.text
    assert f"news {MOST_RECORDS - 1} " in log.text
    assert len(log.text) <= LOG_LETTERS


def test_only_the_root_of_the_mounts_is_kept(tmp_path: Path) -> None:
    snapshot = taken(tmp_path, **{"proc/self/mountinfo": MOUNTS, "sys/class/block/dm-0/dev": "253:0\n"})
    assert snapshot.read("/proc/self/mountinfo") == MOUNTS.splitlines()[1]
    assert snapshot.read("/sys/class/block/dm-0/dev") == "253:0"
    assert taken(tmp_path, **{"proc/self/mountinfo": "garbage"}).read("/proc/self/mountinfo") is None
