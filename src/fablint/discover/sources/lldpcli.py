"""`lldpcli -f json0 show neighbors` (and `-f json`) of a switch or a host: who is at the other end of each cable."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fablint.discover import ama
from fablint.discover.facts import Attachment, Expected, Facts, SwitchFact, Told, Wire
from fablint.discover.names import fold, plain, switch_name
from fablint.discover.sources.slingshot_tlv import OUI, expectation
from fablint.discover.sources.source import Saved, dicts, documents
from fablint.errors import UsageError
from fablint.model import Finding, State

INTERFACE = re.compile(r"Interface\s+\d+\s+as\s+(\S+)")  # as Slingshot switches describe a port

_NIC = re.compile(r"(hsn|ib|eth)\d+|en[opsx]\w+|mgmt\d+")


@dataclass(frozen=True)
class Neighbour:
    """What a device heard on one of its ports."""

    port: str  # of ours
    name: str  # of the other device
    its_port: str
    address: str = ""  # MAC of the other's port
    bridge: bool | None = None  # does it say that it is a switch? None: it says nothing
    tlv: str = ""  # Slingshot's own, hexadecimal


class Lldpcli:
    """Neighbours as lldpd knows them."""

    name = "lldpcli"
    command: tuple[str, ...] = ()  # the probe asks, on each host

    def recognises(self, text: str) -> bool:
        return text.lstrip()[:1] == "{" and any(
            isinstance(item, dict) and ("lldp" in item or "local-chassis" in item) for item in documents(text)
        )

    def read(self, saved: Saved) -> Facts:
        """Cables of the device that heard these neighbours. Raises UsageError where nobody says which one that is."""
        device = saved.device or local_name(saved.text)
        heard = neighbours(saved.text)
        if not heard:
            return Facts()
        if not device:
            raise UsageError(
                f"{saved.name}: it does not say whose neighbours these are",
                f"write --from NAME={saved.name}, or add the output of `lldpcli -f json0 show chassis`",
            )
        return wires(switch_name(device), heard)


def neighbours(text: str) -> list[Neighbour]:
    """All neighbours in an output of lldpcli, of either shape; none where there is none."""
    found = []
    for document in documents(text):
        for top in dicts(document.get("lldp") if isinstance(document, dict) else None):
            found += [_neighbour(port, entry) for port, entry in _interfaces(top.get("interface")) if "via" in entry]
    return [neighbour for neighbour in found if neighbour.port and neighbour.name]


def local_name(text: str) -> str:
    """The name of the device itself, where its output has it (`show chassis`, `show interfaces`)."""
    for document in documents(text):
        if not isinstance(document, dict):
            continue
        for top in dicts(document.get("local-chassis")):
            for chassis in dicts(top.get("chassis")):
                if name := _chassis_name(chassis):
                    return name
        for top in dicts(document.get("lldp")):
            for _, entry in _interfaces(top.get("interface")):
                if "status" in entry and "via" not in entry:
                    return next(filter(None, map(_chassis_name, dicts(entry.get("chassis")))), "")
    return ""


def wires(device: str, heard: list[Neighbour]) -> Facts:
    """The cables of a device; whether it is a switch or a host is settled when all sources are merged.

    One all of whose ports bear the names of NICs is a host.
    """
    if all(_NIC.fullmatch(neighbour.port) for neighbour in heard):
        return of_host(device, heard)
    single, findings = one_per_port(device, heard)
    stations = frozenset(neighbour.name for neighbour in single if neighbour.bridge is False)
    return Facts(
        wires=tuple(Wire(device, one.name, Told.LLDP, one.port, one.its_port) for one in single),
        switches=tuple(_switches(single)),
        stations=stations,
        findings=tuple(findings),
    )


def of_host(host: str, heard: list[Neighbour]) -> Facts:
    """Where the NICs of a host hang."""
    single, findings = one_per_port(host, heard)
    places = [neighbour for neighbour in single if neighbour.bridge is not False]
    expected = [expectation(host, one.port, one.tlv) for one in places if one.tlv]
    return Facts(
        attachments=tuple(
            Attachment(host, switch_name(one.name), Told.LLDP, one.port, one.its_port, one.address) for one in places
        ),
        switches=tuple(_switches(places)),
        stations=frozenset({host}),
        expected=tuple(one for one in expected if isinstance(one, Expected)),
        findings=tuple(findings),
    )


def one_per_port(device: str, heard: list[Neighbour]) -> tuple[list[Neighbour], list[Finding]]:
    """One neighbour for each port. Several mean that something between them hears no LLDP; a lone switch is kept."""
    ports: dict[str, dict[tuple[str, str], Neighbour]] = defaultdict(dict)
    for neighbour in heard:
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
                component="config",
                name=f"{device}/{port}",
                evidence=f"LLDP hears {len(there)} devices on one port ({fold(one.name for one in there.values())}): "
                "something between them is no LLDP switch, or passes LLDP on",
                next_step="look what the cable is plugged into",
            )
        )
    return kept, findings


def _switches(heard: list[Neighbour]) -> Iterator[SwitchFact]:
    """The switches among neighbours; an algorithmic address tells the group and the number of one."""
    for neighbour in heard:
        if neighbour.bridge is False:
            continue
        place = ama.decode(neighbour.address)
        if place and neighbour.address[3:5] == "fe":
            yield SwitchFact(switch_name(neighbour.name), Told.LLDP, place.group_name, place.switch_name)
        elif neighbour.bridge:
            yield SwitchFact(switch_name(neighbour.name), Told.LLDP)


# ------------------------------------------------------------------------------------------------ the two shapes


def _interfaces(value: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and entry of each: json0 has the name inside, json around it."""
    for item in dicts(value):
        if isinstance(item.get("name"), str):
            yield item["name"], item
        else:
            yield from ((str(name), entry) for name, entry in item.items() if isinstance(entry, dict))


