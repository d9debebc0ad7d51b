"""Other forms of the output of lldpcli than JSON: text (`show lldp neighbors` of SONiC as well), keyvalue and XML.

Each becomes a document of the form json0, which `lldp` reads. The forms are those of lldpd's `src/client/*_writer.c`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from fablint.snapshot.parsers.documents import documents
from fablint.snapshot.parsers.lldp_tables import of_eos, table_documents

_Entry = dict[str, Any]
_PART = re.compile(
    r"^ *(?P<tag>Interface|Local chassis|Chassis|ChassisID|SysName|Capability|Port|PortID|PortDescr): *(?P<text>.*)$"
)
_KEY = re.compile(r"^lldp\.(?P<port>.+?)\.(?:via|(?P<part>chassis|port)\.(?P<key>[^=\n]+))=(?P<text>.*)$", re.MULTILINE)
_LOCAL = re.compile(r"^local-chassis\.chassis\.name=(.*)$", re.MULTILINE)


def lldp_documents(text: str) -> list[Any]:
    """Return the documents in an output of lldpcli of any form, or in the table of a switch."""
    start = text.lstrip()[:1]
    if start == "<":
        return list(_of_xml(text))
    others = [] if start in ("{", "[") else list(_of_keys(text)) or list(_of_text(text)) or table_documents(text)
    return others or [of_eos(one) if _is_of_eos(one) else one for one in documents(text)]


def _is_of_eos(document: object) -> bool:
    return isinstance(document, dict) and "lldpNeighbors" in document


def _document(entries: list[_Entry], name: str) -> Iterator[dict[str, Any]]:
    if name:
        yield {"local-chassis": [{"chassis": [{"id": [], "name": [{"value": name}]}]}]}
    if entries:
        yield {"lldp": [{"interface": entries}]}


def _neighbour(port: str, via: str = "LLDP") -> _Entry:
    return {"name": port, "via": via, "chassis": [{"id": [], "capability": []}], "port": [{"id": []}]}


def _id(kind: str, text: str) -> _Entry:
    return {"type": kind, "value": text}


def _of_text(text: str) -> Iterator[dict[str, Any]]:
    """Parse the form for people: `    ChassisID:    mac 1c:34:da:00:00:01`."""
    entries: list[_Entry] = []
    local = ""
    for row in map(_PART.match, text.splitlines()):
        tag, words = (row["tag"], row["text"].strip()) if row else ("", "")
        if tag == "Interface" and ", via: " in words:
            port, _, rest = words.partition(", via: ")
            entries.append(_neighbour(port, rest.partition(",")[0]))
        elif tag == "SysName" and not entries:
            local = words
        elif tag and entries:
            _add(entries[-1], tag, words)
    yield from _document(entries, local)


def _add(entry: _Entry, tag: str, words: str) -> None:
    chassis, port = entry["chassis"][0], entry["port"][0]
    kind, _, rest = words.partition(" ")
    if tag == "ChassisID":
        chassis["id"] = [_id(kind, rest)]
    elif tag == "PortID":
        port["id"] = [_id(kind, rest)]
    elif tag == "SysName":
        chassis["name"] = [{"value": words}]
    elif tag == "PortDescr":
        port["descr"] = [{"value": words}]
    elif tag == "Capability":
        name, _, state = words.partition(",")
        chassis["capability"].append({"type": name, "enabled": state.strip() == "on"})


def _of_keys(text: str) -> Iterator[dict[str, Any]]:
    """Parse the form `keyvalue`: `lldp.eth0.chassis.mac=1c:34:da:00:00:01`; a neighbour begins with `via`."""
    entries: list[_Entry] = []
    for row in _KEY.finditer(text):
        part, key = row["part"], row["key"]
        if part is None:
            entries.append(_neighbour(row["port"], row["text"]))
        elif entries:
            there = entries[-1][part][0]
            if key.endswith(".enabled"):
                capability = {"type": key.removesuffix(".enabled"), "enabled": row["text"] == "on"}
                there.setdefault("capability", []).append(capability)
            elif key in ("name", "descr"):
                there[key] = [{"value": row["text"]}]
            elif not there["id"]:  # its kind comes first
                there["id"] = [_id(key, row["text"])]
    local = _LOCAL.search(text)
    yield from _document(entries, local[1] if local else "")


def _of_xml(text: str) -> Iterator[dict[str, Any]]:
    """Parse the form `xml`; text without markup in tags and attributes."""
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError):
        return
    entries = []
    for interface in root.iter("interface"):
        entry = _neighbour(interface.get("name", ""), interface.get("via", ""))
        for part in ("chassis", "port"):
            there = entry[part][0]
            for element in (element for parent in interface.findall(part) for element in parent):
                words = (element.text or "").strip()
                if element.tag == "id":
                    there["id"] = [_id(element.get("type", ""), words)]
                elif element.tag == "capability":
                    capability = {"type": element.get("type", ""), "enabled": element.get("enabled") == "on"}
                    there["capability"].append(capability)
                elif element.tag in ("name", "descr"):
                    there[element.tag] = [{"value": words}]
        entries.append(entry)
    name = next((element.text for at in root.iter("local-chassis") for element in at.iter("name")), "")
    yield from _document([entry for entry in entries if entry["via"]], (name or "").strip())
