"""Slurm's tree and blocks: `scontrol show topology`, topology.conf, topology.yaml.

Only the switches of the lowest level are switches; higher levels are groups, because they are often names of racks or
of dragonfly groups. Cables are not derived from the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fablint.discover.facts import Attachment, Facts, Origin, SwitchFact
from fablint.discover.sources.source import SavedOutput
from fablint.model.names import plain, switch_name, unfold
from fablint.snapshot.parsers.documents import dicts

_ROW = re.compile(r"^\s*(SwitchName|BlockName)=", re.MULTILINE | re.IGNORECASE)
_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_WORD = re.compile(r"(\w+)=(\S+)")


@dataclass(frozen=True)
class _Row:
    """A switch or a block: the hosts on it, or the switches below it."""

    name: str
    hosts: tuple[str, ...] = ()
    below: tuple[str, ...] = ()


class SlurmTree:
    """Rows of `SwitchName=` or `BlockName=`."""

    name = "scontrol show topology"
    command = ("scontrol", "show", "topology")

    def recognises(self, text: str) -> bool:
        return _ROW.search(text) is not None

    def read(self, saved: SavedOutput) -> Facts:
        return _facts(_rows(saved.text))


class SlurmYaml:
    """Default topology of the cluster in topology.yaml (since Slurm 25.05)."""

    name = "topology.yaml (Slurm)"
    command: tuple[str, ...] = ()

    def recognises(self, text: str) -> bool:
        return re.search(r"^-\s+topology:", text, re.MULTILINE) is not None

    def read(self, saved: SavedOutput) -> Facts:
        from fablint.topology.yaml_file import loads

        topologies = dicts(loads(saved.name, saved.text))
        default = [topology for topology in topologies if topology.get("cluster_default") is True] or topologies
        return _facts(_yaml_rows(default[0])) if default else Facts()


def _rows(text: str) -> Iterator[_Row]:
    for line in _CONTINUED.sub("", text).splitlines():
        words = {key.lower(): value for key, value in _WORD.findall(line.partition("#")[0])}
        name = words.get("switchname") or words.get("blockname")
        if name:
            below = unfold(words.get("switches", ""))
            yield _Row(name, () if below else unfold(words.get("nodes", "")), below)


def _yaml_rows(topology: Mapping[str, Any]) -> Iterator[_Row]:
    for kind, plural in (("switch", "tree"), ("block", "block")):
        part = topology.get(plural)
        for row in dicts(part.get("switches" if kind == "switch" else "blocks") if isinstance(part, dict) else None):
            below = unfold(str(row.get("children") or ""))
            hosts = () if below else unfold(str(row.get("nodes") or ""))
            yield _Row(str(row.get(kind, "")), hosts, below)


def _facts(rows: Iterable[_Row]) -> Facts:
    every = [row for row in rows if plain(row.name)]
    parents = {below: plain(row.name) for row in reversed(every) for below in row.below}
    leaves = {switch_name(row.name): row for row in every if row.hosts}
    return Facts(
        attachments=tuple(
            Attachment(host, name, Origin.SLURM) for name, row in leaves.items() for host in row.hosts if host != name
        ),
        switches=tuple(
            SwitchFact(name, Origin.SLURM, parents.get(plain(row.name), "")) for name, row in leaves.items()
        ),
    )