def _neighbour(port: str, entry: dict[str, Any]) -> Neighbour:
    chassis = next(iter(dicts(entry.get("chassis"))), {})
    inner = _inner(chassis)
    its = next(iter(dicts(entry.get("port"))), {})
    kind, identity = _id(its)
    described = INTERFACE.search(_value(its.get("descr")))
    name = described[1] if described else _value(its.get("descr")) if kind == "mac" else identity
    return Neighbour(
        port=plain(port),
        name=plain(_chassis_name(chassis) or _id(inner)[1]),
        its_port=plain(name or identity),
        address=identity.lower() if kind == "mac" else "",
        bridge=_is_bridge(inner.get("capability")),
        tlv=_tlv(entry.get("unknown-tlvs")),
    )


def _inner(chassis: dict[str, Any]) -> dict[str, Any]:
    """What is said of a chassis: json has its name around it."""
    if "id" in chassis or len(chassis) != 1:
        return chassis
    (inner,) = chassis.values()
    return inner if isinstance(inner, dict) else {}


def _chassis_name(chassis: dict[str, Any]) -> str:
    name = _value(chassis.get("name"))
    around = next(iter(chassis)) if "id" not in chassis and len(chassis) == 1 else ""
    return plain(name or around)


def _id(part: dict[str, Any]) -> tuple[str, str]:
    """Kind and value of a chassis' or a port's identity."""
    identity = next(iter(dicts(part.get("id"))), {})
    return str(identity.get("type", "")), _value(identity)


def _value(value: object) -> str:
    """The text of `"x"`, `{"value": "x"}` and `[{"value": "x"}]`."""
    if isinstance(value, list):
        value = value[0] if value else ""
    if isinstance(value, dict):
        value = value.get("value", "")
    return value if isinstance(value, str) else ""


def _is_bridge(value: object) -> bool | None:
    """Does a device say that it forwards frames? Nothing where it names no capability."""
    enabled = {str(item.get("type")): item.get("enabled") is True for item in dicts(value)}
    if not any(enabled.values()):
        return None
    return enabled.get("Bridge", False) or enabled.get("Router", False)


def _tlv(value: object) -> str:
    """The hexadecimal digits of Slingshot's TLV; empty where there is none."""
    for group in dicts(value):
        for tlv in dicts(group.get("unknown-tlv")):
            if str(tlv.get("oui", "")).replace(",", "").lower() == OUI:
                return _value(tlv).replace(",", "") or str(tlv.get("unknown-tlv", "")).replace(",", "")
    return ""
