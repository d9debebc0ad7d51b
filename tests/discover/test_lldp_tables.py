"""Tables of neighbours as switches print them: each is a leaf with two hosts, a spine and a management switch."""

from __future__ import annotations

import pytest
from discovery_help import BareFakeSystem

from fablint.discover import discover
from fablint.discover.facts import Facts
from fablint.discover.sources import SavedOutput, read_saved
from fablint.errors import UsageError

SONIC = """Capability codes: (R) Router, (B) Bridge, (O) Other
LocalPort    RemoteDevice    RemotePortID         Capability    RemotePortDescr
-----------  --------------  -------------------  ------------  -----------------
Ethernet0    gpu001          b8:ce:f6:11:22:33    O             ens1f0np0
Ethernet4    gpu002          b8:ce:f6:11:22:43    O             ens1f0np0
Ethernet248  spine01         Ethernet16           BR            to leaf01
eth0         oob1            Ethernet12           BR            mgmt
--------------------------------------------------
Total entries displayed:  4
"""
EOS = """Last table change time   : 0:00:16 ago
Number of table inserts  : 11

Port          Neighbor Device ID       Neighbor Port ID    TTL
---------- ------------------------ ---------------------- ---
Et1/1         gpu001                   b8ce.f611.2233      120
Et2/1         gpu002                   ens1f0np0           120
Et33/1        spine01.dc               Ethernet1/1         120
Ma1           oob1                     ge-0/0/7            120
"""
EOS_JSON = """{"tablesLastChangeTime": 1700000000.0, "lldpNeighbors": [
 {"port": "Ethernet1/1", "neighborDevice": "gpu001", "neighborPort": "b8ce.f611.2233", "ttl": 120},
 {"port": "Ethernet2/1", "neighborDevice": "gpu002", "neighborPort": "ens1f0np0", "ttl": 120},
 {"port": "Ethernet33/1", "neighborDevice": "spine01", "neighborPort": "Ethernet1/1", "ttl": 120},
 {"port": "Management1", "neighborDevice": "oob1", "neighborPort": "ge-0/0/7", "ttl": 120}, {"port": 7}],
 "tablesDrops": 0}"""
JUNOS = """Local Interface    Parent Interface    Chassis Id          Port info          System Name
et-0/0/0           -                   b8:ce:f6:11:22:33   ens1f0np0          gpu001
et-0/0/1           -                   b8:ce:f6:11:22:43   ens1f0np0          gpu002
et-0/0/48          ae0                 40:de:ad:11:22:00   et-0/0/0           spine01
fxp0               -                   40:de:ad:11:33:00   ge-0/0/7           oob1
"""
NX_OS = """Capability codes:
  (R) Router, (B) Bridge, (T) Telephone, (C) DOCSIS Cable Device
  (W) WLAN Access Point, (P) Repeater, (S) Station, (O) Other
Device ID            Local Intf      Hold-time  Capability  Port ID
gpu001               Eth1/1          120        S           b8ce.f611.2233
gpu002.rack7.hpc.example.org
                     Eth1/2          120        S           b8ce.f611.2243
spine01              Eth1/49         120        BR          Ethernet1/1
oob1                 mgmt0           120        BR          Gi1/0/7
Total entries displayed: 4
"""
CUMULUS = """
LocalPort  Speed  Mode          RemoteHost  RemotePort
---------  -----  ------------  ----------  -----------------
eth0       1G     Mgmt          oob1        swp12
swp1       100G   Trunk/L2      gpu001      b8:ce:f6:11:22:33
swp2       100G   Trunk/L2      gpu002      b8:ce:f6:11:22:43
swp49      400G   Default       spine01     swp1
"""
OS10 = """Loc PortID          Rem Host Name         Rem Port Id                    Rem Chassis Id
-----------------------------------------------------------------------------------------
ethernet1/1/1       gpu001                b8:ce:f6:11:22:33              b8:ce:f6:11:22:33
ethernet1/1/2       gpu002                b8:ce:f6:11:22:43              b8:ce:f6:11:22:43
ethernet1/1/49      spine01               ethernet1/1/1                  4c:76:25:e5:49:40
mgmt1/1/1           Not Advertised        4c:76:25:e5:00:00              4c:76:25:e5:00:00
"""
TABLES = [
    (SONIC, ["Ethernet0", "Ethernet4"], ("Ethernet248", "Ethernet16")),
    (EOS, ["Ethernet1/1", "Ethernet2/1"], ("Ethernet33/1", "Ethernet1/1")),
    (EOS_JSON, ["Ethernet1/1", "Ethernet2/1"], ("Ethernet33/1", "Ethernet1/1")),
    (JUNOS, ["et-0/0/0", "et-0/0/1"], ("et-0/0/48", "et-0/0/0")),
    (NX_OS, ["Ethernet1/1", "Ethernet1/2"], ("Ethernet1/49", "Ethernet1/1")),
    (CUMULUS, ["swp1", "swp2"], ("swp49", "swp1")),
    (OS10, ["ethernet1/1/1", "ethernet1/1/2"], ("ethernet1/1/49", "ethernet1/1/1")),
]
IDS = ["sonic", "eos", "eos-json", "junos", "nx-os", "cumulus", "os10"]


def read(text: str, device: str = "leaf01") -> Facts:
    return read_saved(SavedOutput("given", text, device))[1]


@pytest.mark.parametrize(("text", "host_ports", "cable"), TABLES, ids=IDS)
def test_hosts_and_cables_of_a_switch(text: str, host_ports: list[str], cable: tuple[str, str]) -> None:
    topology = discover(BareFakeSystem(), texts=[SavedOutput("given", text, "leaf01")]).topology
    assert topology is not None
    assert {name.partition(".")[0] for name in topology.host_switch} == {"gpu001", "gpu002"}
    assert set(topology.host_switch.values()) == {"leaf01"}
    assert {name.partition(".")[0] for name in topology.switches} == {"leaf01", "spine01"}
    facts = read(text)
    assert [wire.a_port for wire in facts.wires][:2] == host_ports
    assert [(wire.a_port, wire.b_port) for wire in facts.wires][2:] == [cable]


SPINE_OF_EOS = """Port   Neighbor Device ID   Neighbor Port ID   TTL
Et1/1  leaf01.dc            Ethernet33/1       120
"""
SPINE_OF_NX_OS = """Device ID   Local Intf   Hold-time  Capability  Port ID
leaf01      Eth1/1       120        BR          Ethernet1/49
"""


@pytest.mark.parametrize(("leaf", "spine"), [(EOS, SPINE_OF_EOS), (NX_OS, SPINE_OF_NX_OS)])
def test_both_ends_of_a_cable_are_one_cable(leaf: str, spine: str) -> None:
    """A switch abbreviates its own ports only, and may be known by a long and a short name."""
    texts = [SavedOutput("a", leaf, "leaf01"), SavedOutput("b", spine, "spine01")]
    fabric = discover(BareFakeSystem(), texts=texts)
    assert fabric.topology is not None
    assert len(fabric.topology.cables) == 1
    assert set(fabric.topology.switches) == {"leaf01", "spine01"}
    assert fabric.findings == ()


@pytest.mark.parametrize("text", [SONIC.splitlines()[1], "Port ID TTL\n1 2 3\n", "Device ID   Local Intf\na   b\n"])
def test_a_heading_alone_is_no_table(text: str) -> None:
    with pytest.raises(UsageError):
        read(text)
