"""Parser of `lldptool -t -n -i NIC` (lldpad): a heading for each TLV, its values indented."""

from __future__ import annotations

import re

from fablint.model.names import plain
from fablint.snapshot.parsers.lldp import INTERFACE, Neighbour
from fablint.snapshot.parsers.slingshot_tlv import OUI
from fablint.text.sanitise import shortened

_MAC = re.compile(r"MAC:\s*([0-9A-Fa-f:]{17})")
_OTHER_ID = re.compile(r"(?:Ifname|Local|Interface|Name):\s*(\S+)")
_SITE_TLV = re.compile(r"OUI:\s*0x([0-9a-fA-F]{6}),\s*Subtype:\s*\d+,\s*Info:\s*([0-9a-fA-F]+)")


def read_neighbour(nic: str, text: str) -> Neighbour | None:
    """Parse the neighbour in an output; None if there is none."""
    tlvs: dict[str, list[str]] = {}
    values: list[str] = []
    for line in text.splitlines():
        if line[:1] in "\t ":
            values.append(line.strip())
        else:
            values = tlvs.setdefault(line.strip(), [])
    first = {heading: texts[0] for heading, texts in tlvs.items() if texts}
    chassis, port = first.get("Chassis ID TLV", ""), first.get("Port ID TLV", "")
    described = first.get("Port Description TLV", "")
    interface = INTERFACE.search(described)
    chassis_mac, port_mac = _MAC.search(chassis), _MAC.search(port)
    port_id = _OTHER_ID.search(port)
    name = first.get("System Name TLV", "") or (chassis_mac[1] if chassis_mac else "")
    if not plain(name):
        return None
    return Neighbour(
        port=plain(nic),
        name=plain(name),
        its_port=plain(interface[1] if interface else port_id[1] if port_id else described or port.partition(": ")[2]),
        address=port_mac[1].lower() if port_mac else "",
        bridge=_is_bridge(tlvs.get("System Capabilities TLV", [])),
        tlv=_site_tlv(tlvs.get("Unidentified Org Specific TLV", [])),
        description=shortened(described),
    )


def _is_bridge(values: list[str]) -> bool | None:
    for value in values:
        if value.startswith("Enabled capabilities:"):
            enabled = value.partition(":")[2].strip()
            return ("Bridge" in enabled or "Router" in enabled) if enabled else None
    return None


def _site_tlv(values: list[str]) -> str:
    """Return the hexadecimal digits of Slingshot's TLV; '' if there is none."""
    matches = (_SITE_TLV.search(value) for value in values)
    return next((match[2] for match in matches if match and match[1].lower() == OUI), "")
