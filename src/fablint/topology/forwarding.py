"""The part of a topology file that declares how switches choose paths: `routing` and `forwarding`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

from fablint.errors import UsageError
from fablint.model import Cable, Routing, Switch
from fablint.topology.yaml_file import entries, known_name, shown, unfold

KINDS = get_args(get_type_hints(Routing)["kind"])
USUAL_SHARE = 0.4  # of messages on a shortest path, if not declared: suits true shares of 0.25 to 0.9

Tables = dict[str, dict[str, str]]  # switch: {destination host: next switch}


def read_routing(
    path: Path,
    document: dict[str, Any],
    hosts: Mapping[str, str],
    switches: Mapping[str, Switch],
    cables: Iterable[Cable],
) -> Routing:
    """Routing that a topology file declares.

    Parameters
    ----------
    path
        File that error messages name.
    document
        The whole file.
    hosts
        Switch of each host.
    switches, cables
        Switches by name, and cables of the topology.

    Raises
    ------
    UsageError
        An unknown kind of routing, or a forwarding table with an unknown name, without a link or with a routing loop.
    """
    kind, share = _kind(path, document)
    if kind != "tables":
        return Routing(kind=kind, minimal_share=share)
    tables = _tables(path, document, hosts, switches, cables)
    _refuse_routing_loops(path, tables, hosts)
    return Routing(kind="tables", tables=tables)


def _kind(path: Path, document: dict[str, Any]) -> tuple[Any, float]:
    """Kind of routing, and the share of messages that take a shortest path."""
    declared = document.get("routing", "tables" if "forwarding" in document else "shortest")
    properties = declared if isinstance(declared, dict) else {"kind": declared}
    kind = properties.get("kind")
    if kind not in KINDS:
        raise UsageError(f"{path}: routing: {shown(kind)} is not a kind of routing", f"choose from {', '.join(KINDS)}")
    if (kind == "tables") != ("forwarding" in document):
        hint = "kind tables and the key forwarding belong together"
        raise UsageError(f"{path}: routing: {kind}, {_with('forwarding', document)}", hint)
    if set(properties) - ({"kind", "minimal_share"} if kind == "adaptive" else {"kind"}):
        raise UsageError(
            f"{path}: routing: {shown(properties)} is not understood",
            "write a kind, or {kind: adaptive, minimal_share: 0.5}",
        )
    share = properties.get("minimal_share", USUAL_SHARE if kind == "adaptive" else 1.0)
    if not isinstance(share, int | float) or isinstance(share, bool) or not 0 < share <= 1:
        raise UsageError(f"{path}: routing.minimal_share: {shown(share)} is not a share", "write a number from 0 to 1")
    return kind, float(share)


def _with(key: str, document: Mapping[str, Any]) -> str:
    return f"with {key}" if key in document else f"without {key}"


def _tables(
    path: Path,
    document: dict[str, Any],
    hosts: Mapping[str, str],
    switches: Mapping[str, Switch],
    cables: Iterable[Cable],
) -> Tables:
    """Forwarding tables; every name and every hop is checked."""
    neighbours: dict[str, set[str]] = defaultdict(set)
    for cable in cables:
        neighbours[cable.a].add(cable.b)
        neighbours[cable.b].add(cable.a)
    tables: Tables = {}
    for switch, table in entries(path, document, "forwarding"):
        key = f"forwarding.{switch}"
        known_name(path, key, "switch", switch, switches)
        table = {} if table is None else table
        if not isinstance(table, dict):
            raise UsageError(f"{path}: {key}: {shown(table)} is not a table", 'write {"h[00-07]": s2}')
        next_switches = tables[switch] = {}
        for names, next_switch in entries(path, {key: table}, key):
            below = f"{key}.{names}"
            onward = known_name(path, below, "switch", next_switch, switches)
            if onward not in neighbours[switch]:
                raise UsageError(f"{path}: {below}: {switch} has no link to {onward}", "declare it under links")
            for host in unfold(path, below, names):
                known_name(path, below, "host", host, hosts)
                if host in next_switches:
                    raise UsageError(f"{path}: {below}: host {host} is given twice")
                next_switches[host] = onward
    return tables


def _refuse_routing_loops(path: Path, tables: Tables, hosts: Mapping[str, str]) -> None:
    """Raise UsageError unless the entries of each host end at its switch or at a switch without an entry."""
    for switch, table in tables.items():
        for host, away in table.items():
            if hosts[host] == switch:
                raise UsageError(
                    f"{path}: forwarding.{switch}: sends messages for {host} away to {away}",
                    f"{host} is connected to {switch} itself",
                )
    for host, loop in routing_loops(tables, hosts):
        raise UsageError(
            f"{path}: forwarding: messages for {host} are in a routing loop: {loop}", "correct one of these entries"
        )


def routing_loops(tables: Tables, hosts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each host of `hosts` whose entries form a loop, with the first such loop: `s0 > s1 > s0`."""
    onward: dict[str, dict[str, str]] = defaultdict(dict)
    for switch, table in tables.items():
        for host, next_switch in table.items():
            onward[host][switch] = next_switch
    for host in hosts:
        if loop := _first_loop(onward.get(host, {})):
            yield host, loop


def _first_loop(step: Mapping[str, str]) -> str:
    """First loop among next switches by switch (`step`): `s0 > s1 > s0`; '' if there is none."""
    ends: set[str] = set()  # switches whose paths are known to end
    for start in step:
        path: dict[str, None] = {}
        switch: str | None = start
        while switch is not None and switch not in ends:
            if switch in path:
                return " > ".join([*list(path)[list(path).index(switch) :], switch])
            path[switch] = None
            switch = step.get(switch)
        ends.update(path)
    return ""
