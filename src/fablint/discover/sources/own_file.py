"""Topology file of fablint: written by the site, or by an earlier `fablint discover -o`."""

from __future__ import annotations

import re
from pathlib import Path

from fablint.discover.facts import Attachment, Facts, Forward, Origin, SwitchFact, Wire
from fablint.discover.sources.source import SavedOutput
from fablint.model import Routing, Topology
from fablint.model.host_name import NicRef
from fablint.topology.file_reader import read_topology

_KEYS = [re.compile(rf'(?:^|[{{,])\s*"?{key}"?\s*:', re.MULTILINE) for key in ("format", "switches", "hosts")]


class OwnFile:
    """YAML or JSON. The only source whose errors are refused, since the file is written for fablint."""

    name = "topology file"
    command: tuple[str, ...] = ()

    def recognises(self, text: str) -> bool:
        return all(key.search(text) for key in _KEYS)

    def read(self, saved: SavedOutput) -> Facts:
        return _facts(read_topology(saved.path or Path(saved.name), saved.text))


def _facts(topology: Topology) -> Facts:
    railed = {end.host for end in topology.nic_switch}
    hosts = {NicRef(host): switch for host, switch in topology.host_switch.items() if host not in railed}
    tables = topology.routing.tables
    return Facts(
        attachments=tuple(
            Attachment(end.host, switch, Origin.FILE, end.device, topology.ports.get((switch, end), ""))
            for end, switch in [*hosts.items(), *topology.nic_switch.items()]
        ),
        wires=tuple(_wires(topology)),
        switches=tuple(SwitchFact(switch.name, Origin.FILE, switch.group) for switch in topology.switches.values()),
        forwards=tuple(Forward(s, host, onward=there) for s, table in tables.items() for host, there in table.items()),
        routing=topology.routing if topology.routing != Routing() else None,
    )


def _wires(topology: Topology) -> list[Wire]:
    """Return the cables; parallel cables get their ports in the order of the file."""
    unused: dict[tuple[str, str], list[str]] = {ends: port.split(",") for ends, port in topology.ports.items()}

    def port(here: str, there: str) -> str:
        ports = unused.get((here, there), [])
        return ports.pop(0) if ports else ""

    return [Wire(c.a, c.b, Origin.FILE, port(c.a, c.b), port(c.b, c.a), c.speed) for c in topology.cables]
