"""Slurm's tree and blocks: `scontrol show topology`, topology.conf, topology.yaml.

Only the switches of the lowest level are switches; higher levels are groups, because they are often names of racks or
of dragonfly groups. Cables are not derived from the tree.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fablint.discover.facts import Attachment, Facts, Origin, SwitchFact, gather
from fablint.discover.sources.source import SavedOutput
from fablint.model import ComponentRef, EvidenceRecord, Finding, State
from fablint.model.names import plain, switch_name, unfold
from fablint.snapshot.parsers.documents import dicts
from fablint.text import evidence as seen

_ROW = re.compile(r"^\s*(?:Switch|Block|Ring|Torus)Name\s*=", re.MULTILINE | re.IGNORECASE)
_WORD = re.compile(r"(\w+)\s*=\s*(\S+)")
_NAMES = ("switchname", "blockname", "ringname", "torusname")
_LINE_KEYS = frozenset((  # of topology.conf, and of what scontrol prints
    *_NAMES, "switches", "nodes", "linkspeed", "level", "blocksizes", "blocksize", "blockindex", "aggregatedblock",
    "ringindex", "ringsize", "dims",
))  # fmt: skip
_PLUGINS = {"tree": "switch", "block": "block", "ring": "ring", "torus3d": "torus"}  # and the key of a row's name
_ABOUT = ("topology", "cluster_default")  # keys of a topology that are no plugin
_PART_KEYS = {"tree": {"switches"}, "block": {"blocks", "block_sizes"}, "ring": {"rings"}}
_ROW_KEYS = {
    "tree": {"switch", "children", "nodes", "link_speed"},
    "block": {"block", "nodes"},
    "ring": {"ring", "nodes"},
}


@dataclass(frozen=True)
class _Row:
    """A switch or a block: the hosts on it, or the switches below it."""

    name: str
    hosts: tuple[str, ...] = ()
    below: tuple[str, ...] = ()


class SlurmTree:
    """Rows of `SwitchName=`, `BlockName=`, `RingName=` or `TorusName=`."""

    name = "scontrol show topology"
    command = ("scontrol", "show", "topology")

    def recognises(self, text: str) -> bool:
        return _ROW.search(text) is not None

    def read(self, saved: SavedOutput) -> Facts:
        lines = [(number, line, _words(line)) for number, line in _lines(saved.text)]
        facts = _facts(_rows(words for _, _, words in lines))
        return replace(facts, findings=tuple(_unread_lines(lines)))


class SlurmYaml:
    """topology.yaml (since Slurm 25.05). Of a host in several topologies the default one, else the first, counts."""

    name = "topology.yaml (Slurm)"
    command: tuple[str, ...] = ()

    def recognises(self, text: str) -> bool:
        return re.search(r"^-\s+topology:", text, re.MULTILINE) is not None

    def read(self, saved: SavedOutput) -> Facts:
        from fablint.topology.yaml_file import loads

        topologies = dicts(loads(saved.name, saved.text))
        placed: set[str] = set()
        facts_of_topologies: list[Facts] = []
        for topology in sorted(topologies, key=lambda topology: topology.get("cluster_default") is not True):
            rows = list(_yaml_rows(topology))
            new = [replace(row, hosts=tuple(host for host in row.hosts if host not in placed)) for row in rows]
            ignored = {host for row in rows for host in row.hosts} & placed
            placed |= {host for row in rows for host in row.hosts}
            facts_of_topologies += [_facts(new), Facts(findings=tuple(_unread(topology, ignored)))]
        return gather(facts_of_topologies)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, with the number of each; a line that ends with a backslash and the next are one."""
    joined, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        first = first or number
        if line.rstrip().endswith("\\"):
            joined += line.rstrip()[:-1]
            continue
        yield first, (joined + line).partition("#")[0]
        joined, first = "", 0
    yield first, joined.partition("#")[0]


def _words(line: str) -> dict[str, str]:
    """Values of a line by their keys, which are case-insensitive."""
    return {key.lower(): value for key, value in _WORD.findall(line)}


def _unread_lines(lines: Iterable[tuple[int, str, Mapping[str, str]]]) -> Iterator[Finding]:
    """Yield a finding for each key that is not read, and for other files that a line includes."""
    places: dict[str, list[int]] = {}
    for number, line, words in lines:
        keys = [key for key in words if key not in _LINE_KEYS]
        for key in [*keys, *(["include"] if line.split()[:1] and line.split()[0].lower() == "include" else [])]:
            places.setdefault(key, []).append(number)
    for key, numbers in places.items():
        yield _config("", seen.topology_key(key, numbers[0], len(numbers)))


def _rows(lines: Iterable[Mapping[str, str]]) -> Iterator[_Row]:
    for words in lines:
        name = next((words[key] for key in _NAMES if key in words), "")
        if name:
            below = unfold(words.get("switches", ""))
            yield _Row(name, () if below else unfold(words.get("nodes", "")), below)


def _yaml_rows(topology: Mapping[str, Any]) -> Iterator[_Row]:
    for plugin, key in _PLUGINS.items():
        part = topology.get(plugin)
        lists = part.values() if isinstance(part, dict) else ()
        for row in (row for rows in lists if isinstance(rows, list) for row in dicts(rows)):
            below = unfold(str(row.get("children") or ""))
            regions = dicts(row.get("regions"))  # of a torus: boxes of nodes, in place of all its nodes
            nodes = [str(place.get("nodes") or "") for place in (row, *regions)]
            hosts = () if below else tuple(host for names in nodes for host in unfold(names))
            yield _Row(str(row.get(key, row.get("name", ""))), hosts, below)


def _unread(topology: Mapping[str, Any], ignored: Collection[str]) -> Iterator[Finding]:
    """Yield a finding for hosts of which another topology counts, and for each plugin that is not known."""
    name = str(topology.get("topology", ""))
    if ignored:
        yield _config(name, seen.topology_ignored(name, len(ignored)))
    for plugin in topology:
        if plugin not in (*_PLUGINS, *_ABOUT, "flat"):
            yield _config(name, seen.topology_unread(name, str(plugin)))
    for plugin in _PART_KEYS:
        for key in _unread_keys(topology.get(plugin), plugin):
            yield _config(name, seen.topology_yaml_key(name, plugin, key))


def _unread_keys(part: object, plugin: str) -> list[str]:
    """Return the keys of a plugin's part, and of its rows, that are not read."""
    entries = part if isinstance(part, dict) else {}
    rows = [row for rows in entries.values() if isinstance(rows, list) for row in dicts(rows)]
    unread = (entries.keys() - _PART_KEYS[plugin]) | ({key for row in rows for key in row} - _ROW_KEYS[plugin])
    return sorted(map(str, unread))


def _config(name: str, evidence: EvidenceRecord) -> Finding:
    component = ComponentRef.of("config", title=f"Slurm topology {name}".rstrip())
    return Finding(state=State.NOT_JUDGED, components=(component,), evidence=(evidence,))


def _facts(rows: Iterable[_Row]) -> Facts:
    named = [row for row in rows if plain(row.name)]
    parents = {below: plain(row.name) for row in reversed(named) for below in row.below}
    leaves = {switch_name(row.name): row for row in named if row.hosts}
    return Facts(
        attachments=tuple(
            Attachment(host, name, Origin.SLURM) for name, row in leaves.items() for host in row.hosts if host != name
        ),
        switches=tuple(
            SwitchFact(name, Origin.SLURM, parents.get(plain(row.name), "")) for name, row in leaves.items()
        ),
    )
