"""Check of the descriptions of switch ports, into which many sites write the connected host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fablint.model.host_name import HostNames
from fablint.model.preflight_results import Result
from fablint.preflight.check import Check, Judge
from fablint.preflight.class_values import is_clear
from fablint.preflight.fleet import Fleet

_LEAST = 3  # descriptions that name the connected host, for the others to be judged
_MARKS = "()[]<>{}\"',;:|=/@#"  # between words of a description; a host name has none of them


class _Described(NamedTuple):
    """Description of the switch port that a NIC is connected to."""

    host: str
    nic: str
    text: str
    named: frozenset[str]  # hosts of the fleet that the text names

    @property
    def is_right(self) -> bool:
        return self.host in self.named


def _hosts_in(text: str, names: HostNames) -> frozenset[str]:
    """Return the hosts of the fleet that a description names."""
    words = text.translate(dict.fromkeys(map(ord, _MARKS), " ")).split()
    return frozenset(filter(None, map(names.owner, words)))


def _descriptions(check: Check, fleet: Fleet) -> Iterator[Result]:
    names = HostNames((host.name for host in fleet.hosts), complete=True)
    ports = [
        _Described(host.name, neighbour.port, neighbour.description, _hosts_in(neighbour.description, names))
        for host in fleet.hosts
        for neighbour in host.neighbours
        if neighbour.port in host.switch_ports
    ]
    naming = [port for port in ports if port.named]
    right = sum(port.is_right for port in naming)
    described = {port.host for port in naming}
    for host in fleet.hosts:
        if host.name not in described:
            yield check.skip(host.name, "", "no description of a switch port names a host")
    for port in naming:
        if port.is_right:
            yield check.ok(port.host, port.nic, value=port.text)
        elif right < _LEAST or 2 * right <= len(naming):
            yield check.skip(port.host, port.nic, f"described as '{port.text}'; most descriptions name another host")
        else:
            other = min(port.named)
            message = f"its switch port is described as '{port.text}', {right} others name the connected host"
            clear = is_clear(right, len(naming))
            yield check.difference(clear, port.host, port.nic, message, other, port.host)


LLDP_DESCRIPTIONS = Check(
    id="lldp.description",
    what="the host that the description of a switch port names",
    source="lldpcli show neighbors, lldptool -t -n -i NIC: Port Description TLV",
    rule="the connected host, if most descriptions that name a host name the connected one",
    component="cable",
    root=True,
    remedy="move the cable, or correct the description of the port on the switch",
    judge=Judge(_descriptions),
)
