"""Earlier readings of the counters of hosts by preflight: the last one, one of about an hour ago and one of a day ago.

Of each host the last reading is kept, and the first of each hour and of each day, for the last two hours and the last
two days with a reading. However often preflight runs, one reading is old enough to compute a rate from it.
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
from fablint.system.written_files import write_private

if TYPE_CHECKING:
    from fablint.snapshot import Snapshot

_LONGEST_S = 7 * 86400.0  # older readings are not used
_LATEST = 1e11  # seconds since 1970: later times are invalid
_UNITS_S = {"hour": 3600.0, "day": 86400.0}
_OF_UNIT = re.compile(r"(?P<name>[A-Za-z0-9_-]{1,100})\.(?P<unit>hour|day)-(?P<number>\d{1,9})\.gz")


class CounterHistory:
    """Readings of every host as files in a folder; without a folder there are none, and none are written."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def before(self, snapshot: Snapshot) -> Mapping[str, Any] | None:
        """Return the last reading of a host since its boot, None without one: `time` in seconds, `counters` a tree."""
        return _valid(self.document(snapshot.host), snapshot)

    def older(self, snapshot: Snapshot) -> list[Mapping[str, Any]]:
        """Return the readings of about an hour and a day ago that exist."""
        documents = self.documents_before(snapshot.host, snapshot.time)
        return [item for document in documents if (item := _valid(document, snapshot)) is not None]

    def keep(self, snapshots: Iterable[Snapshot]) -> None:
        """Store the last values of all counters of the snapshots, for comparison with later snapshots."""
        for snapshot in snapshots if self._folder else ():
            moment = snapshot.time + snapshot.window_s
            kept = {"time": moment, "identity": _identity(snapshot), "counters": counters_of(snapshot)}
            self.keep_document(snapshot.host, kept)

    def document(self, name: str) -> Mapping[str, Any] | None:
        """Read the last document of a name; None where there is none."""
        return _read(_file(self._folder, name)) if self._folder else None

    def documents_before(self, name: str, moment: float) -> list[Mapping[str, Any]]:
        """Read the first documents of the hour and the day of `moment` (seconds since 1970), and of those before."""
        documents = []
        for unit, length in _UNITS_S.items():
            numbers = sorted(number for number in self._numbers(name, unit) if number <= moment // length)
            for number in numbers[-2:]:
                document = _read(_file(self._folder, name, unit, number)) if self._folder else None
                if document is not None and _time(document) < moment:
                    documents.append(document)
        return documents

    def keep_document(self, name: str, document: Mapping[str, Any]) -> None:
        """Write a document, readable by the user only. A full disk is ignored: only the next comparison lacks it."""
        if self._folder is None:
            return
        octets = gzip.compress(json.dumps(document).encode(), 1)
        with suppress(OSError):
            write_private(_file(self._folder, name), octets)
            for unit, length in _UNITS_S.items():
                kept_numbers, number = self._numbers(name, unit), int(_time(document) // length)
                if number not in kept_numbers:
                    write_private(_file(self._folder, name, unit, number), octets)
                for old in sorted(kept_numbers - {number})[:-1]:
                    _file(self._folder, name, unit, old).unlink(missing_ok=True)

    def _numbers(self, name: str, unit: str) -> set[int]:
        """Return the hours or days since 1970 with a document."""
        return self._listed.get((_plain(name), unit), set())

    @cached_property
    def _listed(self) -> Mapping[tuple[str, str], set[int]]:
        numbers: dict[tuple[str, str], set[int]] = defaultdict(set)
        with suppress(OSError):
            for path in self._folder.iterdir() if self._folder else ():
                if match := _OF_UNIT.fullmatch(path.name):
                    numbers[match["name"], match["unit"]].add(int(match["number"]))
        return numbers


def _read(path: Path) -> Mapping[str, Any] | None:
    try:
        document = json.loads(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _valid(document: Mapping[str, Any] | None, snapshot: Snapshot) -> Mapping[str, Any] | None:
    """Return the document if it is of the same machine since the same boot, and not too old."""
    if document is None or document.get("identity") != _identity(snapshot):
        return None
    return document if 0 < snapshot.time - _time(document) < _LONGEST_S else None


def _time(document: Mapping[str, Any]) -> float:
    moment = document.get("time")
    return float(moment) if isinstance(moment, int | float) and 0 <= moment < _LATEST else 0.0


def _identity(snapshot: Snapshot) -> str:
    """Return what identifies a machine since its boot: hosts of two clusters may share a name."""
    nics = [snapshot.read(f"{NET}/{name}/address") or "" for name in snapshot.names(NET)]
    return " ".join([snapshot.read(BOOT) or "", *sorted(nics)])


def _file(folder: Path, host: str, unit: str = "", number: int = 0) -> Path:
    """Return a path such as `nid001013.gz` or `nid001013.hour-490998.gz`."""
    return folder / (f"{_plain(host)}.{unit}-{number}.gz" if unit else f"{_plain(host)}.gz")


def _plain(host: str) -> str:
    """Host names are untrusted: keep only [A-Za-z0-9_-] in the file name."""
    return re.sub("[^A-Za-z0-9_-]", "_", host)[:100]
