"""The part of a topology file that says how switches choose the way: `routing` and `forwarding`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

from fablint.errors import UsageError
from fablint.model import Cable, Routing, Switch
from fablint.topology.yaml_file import entries, known_name, shown, unfold

KINDS = get_args(get_type_hints(Routing)["kind"])
USUAL_SHARE = 0.4  # of messages on a shortest path, where nobody says: judging is right from 0.25 to 0.9 with it

Tables = dict[str, dict[str, str]]  # switch: {destination host: next switch}


def read_routing(
    path: Path,
    document: dict[str, Any],
    hosts: Mapping[str, str],
    switches: Mapping[str, Switch],
    cables: Iterable[Cable],
) -> Routing:
    """How messages find their way. `hosts` maps each host to its switch."""
    kind, share = _kind(path, document)
    if kind != "tables":
        return Routing(kind=kind, minimal_share=share)
    tables = _tables(path, document, hosts, switches, cables)
    _refuse_circles(path, tables, hosts)
    return Routing(kind="tables", tables=tables)


def _kind(path: Path, document: dict[str, Any]) -> tuple[Any, float]:
    """The kind of routing, and the share of messages that take a shortest path."""
    said = document.get("routing", "tables" if "forwarding" in document else "shortest")
    properties = said if isinstance(said, dict) else {"kind": said}
    kind = properties.get("kind")
    if kind not in KINDS:
        raise UsageError(f"{path}: routing: {shown(kind)} is no kind of routing", f"choose from {', '.join(KINDS)}")
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
    """The forwarding tables, every name and every hop of them checked."""
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
        found = tables[switch] = {}
        for names, next_switch in entries(path, {key: table}, key):
            below = f"{key}.{names}"
            onward = known_name(path, below, "switch", next_switch, switches)
            if onward not in neighbours[switch]:
                raise UsageError(f"{path}: {below}: {switch} has no link to {onward}", "declare it under links")
            for host in unfold(path, below, names):
                known_name(path, below, "host", host, hosts)
                if host in found:
                    raise UsageError(f"{path}: {below}: host {host} is given twice")
                found[host] = onward
    return tables


def _refuse_circles(path: Path, tables: Tables, hosts: Mapping[str, str]) -> None:
    """Whoever follows the entries of a host ends at its switch, or where there is no entry: never where he was."""
    for switch, table in tables.items():
        for host, away in table.items():
            if hosts[host] == switch:
                raise UsageError(
                    f"{path}: forwarding.{switch}: sends messages for {host} away to {away}",
                    f"{host} hangs on {switch} itself",
                )
    for host, circle in circles(tables, hosts):
        raise UsageError(
            f"{path}: forwarding: messages for {host} go in a circle: {circle}", "mend one of these entries"
        )


def circles(tables: Tables, hosts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Hosts of `hosts` whose entries lead back to where one was, each with the way: `s0 > s1 > s0`."""
    onward: dict[str, dict[str, str]] = defaultdict(dict)
    for switch, table in tables.items():
        for host, next_switch in table.items():
            onward[host][switch] = next_switch
    for host in hosts:
        if circle := _circle(onward.get(host, {})):
            yield host, circle


def _circle(step: Mapping[str, str]) -> str:
    """A way in which nobody arrives; empty where there is none. `step`: next switch by switch."""
    ends: set[str] = set()  # switches from which the way is known to end
    for start in step:
        way: dict[str, None] = {}
        here: str | None = start
        while here is not None and here not in ends:
            if here in way:
                return " > ".join([*list(way)[list(way).index(here) :], here])
            way[here] = None
            here = step.get(here)
        ends.update(way)
    return ""
