"""Read a topology file: docs/reference/topology-file.md."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import yaml
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from fablint.errors import UsageError
from fablint.model import Cable, Switch, Topology

FORMAT = 1
_KEYS = ("format", "switches", "hosts", "links")


def load_topology(path: Path) -> Topology:
    """The topology that a file describes.

    Raises UsageError, naming the file and the key, for anything that is not a topology of format 1.
    """
    document = _parse(path)
    _check_format(path, document)
    switches = _switches(path, document)
    return Topology(
        switches=switches,
        host_switch=_hosts(path, document, switches),
        cables=_cables(path, document, switches),
        source=str(path),
    )


class _Loader(yaml.SafeLoader):
    """YAML that refuses a key given twice, where PyYAML keeps the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"'{key_node.value}' is given twice", key_node.start_mark
                )
            seen.add(key_node.value)
        return super().construct_mapping(node, deep)


def _parse(path: Path) -> dict[str, Any]:
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}", "name a topology file") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not a text file") from error
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{path}{line}: {error.problem}", "the file must be YAML") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: not YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(document, dict):
        raise UsageError(f"{path}: not a topology", f"it needs the keys {', '.join(_KEYS)}")
    for key in document:
        if key not in _KEYS:
            raise UsageError(f"{path}: unknown key '{key}'", f"choose from {', '.join(_KEYS)}")
    return document


def _check_format(path: Path, document: dict[str, Any]) -> None:
    number = document.get("format")
    if type(number) is not int or number < 1:
        raise UsageError(f"{path}: format: {number!r} is not a format number", f"write 'format: {FORMAT}'")
    if number > FORMAT:
        raise UsageError(f"{path}: format: {number} is newer than the {FORMAT} known here", "update fablint")


def _switches(path: Path, document: dict[str, Any]) -> dict[str, Switch]:
    switches: dict[str, Switch] = {}
    for name, properties in _entries(path, document, "switches"):
        key = f"switches.{name}"
        properties = {} if properties is None else properties
        if not isinstance(properties, dict) or set(properties) - {"group"}:
            raise UsageError(f"{path}: {key}: {properties!r} does not describe a switch", "write {group: NAME} or {}")
        group = properties.get("group", "")
        if not isinstance(group, str | int):
            raise UsageError(f"{path}: {key}.group: {group!r} is not a name")
        for switch in _unfold(path, key, name):
            if switch in switches:
                raise UsageError(f"{path}: {key}: switch {switch} is given twice")
            switches[switch] = Switch(switch, str(group))
    if not switches:
        raise UsageError(f"{path}: switches: there is none", "a topology needs at least one switch")
    return switches


def _hosts(path: Path, document: dict[str, Any], switches: dict[str, Switch]) -> dict[str, str]:
    hosts: dict[str, str] = {}
    for name, switch in _entries(path, document, "hosts"):
        key = f"hosts.{name}"
        _known(path, key, switch, switches)
        for host in _unfold(path, key, name):
            if host in hosts:
                raise UsageError(f"{path}: {key}: host {host} is on {hosts[host]} already", "a host has one switch")
            if host in switches:
                raise UsageError(f"{path}: {key}: {host} is a switch")
            hosts[host] = str(switch)
    if not hosts:
        raise UsageError(f"{path}: hosts: there is none", "write '\"h[00-07]\": s0'")
    return hosts


def _cables(path: Path, document: dict[str, Any], switches: dict[str, Switch]) -> tuple[Cable, ...]:
    links = document.get("links")
    if links is None:
        return ()
    if not isinstance(links, list):
        raise UsageError(f"{path}: links: {type(links).__name__} is not a list", "write [[s0, s1], ...]")
    cables = []
    for index, ends in enumerate(links):
        key = f"links[{index}]"
        if not isinstance(ends, list) or len(ends) != 2:
            raise UsageError(f"{path}: {key}: {ends!r} is not a pair of switches", "write [s0, s1]")
        for end in ends:
            _known(path, key, end, switches)
        if ends[0] == ends[1]:
            raise UsageError(f"{path}: {key}: joins {ends[0]} to itself", "a link joins two switches")
        cables.append(Cable(str(ends[0]), str(ends[1])))
    return tuple(cables)


def _entries(path: Path, document: dict[str, Any], key: str) -> Iterator[tuple[str, Any]]:
    """Items of a mapping that must be there."""
    mapping = document.get(key)
    if not isinstance(mapping, dict):
        raise UsageError(f"{path}: {key}: missing, or not a mapping", "see the topology file's reference")
    for name, value in mapping.items():
        yield str(name), value


def _known(path: Path, key: str, name: object, switches: dict[str, Switch]) -> None:
    if str(name) not in switches:
        raise UsageError(f"{path}: {key}: unknown switch '{name}'", "declare it under switches")


def _unfold(path: Path, key: str, names: str) -> list[str]:
    """`h[00-07]` as a list. Groups (`@name`) are not looked up: a topology file says the same everywhere."""
    try:
        unfolded = list(NodeSet(names, resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise UsageError(f"{path}: {key}: {error}", "write names as in h[00-07]") from error
    if not unfolded:
        raise UsageError(f"{path}: {key}: an empty name")
    return unfolded
