"""Snapshot of a host: a tree of files, counters read twice, and outputs of programs.

Checks use the snapshot only, so that a host can be judged elsewhere and later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from operator import getitem
from typing import Any

NET, INFINIBAND, CXI = "/sys/class/net", "/sys/class/infiniband", "/sys/class/cxi"  # folders of devices
BOOT = "/proc/sys/kernel/random/boot_id"
_MOST_DIGITS = 40  # of an integer
Tree = Mapping[str, Any]  # a folder: name -> folder, text, or [reason why it could not be read]


@dataclass(frozen=True, slots=True)
class Output:
    """Output of a program, or the reason why there is none."""

    text: str = ""
    error: str = ""  # `not installed`, `no answer in time`, or its first line on stderr
    status: int | None = None  # None: it did not run to completion

    @property
    def ran(self) -> bool:
        """True if the program ran to completion."""
        return self.status is not None


NOT_RUN = Output(error="not run at this level")


@dataclass(frozen=True)
class Snapshot:
    """State of one host at one time. Paths are absolute, as on the host."""

    host: str
    time: float = 0.0  # seconds since 1970 of the first reading of the counters
    window_s: float = 0.0  # until their second reading
    level: str = "quick"
    root: bool = False  # taken by root
    kernel: str = ""
    files: Tree = field(default_factory=dict)
    counters: Tree = field(default_factory=dict)
    later: Tree = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    commands: Mapping[str, Output] = field(default_factory=dict)
    kernel_log: Output = NOT_RUN
    names_of: Mapping[str, str | None] = field(default_factory=dict)  # own address -> name, None without a name
    addresses_of: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by name, as this host resolves it
    shared_memory: Mapping[str, int] = field(default_factory=dict)  # bytes: `size`, `free`
    nics: Sequence[str] = ()  # NICs of the fabric named by the user; empty: detected
    reach: Mapping[str, Any] = field(default_factory=dict)  # output of the pinger, if it ran; see pinger.py
    _listed: dict[str, Sequence[str]] = field(default_factory=dict, repr=False, compare=False)  # cache of `names`
    _read: _Folders = field(default_factory=lambda: _Folders(), repr=False, compare=False)  # `files`, `counters`
    _counted: _Folders = field(default_factory=lambda: _Folders(), repr=False, compare=False)  # `counters`, `later`
    incomplete: str = ""  # activity at the time limit; empty for a complete snapshot

    def read(self, path: str) -> str | None:
        """Return the text of a file, or of a counter at its first reading; None if there is none."""
        folder, name = _split(path)
        at = self._read
        if folder is not at.folder:
            at.move(folder, self.files)
        result = at.first.get(name)
        if result is None:
            result = at.second(self.counters).get(name)
        return result if isinstance(result, str) else None

    def readings(self, path: str) -> tuple[str | None, str | None]:
        """Return the texts of a counter at both readings."""
        folder, name = _split(path)
        at = self._counted
        if folder is not at.folder:
            at.move(folder, self.counters)
        first, last = at.first.get(name), at.second(self.later).get(name)
        return first if isinstance(first, str) else None, last if isinstance(last, str) else None

    def readings_in(self, path: str) -> tuple[Tree, Tree]:
        """Return a folder of counters at both readings; faster than `readings` for many counters."""
        names = _names(path)
        return _folder(self.counters, names), _folder(self.later, names)

    def read_first(self, path: str) -> str | None:
        """Return the text of a counter at its first reading; None if it was not read."""
        return self.readings(path)[0]

    def read_later(self, path: str) -> str | None:
        """Return the text of a counter at its second reading; None if it was not read."""
        return self.readings(path)[1]

    def why_not(self, path: str) -> str:
        """Return why a file could not be read."""
        result = _at(self.files, path)
        if result is None:
            result = _at(self.counters, path)
        return str(result[0]) if isinstance(result, list) and result else "there is no such file"

    def number(self, path: str) -> int | None:
        """Return the integer in a file, decimal or `0x...`; None for other texts."""
        return integer(self.read(path))

    def names(self, folder: str) -> Sequence[str]:
        """Return the names in a folder, as far as it was read."""
        listed = self.folders.get(folder)
        if listed is None:
            listed = self._listed.get(folder)
        if listed is None:
            read = _at(self.files, folder)
            counted = _at(self.counters, folder)
            entries = {
                *(read if isinstance(read, dict) else ()),
                *(counted if isinstance(counted, dict) else ()),
            }
            listed = self._listed[folder] = sorted(entries)
        return listed

    def folder(self, path: str) -> Tree:
        """Return a folder of files; faster than `read` for many files."""
        result = _at(self.files, path)
        return result if isinstance(result, dict) else {}

    def link(self, path: str) -> str:
        """Return the last component of a symbolic link's target; '' if there is no link."""
        return self.links.get(path, "").rstrip("/").rpartition("/")[2]

    def command(self, name: str) -> Output:
        """Return the output with the collector's name, such as `ip-addr` or `ethtool-i/hsn0`."""
        return self.commands.get(name, NOT_RUN)

    def commands_like(self, name: str) -> Mapping[str, Output]:
        """Return the outputs of a program for several devices, by device: `hsn0` for `ethtool-i/hsn0`."""
        start = f"{name}/"
        return {key.removeprefix(start): value for key, value in self.commands.items() if key.startswith(start)}


