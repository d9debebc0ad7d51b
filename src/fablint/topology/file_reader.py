"""Read a topology file: docs/reference/topology-file.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fablint.errors import UsageError
from fablint.model import Cable, Switch, Topology
from fablint.model.host_name import NicRef
from fablint.topology.forwarding import read_routing
from fablint.topology.yaml_file import check_format, entries, known_name, mapping_of, read_text, shown, unfold

FORMAT = 1
KEYS = ("format", "switches", "hosts", "links", "routing", "forwarding")
LINK = ("ends", "ports", "speed")  # keys of a link
BITS = {"Mb/s": 1e6, "Gb/s": 1e9, "Tb/s": 1e12}
_SPEED = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) ?([MGT]b/s)")
ATTACHMENT = ("switch", "port")  # keys that distinguish one attachment from a mapping of NICs to attachments


@dataclass
class _Draft:
    """Contents of the file as far as they have been read."""

    path: Path
    switches: dict[str, Switch] = field(default_factory=dict)
    host_switch: dict[str, str] = field(default_factory=dict)
    nic_switch: dict[NicRef, str] = field(default_factory=dict)
    cables: list[Cable] = field(default_factory=list)
    ports: dict[tuple[str, str], str] = field(default_factory=dict)
    occupied: dict[tuple[str, str], str] = field(default_factory=dict)  # (switch, port): end of the cable in it


def load_topology(path: Path) -> Topology:
    """Read a topology file in YAML or JSON.

    Raises
    ------
    UsageError
        The file is not a topology of format 1; the message names the file and the key.
    """
    return read_topology(path, read_text(path, "topology", KEYS))


def read_topology(path: Path, text: str) -> Topology:
    """Read a topology from the text of a file.

    Parameters
    ----------
    path
        File that error messages name.
    text
        YAML or JSON.

    Raises
    ------
    UsageError
        The text is not a topology of format 1; the message names the file and the key.
    """
    document = mapping_of(path, text, "topology", KEYS)
    check_format(path, document, FORMAT)
    draft = _Draft(path)
    _switches(draft, document)
    _hosts(draft, document)
    _cables(draft, document)
    return Topology(
        switches=draft.switches,
        host_switch=draft.host_switch,
        cables=tuple(draft.cables),
        source=str(path),
        routing=read_routing(path, document, draft.host_switch, draft.switches, draft.cables),
        nic_switch=draft.nic_switch,
        ports=draft.ports,
    )


def _switches(draft: _Draft, document: dict[str, Any]) -> None:
    path = draft.path
    for name, properties in entries(path, document, "switches"):
        key = f"switches.{name}"
        properties = {} if properties is None else properties
        if not isinstance(properties, dict) or set(properties) - {"group"}:
            raise UsageError(f"{path}: {key}: {shown(properties)} does not describe a switch", "write {group: NAME}")
        group = properties.get("group", "")
        if not isinstance(group, str | int):
            raise UsageError(f"{path}: {key}.group: {shown(group)} is not a name")
        for switch in unfold(path, key, name):
            if switch in draft.switches:
                raise UsageError(f"{path}: {key}: switch {switch} is given twice")
            draft.switches[switch] = Switch(switch, str(group))
    if not draft.switches:
        raise UsageError(f"{path}: switches: the list is empty", "a topology needs at least one switch")


# ------------------------------------------------------------------------------------------------ hosts


def _hosts(draft: _Draft, document: dict[str, Any]) -> None:
    path = draft.path
    for name, value in entries(path, document, "hosts"):
        key = f"hosts.{name}"
        attachments = list(_attachments(draft, key, value))
        hosts = unfold(path, key, name)
        if len(hosts) > 1 and any(port for _, _, port in attachments):
            raise UsageError(f"{path}: {key}: one port for {len(hosts)} hosts", "name each host with its own port")
        for host in hosts:
            _check_host(draft, key, host)
            draft.host_switch[host] = attachments[0][1]
            for nic, switch, port in attachments:
                end = NicRef.of(host, nic)
                if nic:
                    draft.nic_switch[end] = switch
                _plug(draft, key, switch, end, port)
    if not draft.host_switch:
        raise UsageError(f"{path}: hosts: the list is empty", "write '\"h[00-07]\": s0'")


def _check_host(draft: _Draft, key: str, host: str) -> None:
    if host in draft.host_switch:
        hint = "a host has one switch; name its NICs if it has several: {nic0: s0, nic1: s1}"
        raise UsageError(f"{draft.path}: {key}: host {host} is on {draft.host_switch[host]} already", hint)
    if host in draft.switches:
        raise UsageError(f"{draft.path}: {key}: {host} is a switch")
    if NicRef(host).host != host:
        raise UsageError(f"{draft.path}: {key}: {host} is not a host name", "a NIC is written as {NIC: SWITCH}")


def _attachments(draft: _Draft, key: str, value: object) -> Iterator[tuple[str, str, str]]:
    """NIC, switch and port of each cable of a host; an empty NIC or port where the file does not say.

    `s0`, `{switch: s0, port: 12}`, or a mapping of NICs to either of these.
    """
    if not isinstance(value, dict):
        yield "", known_name(draft.path, key, "switch", value, draft.switches), ""
    elif "switch" in value:
        if set(value) - set(ATTACHMENT):
            raise UsageError(
                f"{draft.path}: {key}: {shown(value)} is not an attachment", "write {switch: NAME, port: NAME}"
            )
        switch = known_name(draft.path, f"{key}.switch", "switch", value["switch"], draft.switches)
        yield "", switch, _port(draft, f"{key}.port", value.get("port"))
    else:
        yield from _rails(draft, key, value)


def _rails(draft: _Draft, key: str, value: Mapping[object, object]) -> Iterator[tuple[str, str, str]]:
    """The attachments of the NICs of a host, the first of them its rail 0."""
    if not value or "port" in value:
        raise UsageError(f"{draft.path}: {key}: {shown(value)} names no switch", "write {switch: NAME, port: NAME}")
    seen = set()
    for names, place in value.items():
        below = f"{key}.{names}"
        if isinstance(place, dict) and "switch" not in place:
            raise UsageError(f"{draft.path}: {below}: {shown(place)} names no switch", "write {switch: NAME}")
        ((_, switch, port),) = _attachments(draft, below, place)
        nics = unfold(draft.path, below, str(names))
        if port and len(nics) > 1:
            raise UsageError(f"{draft.path}: {below}: one port for {len(nics)} NICs", "name each NIC with its own port")
        for nic in nics:
            if nic in seen or nic in ATTACHMENT:
                why = "is given twice" if nic in seen else "is not a NIC"
                raise UsageError(f"{draft.path}: {below}: {nic} {why}")
            seen.add(nic)
            yield nic, switch, port


# ------------------------------------------------------------------------------------------------ cables


def _cables(draft: _Draft, document: dict[str, Any]) -> None:
    path = draft.path
    links = document.get("links")
    if links is None:
        return
    if not isinstance(links, list):
        raise UsageError(f"{path}: links: {type(links).__name__} is not a list", "write [[s0, s1], ...]")
    for index, link in enumerate(links):
        key = f"links[{index}]"
        ends, ports, speed = _ends(path, key, link)
        a, b = (known_name(path, key, "switch", end, draft.switches) for end in ends)
        if a == b:
            raise UsageError(f"{path}: {key}: joins {a} to itself", "a link joins two switches")
        draft.cables.append(Cable(a, b, _speed(path, f"{key}.speed", speed)))
        for near, far, port in ((a, b, ports[0]), (b, a, ports[1])):
            _plug(draft, key, near, far, _port(draft, f"{key}.ports", port))


def _ends(path: Path, key: str, link: object) -> tuple[list[object], list[object], object]:
    """Both switches of a link, its port on each, and its speed: `[s0, s1]` or a mapping with the keys `LINK`."""
    ends: object = link
    ports: object = [None, None]
    speed: object = None
    if isinstance(link, dict):
        if set(link) - set(LINK):
            raise UsageError(f"{path}: {key}: {shown(link)} is not a link", "write {ends: [s0, s1], ports: [17, 4]}")
        ends, ports, speed = link.get("ends"), link.get("ports", ports), link.get("speed")
    if not isinstance(ends, list) or len(ends) != 2:
        raise UsageError(f"{path}: {key}: {shown(ends)} is not a pair of switches", "write [s0, s1]")
    if not isinstance(ports, list) or len(ports) != 2:
        raise UsageError(f"{path}: {key}.ports: {shown(ports)} is not a port at each end", "write [17, 4]")
    return ends, ports, speed


def _speed(path: Path, key: str, value: object) -> float | None:
    """Bytes/s of a cable in each direction; None where the file does not say."""
    if value is None:
        return None
    match = _SPEED.fullmatch(value) if isinstance(value, str) else None
    if match is None or not float(match[1]):
        raise UsageError(f"{path}: {key}: {shown(value)} is not the speed of a cable", "write 200 Gb/s")
    return float(match[1]) * BITS[match[2]] / 8


def _port(draft: _Draft, key: str, port: object) -> str:
    """Name of a port; empty where the file does not say."""
    if port is None:
        return ""
    if not isinstance(port, str | int) or isinstance(port, bool) or not str(port) or not str(port).isprintable():
        raise UsageError(f"{draft.path}: {key}: {shown(port)} is not the name of a port", "write a name or a number")
    return str(port)


def _plug(draft: _Draft, key: str, switch: str, end: str, port: str) -> None:
    """Record the end of a cable in a port. The ports of parallel cables are listed together: `17,18`."""
    if not port:
        return
    if (switch, port) in draft.occupied:
        occupant = draft.occupied[switch, port]
        raise UsageError(f"{draft.path}: {key}: port {port} of {switch} has {occupant} on it already")
    draft.occupied[switch, port] = end
    before = draft.ports.get((switch, end))
    draft.ports[switch, end] = f"{before},{port}" if before else port
