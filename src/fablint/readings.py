"""Counters of hosts as preflight read them the last time: what has grown since is told, never a total."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fablint.preflight import counters_of
from fablint.system import write_private

if TYPE_CHECKING:
    from fablint.snapshot import Snapshot

_LONGEST_S = 7 * 86400.0  # older readings are not compared with
_BOOT = "/proc/sys/kernel/random/boot_id"


class Readings:
    """The last reading of every host, a file each in a folder; without a folder nothing is known and nothing kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def before(self, snapshot: Snapshot) -> Mapping[str, Any] | None:
        """The host's reading of the last time, if it was not booted since: `time` in seconds, `counters` a tree."""
        found = self.document(snapshot.host)
        if found is None or found.get("identity") != _identity(snapshot):
            return None
        age = snapshot.time - found["time"] if isinstance(found.get("time"), int | float) else 0.0
        return found if 0 < age < _LONGEST_S else None

    def keep(self, snapshots: Iterable[Snapshot]) -> None:
        """The last reading of all counters."""
        for snapshot in snapshots if self._folder else ():
            moment = snapshot.time + snapshot.window_s
            kept = {"time": moment, "identity": _identity(snapshot), "counters": counters_of(snapshot)}
            self.keep_document(snapshot.host, kept)

    def document(self, name: str) -> Mapping[str, Any] | None:
        """What was kept under a name; None where there is nothing that can be read."""
        if self._folder is None:
            return None
        try:
            found = json.loads(gzip.decompress(_file(self._folder, name).read_bytes()))
        except (OSError, EOFError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def keep_document(self, name: str, document: Mapping[str, Any]) -> None:
        """For the same user only. A full disk costs the comparison of the next time, not the result."""
        if self._folder is None:
            return
        with suppress(OSError):
            write_private(_file(self._folder, name), gzip.compress(json.dumps(document).encode(), 1))


def _identity(snapshot: Snapshot) -> str:
    """The same machine since the same boot: hosts of two clusters may share a name."""
    nics = [snapshot.read(f"/sys/class/net/{name}/address") or "" for name in snapshot.names("/sys/class/net")]
    return " ".join([snapshot.read(_BOOT) or "", *sorted(nics)])


def _file(folder: Path, host: str) -> Path:
    """Names of hosts are data: nothing but letters that mean nothing to a file system."""
    return folder / f"{re.sub('[^A-Za-z0-9_-]', '_', host)[:100]}.gz"
