"""Who is at the other end of each cable, as `lldpcli -f json0 show neighbors` (and `-f json`) of a device tells it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fablint.snapshot.parsers.documents import dicts, documents
from fablint.snapshot.parsers.slingshot_tlv import OUI
from fablint.text.names import plain

INTERFACE = re.compile(r"Interface\s+\d+\s+as\s+(\S+)")  # as Slingshot switches describe a port


@dataclass(frozen=True)
class Neighbour:
    """What a device heard on one of its ports."""

    port: str  # of ours
    name: str  # of the other device
    its_port: str
    address: str = ""  # MAC of the other's port
    bridge: bool | None = None  # does it say that it is a switch? None: it says nothing
    tlv: str = ""  # Slingshot's own, hexadecimal


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
