"""All forms in which lldpcli prints neighbours say the same, and switches and agents as people have published them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest
from discovery_help import sample

from fablint.discover.facts import Facts
from fablint.discover.sources import SavedOutput, read_saved
from fablint.snapshot.parsers.lldp import local_name, neighbours

SAMPLES = [
    "lldpcli-json0-one-port.json",
    "lldpcli-json0-two-ports.json",
    "lldpcli-json0-several-neighbours-on-one-port.json",
    "lldpcli-json0-switch-side.json",
]


def interfaces(text: str) -> list[dict[str, Any]]:
    decoder = json.JSONDecoder()
    documents, at = [], 0
    while at < len(text.rstrip()):
        document, at = decoder.raw_decode(text, at)
        documents.append(document)
        at += len(text[at:]) - len(text[at:].lstrip())
    return [entry for one in documents for top in one.get("lldp", ()) for entry in top.get("interface", ())]


def parts(entry: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return entry["chassis"][0], entry["port"][0]


def as_text(text: str) -> str:
    rule = "-" * 79
    lines = [rule, "LLDP neighbors:", rule]
    for entry in interfaces(text):
        chassis, port = parts(entry)
        lines.append(f"Interface:    {entry['name']}, via: {entry['via']}, RID: {entry['rid']}, Time: {entry['age']}")
        lines += ["  Chassis:     ", f"    ChassisID:    {chassis['id'][0]['type']} {chassis['id'][0]['value']}"]
        lines += [f"    SysName:      {one['value']}" for one in chassis.get("name", ())]
        lines += ["    SysDescr:     Debian GNU/Linux", "                  PortID: of another line"]
        for one in chassis.get("capability", ()):
            lines.append(f"    Capability:   {one['type']}, {'on' if one['enabled'] else 'off'}")
        lines += ["  Port:        ", f"    PortID:       {port['id'][0]['type']} {port['id'][0]['value']}"]
        lines += [f"    PortDescr:    {one['value']}" for one in port.get("descr", ())]
        lines += ["    TTL:          120", rule]
    return "\n".join(lines)


def as_keys(text: str) -> str:
    lines = []
    for entry in interfaces(text):
        chassis, port = parts(entry)
        at = f"lldp.{entry['name']}"
        lines += [f"{at}.via={entry['via']}", f"{at}.rid={entry['rid']}"]
        for name, part in (("chassis", chassis), ("port", port)):
            lines.append(f"{at}.{name}.{part['id'][0]['type']}={part['id'][0]['value']}")
            lines += [f"{at}.{name}.{key}={one['value']}" for key in ("name", "descr") for one in part.get(key, ())]
            lines += [
                f"{at}.{name}.{one['type']}.enabled={'on' if one['enabled'] else 'off'}"
                for one in part.get("capability", ())
            ]
        lines.append(f"{at}.port.ttl=120")
    return "\n".join(lines)


def as_xml(text: str) -> str:
    def part(name: str, values: dict[str, Any]) -> str:
        inner = [f'<id label="ID" type={quoteattr(one["type"])}>{escape(one["value"])}</id>' for one in values["id"]]
        for key in ("name", "descr"):
            inner += [f"<{key}>{escape(one['value'])}</{key}>" for one in values.get(key, ())]
        for one in values.get("capability", ()):
            inner.append(f'<capability type={quoteattr(one["type"])} enabled="{"on" if one["enabled"] else "off"}"/>')
        return f"<{name}>{''.join(inner)}</{name}>"

    entries = [
        f'<interface name={quoteattr(entry["name"])} via="{entry["via"]}" rid="1">'
        f"{part('chassis', parts(entry)[0])}{part('port', parts(entry)[1])}</interface>"
        for entry in interfaces(text)
    ]
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<lldp label="LLDP neighbors">{"".join(entries)}</lldp>\n'


@pytest.mark.parametrize("form", [as_text, as_keys, as_xml])
@pytest.mark.parametrize("name", SAMPLES)
def test_all_forms_say_the_same(name: str, form: Callable[[str], str]) -> None:
    text = sample(name)
    expected = [(one.port, one.name, one.its_port, one.address, one.bridge) for one in neighbours(text)]
    said = [(one.port, one.name, one.its_port, one.address, one.bridge) for one in neighbours(form(text))]
    assert said == expected != []


@pytest.mark.parametrize(
    "text",
    [
        f"{'-' * 79}\nLocal chassis:\n{'-' * 79}\nChassis:     \n  ChassisID:    mac 1c:34:da:00:00:01\n"
        "  SysName:      leaf01\n  SysDescr:     Cumulus Linux version 5.6.0\n",
        "local-chassis.chassis.mac=1c:34:da:00:00:01\nlocal-chassis.chassis.name=leaf01\n",
        '<local-chassis label="Local chassis"><chassis><id type="mac">1c:34:da:00:00:01</id><name>leaf01</name>'
        "</chassis></local-chassis>",
    ],
)
def test_the_device_itself(text: str) -> None:
    assert local_name(text) == "leaf01"


def read(text: str, device: str) -> Facts:
    return read_saved(SavedOutput("given", text, device))[1]


def test_neighbours_of_a_switch_as_sonic_shows_them() -> None:
    text = """Interface:    Ethernet0, via: LLDP, RID: 3, Time: 0 day, 20:14:25
  Chassis:
    ChassisID:    mac b8:ce:f6:11:22:33
    SysName:      gpu001
    Capability:   Bridge, off
    Capability:   Station, on
  Port:
    PortID:       mac b8:ce:f6:11:22:33
    PortDescr:    ens1f0np0
Interface:    Ethernet248, via: LLDP, RID: 1, Time: 10 days, 20:14:25
  Chassis:
    ChassisID:    mac 1c:34:da:24:5b:00
    SysName:      spine01
    Capability:   Bridge, on
  Port:
    PortID:       local etp3
    PortDescr:    Ethernet16
"""
    facts = read(text, "leaf01")
    assert [(w.b, w.a_port, w.b_port) for w in facts.wires] == [
        ("gpu001", "Ethernet0", "ens1f0np0"),
        ("spine01", "Ethernet248", "Ethernet16"),
    ]
    assert facts.stations == {"gpu001"}


@pytest.mark.parametrize(
    ("chassis", "port"),
    [("50:6b:4b:f6:1e:b3", "50:6b:4b:f6:1e:b1"), ("50:6b:4b:f6:1e:b3", "50:6b:4b:f6:1e:b3")],
)
def test_an_agent_of_a_nic_has_addresses_only(chassis: str, port: str) -> None:
    """lldpd/lldpd#392 has one whose chassis and port have different addresses."""
    text = (
        "lldp.swp1.via=LLDP\nlldp.swp1.chassis.mac=1c:34:da:24:5b:00\nlldp.swp1.chassis.name=spine01\n"
        "lldp.swp1.chassis.Bridge.enabled=on\nlldp.swp1.port.ifname=swp9\n"
        f"lldp.swp26.via=LLDP\nlldp.swp26.chassis.mac={chassis}\nlldp.swp26.port.mac={port}\n"
    )
    assert [wire.b for wire in read(text, "leaf01").wires] == ["spine01"]
