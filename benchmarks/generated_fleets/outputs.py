"""Outputs of programs that are requested at level quick: iproute2, lldpd, chrony, ethtool, systemctl, mpiexec."""

from __future__ import annotations

import json
from typing import Any

from generated_fleets.machines import Machine


def outputs_of(machine: Machine) -> dict[str, str]:
    """Outputs by the collector's name for the program."""
    named = [("eno1", "@{IP_MGMT}", 8, "@{MAC_MGMT}")]
    named += [(rail.interface, f"@{{IP{index}}}", 16, f"@{{MAC{index}}}") for index, rail in enumerate(machine.rails)]
    addresses: list[dict[str, Any]] = [
        {
            "ifindex": 2 + index,
            "ifname": nic,
            "flags": ["BROADCAST", "MULTICAST", "UP", "LOWER_UP"],
            "mtu": machine.mtu if index else 1500,
            "operstate": "UP",
            "address": mac,
            "addr_info": [
                {"family": "inet", "local": address, "prefixlen": prefix, "scope": "global", "label": nic},
            ],
        }
        for index, (nic, address, prefix, mac) in enumerate(named)
    ]
    routes: list[dict[str, Any]] = [{"dst": "default", "gateway": "10.255.255.254", "dev": "eno1", "flags": []}]
    for index, (nic, address, _, _) in enumerate(named):
        network = "10.0.0.0/8" if index == 0 else f"172.{15 + index}.0.0/16"
        routes.append(
            {"dst": network, "dev": nic, "protocol": "kernel", "scope": "link", "prefsrc": address, "flags": []}
        )
        routes.append({"type": "local", "dst": address, "dev": nic, "table": "local", "scope": "host", "flags": []})
    rules = [
        {"priority": at, "src": "all", "table": name}
        for at, name in ((0, "local"), (32766, "main"), (32767, "default"))
    ]
    neighbour = {
        "dst": "10.255.255.254",
        "dev": "eno1",
        "lladdr": "00:00:5e:00:01:0a",
        "used": 1,
        "confirmed": 1,
        "updated": 4,
        "state": ["REACHABLE"],
    }
    said = {
        "ip-addr": json.dumps(addresses, separators=(",", ":")),
        "ip-route": json.dumps(routes, separators=(",", ":")),
        "ip-rule": json.dumps(rules, separators=(",", ":")),
        "ip-neigh": json.dumps([neighbour], separators=(",", ":")),
        "lldpcli": json.dumps({"lldp": [{"interface": _neighbours(machine)}]}, separators=(",", ":")),
        "chronyc": "C0A80001,10.255.0.1,3,1767594000.1,@{OFFSET},0.000001,0.00002,-1.2,0,0.1,0.0004,0.0008,64,Normal\n",
        "timedatectl": "NTP=yes\nNTPSynchronized=yes\n",
        "mpiexec": "mpiexec (OpenRTE) 4.1.6\n",
    }
    ours = {"driver": machine.driver, "version": machine.driver_version, "firmware-version": machine.firmware}
    tg3 = {"driver": "tg3", "version": machine.kernel, "firmware-version": "FFV21.80.8 bc 5720-v1.39"}
    for rail in (None, *machine.rails):
        nic, facts, bus = (rail.interface, ours, rail.pci) if rail else ("eno1", tg3, "0000:04:00.0")
        fields = {**facts, "expansion-rom-version": "", "bus-info": bus, "supports-statistics": "yes"}
        said[f"ethtool-i/{nic}"] = "".join(f"{key}: {text}\n" for key, text in fields.items())
        fec = (
            "Supported/Configured FEC encodings: Auto RS\nActive FEC encoding: RS\n"
            if rail
            else "Active FEC encoding: Off\n"
        )
        said[f"ethtool-fec/{nic}"] = f"FEC parameters for {nic}:\n{fec}"
    for rail in machine.rails:
        if machine.link == "slingshot":
            said[f"cxi_rh/{rail.device}"] = "active\n"
    if machine.has_nvswitch:
        said["fabricmanager"] = "active\n"
    return said


def _neighbours(machine: Machine) -> list[dict[str, Any]]:
    """As `lldpcli -f json0 show neighbors` prints them: the management switch too."""
    seen = [("eno1", "mgmt-@{SWITCH0}", "@{PORT0}", "02:aa:00:00:00:01")]
    if machine.has_lldp:
        rails = enumerate(machine.rails)
        seen += [(rail.interface, f"@{{SWITCH{at}}}", f"@{{PORT{at}}}", f"@{{FAR{at}}}") for at, rail in rails]
    capability = [{"type": "Bridge", "enabled": True}, {"type": "Router", "enabled": True}]
    return [
        {
            "name": nic,
            "via": "LLDP",
            "rid": "1",
            "age": "8 days, 23:11:02",
            "chassis": [{"id": [{"type": "mac", "value": far}], "name": [{"value": switch}], "capability": capability}],
            "port": [{"id": [{"type": "ifname", "value": f"Ethernet{port}"}], "descr": [{"value": f"Ethernet{port}"}]}],
        }
        for nic, switch, port, far in seen
    ]
