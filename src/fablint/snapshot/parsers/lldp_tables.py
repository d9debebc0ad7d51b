"""Tables of neighbours that switches print, as documents of lldpcli's form json0.

`show lldp table` of SONiC, `show lldp neighbors` of EOS (also as JSON), Junos, NX-OS, IOS XE and Dell OS10, `net show
lldp` of Cumulus Linux. The columns begin where their headings do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fablint.snapshot.parsers.documents import dicts

_PORT, _DEVICE, _THERE, _DESCRIPTION, _CAPABILITY = "port", "device", "its port", "description", "capability"
_HEADINGS = {
    "LocalPort": _PORT,
    "Local Intf": _PORT,
    "Local Interface": _PORT,
    "Loc PortID": _PORT,
    "Port": _PORT,
    "RemoteDevice": _DEVICE,
    "RemoteHost": _DEVICE,
    "Neighbor Device ID": _DEVICE,
    "System Name": _DEVICE,
    "Device ID": _DEVICE,
    "Rem Host Name": _DEVICE,
    "RemotePortID": _THERE,
    "RemotePort": _THERE,
    "Neighbor Port ID": _THERE,
    "Port info": _THERE,
    "Port ID": _THERE,
    "Rem Port Id": _THERE,
    "RemotePortDescr": _DESCRIPTION,
    "Capability": _CAPABILITY,
}
_NEEDED = {_PORT, _DEVICE, _THERE}
_ADDRESS = re.compile(r"(?:[0-9a-f]{2}[:.-]?){5}[0-9a-f]{2}", re.IGNORECASE)
# EOS, NX-OS and IOS XE abbreviate the names of their own ports, and announce the whole ones
_ABBREVIATING = re.compile(r"Neighbor Device ID|Local Intf\b")
_SHORT, _NEVER = re.compile(r"^Eth?(?=\d)"), re.compile(r"(?!)")
_Cells = Mapping[str, str]


def table_documents(text: str) -> list[dict[str, Any]]:
    """Return the neighbours in the table of a switch as a document; none for a text without such a table."""
    entries = [_entry(cells) for cells in _rows(text) if cells[_PORT] and cells[_DEVICE]]
    return [{"lldp": [{"interface": entries}]}] if entries else []


def of_eos(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the neighbours in the JSON of EOS as a document; one without neighbours for other documents."""
    rows = [{key: str(value) for key, value in row.items()} for row in dicts(document.get("lldpNeighbors"))]
    names = {"port": _PORT, "neighborDevice": _DEVICE, "neighborPort": _THERE}
    whole = [row for row in rows if names.keys() <= row.keys()]
    return {"lldp": [{"interface": [_entry({names[key]: row[key] for key in names}) for row in whole]}]}


def _rows(text: str) -> Iterator[_Cells]:
    """Yield the cells of each row below a heading; a long first cell can stand on a line of its own."""
    columns: list[tuple[str, int]] = []
    before, short = "", _NEVER
    for line in text.expandtabs().splitlines():
        if heads := _columns(line):
            columns, short = heads, _SHORT if _ABBREVIATING.search(line) else _NEVER
        elif columns and line.strip() and not set(line) <= set("- "):
            ends = [begin for _, begin in columns[1:]] + [len(line)]
            cells = {name: line[begin:end].strip() for (name, begin), end in zip(columns, ends, strict=True)}
            first = columns[0][0]
            if not cells[first] and before:
                cells[first] = before
            cells[_PORT] = short.sub("Ethernet", cells[_PORT])
            before = line.strip() if len(line.split()) == 1 else ""
            if not before and all(cells[name] for name in _NEEDED) and not any(" " in cells[name] for name in _NEEDED):
                yield cells


def _columns(line: str) -> list[tuple[str, int]]:
    """Return name and begin of each column of a heading; [] for another line. Unknown columns have empty names."""
    words = [(match[0], match.start()) for match in re.finditer(r"\S+(?: \S+)*", line)]
    columns = [(_HEADINGS.get(word, f"#{begin}"), begin) for word, begin in words]
    return columns if {name for name, _ in columns} >= _NEEDED else []


def _entry(cells: _Cells) -> dict[str, Any]:
    """Return a neighbour; a device whose port is an address is not a switch, unless its capabilities say so."""
    port, letters = cells[_THERE], cells.get(_CAPABILITY)
    is_address = _ADDRESS.fullmatch(port) is not None
    digits = re.sub(r"[^0-9a-f]", "", port.lower())
    value = ":".join(digits[at : at + 2] for at in range(0, 12, 2)) if is_address else port
    enabled = {"Bridge": "B", "Router": "R", "Station": "SO"}
    shown = "S" if letters is None and is_address else letters or ""
    capability = [
        {"type": name, "enabled": any(letter in shown for letter in marks)} for name, marks in enabled.items()
    ]
    return {
        "name": cells[_PORT],
        "via": "LLDP",
        "chassis": [{"id": [], "name": [{"value": cells[_DEVICE]}], "capability": capability}],
        "port": [
            {
                "id": [{"type": "mac" if is_address else "ifname", "value": value}],
                "descr": [{"value": cells.get(_DESCRIPTION, "")}],
            }
        ],
    }