def integer(text: str | None) -> int | None:
    """Parse an integer in a file of /sys, decimal or `0x...`; None for other texts."""
    if text is None or len(text) > _MOST_DIGITS:
        return None
    try:
        return int(text, 0)
    except ValueError:
        try:
            return int(text)
        except ValueError:
            return None


class _Folders:
    """Cache of the last folder in two trees, since consecutive reads are mostly in one folder."""

    __slots__ = ("_second", "first", "folder")

    def __init__(self) -> None:
        self.folder: tuple[str, ...] | None = None
        self.first = _NOTHING
        self._second: Tree | None = _NOTHING

    def move(self, folder: tuple[str, ...], tree: Tree) -> None:
        """Find a folder in the first tree; it is empty where there is none."""
        self.folder, self.first, self._second = folder, _folder(tree, folder), None

    def second(self, tree: Tree) -> Tree:
        """Return the same folder of the second tree; it is empty where there is none."""
        folder = self._second
        if folder is None:
            folder = self._second = _folder(tree, self.folder or ())
        return folder


_NOTHING: Tree = {}


def text_in(folder: Tree, name: str) -> str | None:
    """Return the text of a file of a folder; None where there is none."""
    text = folder.get(name)
    return text if isinstance(text, str) else None


def _folder(tree: Tree, names: tuple[str, ...]) -> Tree:
    folder = _down(tree, names)
    return folder if isinstance(folder, dict) else _NOTHING


def _at(tree: Tree, path: str) -> Any:
    """Return the entry at a path: a folder, a text, a list with a reason, or None."""
    folder, name = _split(path)
    return _down(tree, (*folder, name))


def _down(tree: Tree, names: tuple[str, ...]) -> Any:
    try:
        return reduce(getitem, names, tree)
    except (KeyError, TypeError):  # texts and reasons have no entries
        return None


@lru_cache(maxsize=1 << 17)  # the hosts of a fleet have the same paths
def _split(path: str) -> tuple[tuple[str, ...], str]:
    """Split a path into its folders (one object for all paths of a folder) and its last name."""
    *folders, name = path.strip("/").split("/")
    return _same(tuple(folders)), name


@lru_cache(maxsize=1 << 16)
def _names(path: str) -> tuple[str, ...]:
    return tuple(path.strip("/").split("/"))


@lru_cache(maxsize=1 << 16)
def _same(names: tuple[str, ...]) -> tuple[str, ...]:
    return names
