"""`lldpcli show neighbors` of a switch or a host, in any of its forms: the device at each cable's other end."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from fablint.discover.facts import Attachment, Facts, Origin, SwitchFact, Wire
from fablint.discover.sources.source import SavedOutput
from fablint.errors import UsageError
from fablint.model import ComponentRef, Endpoint, Finding, State
from fablint.model.names import switch_name
from fablint.snapshot.parsers import ama
from fablint.snapshot.parsers.lldp import Neighbour, local_name, neighbours
from fablint.snapshot.parsers.lldp_forms import lldp_documents
from fablint.text import actions as advise, evidence as seen

_MANAGEMENT = re.compile(r"(eth0|(mgmt|oob|vme|fxp|em|me|ma)-?\d*|mgmteth.*|management[\d/]*)", re.IGNORECASE)
_NIC_OF_HOST = re.compile(r"hsn\d+|en[opsx]\w+")  # no switch has ports of these names
_NIC = re.compile(rf"{_NIC_OF_HOST.pattern}|(ib|eth|mgmt)\d+")


class Lldpcli:
    """Neighbours in lldpd."""

    name = "lldpcli"
    command: tuple[str, ...] = ()  # run on each host for its snapshot

    def recognises(self, text: str) -> bool:
        return any(isinstance(item, dict) and item.keys() & {"lldp", "local-chassis"} for item in lldp_documents(text))

    def read(self, saved: SavedOutput) -> Facts:
        """Read the cables of the device with these neighbours. Raises UsageError if the device is unknown."""
        device = saved.device or local_name(saved.text)
        result = neighbours(saved.text)
        if not result:
            return Facts()
        if not device:
            raise UsageError(
                f"{saved.name}: the output does not name the device that has these neighbours",
                f"use --from NAME={saved.name}, or add the output of `lldpcli -f json0 show chassis`",
            )
        return _wires(switch_name(device), result)


def _wires(device: str, neighbours: list[Neighbour]) -> Facts:
    """Return the cables of a device; the merge of all sources decides whether it is a switch or a host.

    A device whose ports all have names of NICs is a host.
    """
    if all(_NIC.fullmatch(neighbour.port) for neighbour in neighbours):
        return of_host(device, neighbours)
    single, findings = _one_per_port(device, [end for end in neighbours if not _is_managed(end)])
    stations = frozenset(neighbour.name for neighbour in single if _is_host(neighbour))
    return Facts(
        wires=tuple(Wire(device, end.name, Origin.LLDP, end.port, end.its_port) for end in single),
        switches=tuple(_switches(single)),
        stations=stations,
        findings=tuple(findings),
    )


def _is_managed(neighbour: Neighbour) -> bool:
    """Return whether a cable of a switch leads to or from a management port, or to a NIC and not to its host."""
    ports = (neighbour.port, neighbour.its_port if neighbour.bridge else "")
    return neighbour.nic_agent or any(map(_MANAGEMENT.fullmatch, ports))


def _is_host(neighbour: Neighbour) -> bool:
    """Return whether a neighbour is a host: a host with bridges for containers says that it is a bridge."""
    return neighbour.bridge is False or _NIC_OF_HOST.fullmatch(neighbour.its_port) is not None


def of_host(host: str, neighbours: list[Neighbour]) -> Facts:
    """Return the attachments of a host's NICs to the neighbours `neighbours` on them."""
    single, findings = _one_per_port(host, [end for end in neighbours if not end.nic_agent])
    places = [neighbour for neighbour in single if not _is_host(neighbour)]
    return Facts(
        attachments=tuple(
            Attachment(host, switch_name(end.name), Origin.LLDP, end.port, end.its_port, end.address) for end in places
        ),
        switches=tuple(_switches(places)),
        stations=frozenset({host}),
        findings=tuple(findings),
    )


def _one_per_port(device: str, neighbours: list[Neighbour]) -> tuple[list[Neighbour], list[Finding]]:
    """Return one neighbour per port, and a finding for each port with several.

    Several neighbours mean that a device between them forwards LLDP frames; if one of them is a switch, it is kept.
    """
    ports: dict[str, dict[tuple[str, str], Neighbour]] = defaultdict(dict)
    for neighbour in neighbours:
        ports[neighbour.port][neighbour.name, neighbour.its_port] = neighbour
    kept, findings = [], []
    for port, there in ports.items():
        bridges = [neighbour for neighbour in there.values() if neighbour.bridge]
        if len(there) == 1:
            kept += list(there.values())
            continue
        kept += bridges if len(bridges) == 1 else []
        findings.append(
            Finding(
                state=State.SUSPECT,
                components=(ComponentRef.of("config", Endpoint(nodes=(device,), part=port)),),
                evidence=(seen.several_devices(len(there), tuple(end.name for end in there.values())),),
                next_step=advise.check_cable_end(),
            )
        )
    return kept, findings


def _switches(neighbours: list[Neighbour]) -> Iterator[SwitchFact]:
    """Yield the switches among neighbours; an algorithmic address contains the group and number of the switch."""
    for neighbour in neighbours:
        if _is_host(neighbour):
            continue
        place = ama.decode(neighbour.address)
        if place and neighbour.address[3:5] == "fe":
            yield SwitchFact(switch_name(neighbour.name), Origin.LLDP, place.group_name, place.switch_name)
        elif neighbour.bridge:
            yield SwitchFact(switch_name(neighbour.name), Origin.LLDP)
