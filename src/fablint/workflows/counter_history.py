"""Counters of hosts as preflight read them before: the last time, about an hour ago and about a day ago.

Of each host the last reading is kept, and the first of each hour and of each day, for two hours and two days in which
there was one. So however often hosts are looked at, there is a reading that is old enough for a rate to be told.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fablint.preflight import counters_of
from fablint.snapshot.host_snapshot import BOOT, NET
from fablint.system import write_private

if TYPE_CHECKING:
    from fablint.snapshot import Snapshot

_LONGEST_S = 7 * 86400.0  # older readings are not compared with
_LATEST = 1e11  # seconds since 1970: later is no time
_UNITS_S = {"hour": 3600.0, "day": 86400.0}
_OF_UNIT = re.compile(r"(?P<name>[A-Za-z0-9_-]{1,100})\.(?P<unit>hour|day)-(?P<number>\d{1,9})\.gz")


class Readings:
    """Readings of every host, files in a folder; without a folder nothing is known and nothing kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def before(self, snapshot: Snapshot) -> Mapping[str, Any] | None:
        """The host's reading of the last time, if it was not booted since: `time` in seconds, `counters` a tree."""
        return _valid(self.document(snapshot.host), snapshot)

    def older(self, snapshot: Snapshot) -> list[Mapping[str, Any]]:
        """The readings of about an hour and a day ago, as far as there are any."""
        known = self.documents_before(snapshot.host, snapshot.time)
        return [one for document in known if (one := _valid(document, snapshot)) is not None]

    def keep(self, snapshots: Iterable[Snapshot]) -> None:
        """All counters as they were read in the end."""
        for snapshot in snapshots if self._folder else ():
            moment = snapshot.time + snapshot.window_s
            kept = {"time": moment, "identity": _identity(snapshot), "counters": counters_of(snapshot)}
            self.keep_document(snapshot.host, kept)

    def document(self, name: str) -> Mapping[str, Any] | None:
        """What was kept under a name the last time; None where there is nothing that can be read."""
        return _read(_file(self._folder, name)) if self._folder else None

    def documents_before(self, name: str, moment: float) -> list[Mapping[str, Any]]:
        """What was kept in the last hour before that of `moment` (seconds since 1970), and in the last day."""
        found = []
        for unit, length in _UNITS_S.items():
            earlier = [number for number in self._numbers(name, unit) if number < moment // length]
            document = _read(_file(self._folder, name, unit, max(earlier))) if self._folder and earlier else None
            if document is not None:
                found.append(document)
        return found

    def keep_document(self, name: str, document: Mapping[str, Any]) -> None:
        """For the same user only. A full disk costs the comparison of the next time, not the result."""
        if self._folder is None:
            return
        octets = gzip.compress(json.dumps(document).encode(), 1)
        with suppress(OSError):
            write_private(_file(self._folder, name), octets)
            for unit, length in _UNITS_S.items():
                known, number = self._numbers(name, unit), int(_time(document) // length)
                if number not in known:
                    write_private(_file(self._folder, name, unit, number), octets)
                for old in sorted(known - {number})[:-1]:
                    _file(self._folder, name, unit, old).unlink(missing_ok=True)

    def _numbers(self, name: str, unit: str) -> set[int]:
        """The hours or days since 1970 of which something is kept."""
        return self._listed.get((_plain(name), unit), set())

    @cached_property
    def _listed(self) -> Mapping[tuple[str, str], set[int]]:
        found: dict[tuple[str, str], set[int]] = defaultdict(set)
        with suppress(OSError):
            for path in self._folder.iterdir() if self._folder else ():
                if match := _OF_UNIT.fullmatch(path.name):
                    found[match["name"], match["unit"]].add(int(match["number"]))
        return found


def _read(path: Path) -> Mapping[str, Any] | None:
    try:
        found = json.loads(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _valid(document: Mapping[str, Any] | None, snapshot: Snapshot) -> Mapping[str, Any] | None:
    """A reading of the same machine since the same boot, that is not too old."""
    if document is None or document.get("identity") != _identity(snapshot):
        return None
    return document if 0 < snapshot.time - _time(document) < _LONGEST_S else None


def _time(document: Mapping[str, Any]) -> float:
    moment = document.get("time")
    return float(moment) if isinstance(moment, int | float) and 0 <= moment < _LATEST else 0.0


def _identity(snapshot: Snapshot) -> str:
    """The same machine since the same boot: hosts of two clusters may share a name."""
    nics = [snapshot.read(f"{NET}/{name}/address") or "" for name in snapshot.names(NET)]
    return " ".join([snapshot.read(BOOT) or "", *sorted(nics)])


def _file(folder: Path, host: str, unit: str = "", number: int = 0) -> Path:
    """`nid001013.gz`, `nid001013.hour-490998.gz`."""
    return folder / (f"{_plain(host)}.{unit}-{number}.gz" if unit else f"{_plain(host)}.gz")


def _plain(host: str) -> str:
    """Names of hosts are data: nothing but letters that mean nothing to a file system."""
    return re.sub("[^A-Za-z0-9_-]", "_", host)[:100]
