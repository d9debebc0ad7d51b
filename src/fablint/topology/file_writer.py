"""Write a topology file: docs/reference/topology-file.md."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

import yaml

from fablint.errors import UsageError
from fablint.model import Topology
from fablint.model.host_name import NicRef
from fablint.topology.file_reader import BITS, FORMAT
from fablint.topology.yaml_file import unfolded_names

WIDTH = 120
_NUMBERED = re.compile(r"(.*?)([0-9]+)([^0-9]*)")  # the last number of a name
_PLAIN = re.compile(r"[A-Za-z0-9_.:-]+")

Numbered = tuple[str, str, int, int]  # text before and after the last number, its digits, and the number


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writer without anchors: equal values are written each time, as a person would."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def write_topology(topology: Topology) -> str:
    """Text of a topology file; `load_topology` returns an equal topology, except for `source` and `inferred`.

    Raises
    ------
    UsageError
        A name cannot be written, such as `a,b`.
    """
    comment = "# inferred by fablint from measured times; no source declared it\n" if topology.inferred else ""
    document = topology_document(topology)
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=WIDTH)
    return f"{comment}{text}"


def topology_document(topology: Topology) -> dict[str, Any]:
    """Topology file as a document for YAML or JSON.

    Raises
    ------
    UsageError
        A name cannot be written, such as `a,b`.
    """
    for name in (*topology.switches, *topology.host_switch):
        _refuse_unwritable(name)
    document: dict[str, Any] = {
        "format": FORMAT,
        "switches": _folded({name: {"group": s.group} if s.group else {} for name, s in topology.switches.items()}),
        "hosts": _folded({host: _place(topology, host, rails) for host, rails in _rails(topology).items()}),
        "links": _links(topology),
    }
    routing = topology.routing
    if routing.kind == "adaptive":
        document["routing"] = {"kind": routing.kind, "minimal_share": routing.minimal_share}
    elif routing.kind == "tables":
        document["forwarding"] = {switch: _table(table) for switch, table in routing.tables.items()}
    elif routing.kind != "shortest":
        document["routing"] = routing.kind
    return document


def _refuse_unwritable(name: str) -> None:
    """Raise UsageError for a name that a node set reads as several names."""
    if _PLAIN.fullmatch(name):
        return
    try:
        literal = unfolded_names(name) == (name,) and NicRef(name).host == name
    except ValueError:
        literal = False
    if not literal or not name.isprintable():
        raise UsageError(f"{name!r} cannot be written to a topology file", "a name must stand for itself in a node set")


def _rails(topology: Topology) -> dict[str, list[NicRef]]:
    """NICs of each host, in order; none where only its switch is known."""
    rails: dict[str, list[NicRef]] = {host: [] for host in topology.host_switch}
    for nic in topology.nic_switch:
        rails[nic.host].append(nic)
    return rails


def _place(topology: Topology, host: str, rails: list[NicRef]) -> Any:
    """Value written for a host: its switch, or its switch and port, or one such value per NIC."""

    def attachment(switch: str, end: str) -> Any:
        port = topology.ports.get((switch, end))
        return {"switch": switch, "port": port} if port else switch

    if not rails:
        return attachment(topology.host_switch[host], host)
    return {nic.device: attachment(topology.nic_switch[nic], nic) for nic in rails}


def _links(topology: Topology) -> list[Any]:
    links: list[Any] = []
    named: set[tuple[str, str]] = set()
    for cable in topology.cables:
        ends = (cable.a, cable.b)
        ports = [topology.ports.get(ends), topology.ports.get(ends[::-1])]
        link: dict[str, Any] = {"ends": [*ends]}
        if any(ports) and ends not in named:
            link["ports"] = ports
            named |= {ends, ends[::-1]}  # parallel cables are listed together
        if cable.speed is not None:
            link["speed"] = f"{cable.speed * 8 / BITS['Gb/s']:.12g} Gb/s"
        links.append(link if len(link) > 1 else [*ends])
    return links


# ------------------------------------------------------------------------------------------------ folded names


def _folded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Copy with neighbours of equal value under one folded name, in the same order: d-mod-k routes by it."""
    folded: dict[str, Any] = {}

    def written(name: str) -> Any:
        """Key by which values are equal; the order of NICs counts, because the first NIC is rail 0."""
        value = values[name]
        return [*value.items()] if isinstance(value, dict) else value

    for _, group in groupby(values, key=written):
        names = [*group]
        value = values[names[0]]
        ported = isinstance(value, dict) and ("port" in value or any(isinstance(v, dict) for v in value.values()))
        for run in [[name] for name in names] if ported else _runs(names):
            folded[_fold(run)] = value
    return folded


def folded_runs(names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield runs of names whose last number counts up by one: the folded name and the names; other names singly."""
    for run in _runs(names):
        yield _fold(run), run


def _runs(names: Iterable[str]) -> Iterator[list[str]]:
    """Yield lists of consecutive names whose last number counts up by one."""
    run: list[str] = []
    before: Numbered | None = None
    for name in names:
        numbered = _numbered(name)
        if run and (before is None or numbered is None or not _follows(before, numbered)):
            yield run
            run = []
        run.append(name)
        before = numbered
    if run:
        yield run


def _numbered(name: str) -> Numbered | None:
    match = _NUMBERED.fullmatch(name)
    return (match[1], match[3], len(match[2]), int(match[2])) if match else None


def _follows(before: Numbered, after: Numbered) -> bool:
    """Tell whether `after` is the next name: equal apart from the number, with as many digits (not `h9`, `h10`)."""
    return after[:3] == before[:3] and after[3] == before[3] + 1


def _fold(run: list[str]) -> str:
    """Folded name: `h00`, or `h[00-07]`."""
    first, last = (_NUMBERED.fullmatch(name) for name in (run[0], run[-1]))
    if len(run) == 1 or first is None or last is None:
        return run[0]
    return f"{first[1]}[{first[2]}-{last[2]}]{first[3]}"


def _table(table: Mapping[str, str]) -> dict[str, str]:
    """Forwarding table with the hosts of each next switch folded; the order of hosts has no meaning."""
    hosts: dict[str, list[str]] = defaultdict(list)
    for host, onward in table.items():
        hosts[onward].append(host)
    folded: dict[str, str] = {}
    for onward, group in hosts.items():
        ranges: dict[tuple[str, str], list[str]] = defaultdict(list)
        for run in _runs(sorted(group)):
            match = _NUMBERED.fullmatch(run[0])
            if match is None:
                folded[run[0]] = onward
                continue
            last = run[-1][len(match[1]) : len(match[1]) + len(match[2])]
            ranges[match[1], match[3]].append(match[2] if len(run) == 1 else f"{match[2]}-{last}")
        for (head, tail), numbers in ranges.items():
            single = len(numbers) == 1 and "-" not in numbers[0]
            folded[f"{head}{numbers[0]}{tail}" if single else f"{head}[{','.join(numbers)}]{tail}"] = onward
    return folded
