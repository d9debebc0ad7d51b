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
_YAML = re.compile(r"""^[\s\-\[{]*["']?topology["']?\s*:\s""", re.MULTILINE)  # a list of topologies, or a single one
_WORD = re.compile(r"(\w+)\s*=\s*(\S+)")
_NAMES = ("switchname", "blockname", "ringname", "torusname")
_LINE_KEYS = frozenset((  # of topology.conf, and of what scontrol prints
    *_NAMES, "switches", "nodes", "linkspeed", "level", "blocksizes", "blocksize", "blocklevels", "blockindex",
    "aggregatedblock", "ringindex", "ringsize", "dims", "placementdims", "anchors",
))  # fmt: skip
_ROWS = {  # of each plugin in topology.yaml: the keys of its rows and of the name of a row
    "tree": ("switches", "switch"),
    "block": ("blocks", "block"),
    "ring": ("rings", "ring"),
    "torus3d": ("toruses", "name"),
}
_PLACE = dict.fromkeys("xyz", str)
# Keys of topology.yaml: a mapping has keys of its own, `str` is a single value, None is not read.
_KEYS: Mapping[str, Any] = {
    "topology": str,
    "cluster_default": str,
    "flat": None,
    "tree": {"switches": dict.fromkeys(("switch", "children", "nodes", "link_speed"), str)},
    "block": {"block_sizes": None, "blocks": {"block": str, "nodes": str}},
    "ring": {"rings": {"ring": str, "nodes": str}},
    "torus3d": {
        "toruses": {
            "name": str,
            "nodes": str,
            "dims": _PLACE,
            "regions": {"anchor": _PLACE, "dims": _PLACE, "nodes": str},
            "placements": {"dims": _PLACE, "anchor_seed": _PLACE, "anchor_spacing": _PLACE},
        }
    },
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
        return _YAML.search(text) is not None

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
    for plugin, (rows, name) in _ROWS.items():
        for row in (row for part in dicts(topology.get(plugin)) for row in dicts(part.get(rows))):
            below = _names(row, "children")
            places = (row, *dicts(row.get("regions")))  # of a torus: boxes of nodes, in place of all its nodes
            hosts = () if below else tuple(host for place in places for host in _names(place, "nodes"))
            yield _Row(str(row.get(name) or ""), hosts, below)


def _names(row: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the names in a node set. A value of another form is reported as a key that is not read."""
    value = row.get(key)
    return unfold(str(value)) if _has_form(value, str) and value is not None else ()


def _unread(topology: Mapping[str, Any], ignored: Collection[str]) -> Iterator[Finding]:
    """Yield a finding for hosts of which another topology counts, and for each plugin and key that is not read."""
    name = str(topology.get("topology", ""))
    if ignored:
        yield _config(name, seen.topology_ignored(name, len(ignored)))
    for plugin, part in topology.items():
        if plugin not in _KEYS:
            yield _config(name, seen.topology_unread(name, str(plugin)))
        elif plugin in _ROWS:
            for key in sorted(set(_unread_keys(part, _KEYS[plugin]))):
                yield _config(name, seen.topology_yaml_key(name, plugin, key))


def _unread_keys(part: object, keys: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys of a part, and of the parts in it, that Slurm does not have or whose values have another form."""
    for key, value in (item for entry in dicts(part) for item in entry.items()):
        if key not in keys or not _has_form(value, keys[key]):
            yield str(key)
        elif isinstance(keys[key], Mapping):
            yield from _unread_keys(value, keys[key])


def _has_form(value: object, form: object) -> bool:
    """Tell whether a value is a single one (`str`), or a mapping or a list of mappings."""
    if isinstance(form, Mapping):
        return all(isinstance(item, dict) for item in (value if isinstance(value, list) else [value]))
    return form is None or not isinstance(value, dict | list)


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
