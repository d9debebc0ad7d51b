"""Parser of `lldpcli show neighbors` in any of its forms: the device at the other end of each cable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fablint.model.names import plain, port_name
from fablint.snapshot.parsers.documents import dicts
from fablint.snapshot.parsers.lldp_forms import lldp_documents
from fablint.snapshot.parsers.slingshot_tlv import OUI
from fablint.text.sanitise import shortened

_LOCAL_NAME = re.compile(r"(?:[a-z]*ethernet|eth|swp|gi|te|fo|hu|xe|et|ge|mge|sfp|qsfp)-?\d[\w/:.-]*", re.IGNORECASE)
INTERFACE = re.compile(r"Interface\s+\d+\s+as\s+(\S+)")  # as Slingshot switches describe a port


@dataclass(frozen=True)
class Neighbour:
    """LLDP neighbour on one port of a device."""

    port: str  # of the device itself
    name: str  # of the neighbour
    its_port: str
    address: str = ""  # MAC of the neighbour's port
    bridge: bool | None = None  # whether it reports to be a switch; None: not reported
    tlv: str = ""  # Slingshot's own, hexadecimal
    nic_agent: bool = False  # the firmware of a NIC, which has no name and addresses for chassis and port
    description: str = ""  # of the neighbour's port: its name, or a remark of the site


def neighbours(text: str) -> list[Neighbour]:
    """Parse the neighbours in an output of lldpcli."""
    result = []
    for document in lldp_documents(text):
        for top in dicts(document.get("lldp") if isinstance(document, dict) else None):
            result += [_neighbour(port, entry) for port, entry in _interfaces(top.get("interface")) if "via" in entry]
    return [neighbour for neighbour in result if neighbour.port and neighbour.name]


def local_name(text: str) -> str:
    """Return the name of the device itself (`show chassis`, `show interfaces`); '' if the output lacks it."""
    for document in lldp_documents(text):
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


# ------------------------------------------------------------------------------------------------ formats


def _interfaces(value: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and entry of each interface: json0 has the name in the entry, json as its key."""
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
    chassis_name, bridge = _chassis_name(chassis), _is_bridge(inner.get("capability"))
    return Neighbour(
        port=port_name(port),
        name=plain(chassis_name or _id(inner)[1]),
        its_port=port_name(_port_of(kind, identity, _value(its.get("descr")))),
        address=identity.lower() if kind == "mac" else "",
        bridge=bridge,
        tlv=_tlv(entry.get("unknown-tlvs")),
        nic_agent=not chassis_name and not bridge and kind == _id(inner)[0] == "mac",
        description=shortened(_value(its.get("descr"))),
    )


def _port_of(kind: str, identity: str, description: str) -> str:
    """Return the name of a port: its description where the identity is an address or a number of the switch itself.

    A description may be a remark of the site, which has blanks or does not look like a port.
    """
    if described := INTERFACE.search(description):
        return described[1]
    is_internal = kind == "local" and (identity.isdecimal() or _LOCAL_NAME.fullmatch(description) is not None)
    is_name = bool(description) and not re.search(r"\s", description)
    return description if (kind == "mac" and description) or (is_internal and is_name) else identity


def _inner(chassis: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of a chassis: in json they are below its name."""
    if "id" in chassis or len(chassis) != 1:
        return chassis
    (inner,) = chassis.values()
    return inner if isinstance(inner, dict) else {}


def _chassis_name(chassis: dict[str, Any]) -> str:
    name = _value(chassis.get("name"))
    key = next(iter(chassis)) if "id" not in chassis and len(chassis) == 1 else ""
    return plain(name or key)


def _id(part: dict[str, Any]) -> tuple[str, str]:
    """Return kind and value of the identity of a chassis or port."""
    identity = next(iter(dicts(part.get("id"))), {})
    return str(identity.get("type", "")), _value(identity)


def _value(value: object) -> str:
    """Return the text of `"x"`, `{"value": "x"}` or `[{"value": "x"}]`."""
    if isinstance(value, list):
        value = value[0] if value else ""
    if isinstance(value, dict):
        value = value.get("value", "")
    return value if isinstance(value, str) else ""


def _is_bridge(value: object) -> bool | None:
    """Tell whether a device reports to forward frames; None if it reports no capability."""
    enabled = {str(item.get("type")): item.get("enabled") is True for item in dicts(value)}
    if not any(enabled.values()):
        return None
    return enabled.get("Bridge", False) or enabled.get("Router", False)


def _tlv(value: object) -> str:
    """Return the hexadecimal digits of Slingshot's TLV; '' if there is none."""
    for group in dicts(value):
        for tlv in dicts(group.get("unknown-tlv")):
            if str(tlv.get("oui", "")).replace(",", "").lower() == OUI:
                return _value(tlv).replace(",", "") or str(tlv.get("unknown-tlv", "")).replace(",", "")
    return ""
