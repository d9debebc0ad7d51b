"""Trees of files of RoCE and plain Ethernet hosts, as the kernel lays them out, for `--sysroot`.

Built from Documentation/ABI/stable/sysfs-class-infiniband and sysfs-class-net of Linux, and from the outputs of
iproute2 and lldpd in tests/fixtures; no such hardware was at hand.
"""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fablint.snapshot import Snapshot, snapshot_of
from fablint.snapshot.agent import collector


@dataclass
class Nic:
    """A network interface; with `rdma` its card's function has an RDMA device of that name too."""

    name: str
    address: str = ""  # IPv4 with its prefix
    rdma: str = ""
    speed: int = 100_000
    state: str = "up"
    mtu: int = 9000
    psid: str = "MT_0000000359"
    bond: str = ""  # its master
    vlan_of: str = ""  # it is a VLAN on that interface
    members: Sequence[str] = ()  # it is a bond of these
    gids: Sequence[str] = ()  # interfaces of the device's GIDs, beside its own
    port_of_guest: str = ""  # phys_port_name of a representor
    switch: tuple[str, str] = ("", "")  # name and port that LLDP hears
    card: tuple[str, str] = ("0x15b3", "0x101d")  # PCI ids of vendor and device


@dataclass
class RoceHost:
    """A host."""

    name: str
    nics: Sequence[Nic]
    default_route: str = ""  # interface
    link_layer: str = "Ethernet"
    files: Mapping[str, str] = field(default_factory=dict)

    def write(self, root: Path) -> Path:
        """The tree below a folder."""
        put(root / "etc/hostname", self.name)
        put(root / "proc/sys/kernel/osrelease", "5.14.0-427.el9.x86_64")
        put(root / "sys/devices/virtual/dmi/id/product_name", "PowerEdge R760")
        for index, one in enumerate(self.nics):
            self._write_nic(root / "sys", index, one)
        for name, document in self._commands().items():
            put(root / "commands" / name, json.dumps(document))
        for path, text in self.files.items():
            put(root / path.lstrip("/"), text)
        return root

    def _write_nic(self, sys: Path, index: int, one: Nic) -> None:
        hardware = not (one.members or one.vlan_of)
        slot = f"0000:{0x10 + index:02x}:00.0"
        device = sys / "devices/pci0000:00" / slot
        place = device / "net" / one.name if hardware else sys / "devices/virtual/net" / one.name
        files = {"address": mac(self.name, index), "mtu": one.mtu, "type": 1, "flags": "0x1003", "ifindex": index + 2}
        files |= {"operstate": one.state, "carrier": int(one.state == "up"), "duplex": "full", "carrier_changes": 2}
        files |= {"speed": one.speed if one.state == "up" else -1}
        files |= {"phys_port_name": one.port_of_guest} if one.port_of_guest else {}
        files |= {"bonding/slaves": " ".join(one.members), "bonding/mode": "802.3ad 4"} if one.members else {}
        for name, content in files.items():
            put(place / name, str(content))
        link(sys / "class/net" / one.name, place)
        if hardware:
            for name, content in {"vendor": one.card[0], "device": one.card[1], "numa_node": "0"}.items():
                put(device / name, content)
            link(place / "device", device)
            link(sys / "bus/pci/devices" / slot, device)
        if one.rdma:
            self._write_device(sys, device, one)

    def _write_device(self, sys: Path, device: Path, one: Nic) -> None:
        place = device / "infiniband" / one.rdma
        active = one.state == "up"
        rate = f"{one.speed // 1000} Gb/sec (4X EDR)" if active else "40 Gb/sec (4X QDR)"
        files = {"node_type": "1: CA", "fw_ver": "22.41.1000", "board_id": one.psid, "hca_type": "MT4125"}
        files |= {"ports/1/state": "4: ACTIVE" if active else "1: DOWN", "ports/1/rate": rate}
        files |= {"ports/1/phys_state": "5: LinkUp" if active else "3: Disabled", "ports/1/link_layer": self.link_layer}
        own = [one.name] if self.link_layer == "Ethernet" and not one.bond else []
        names = [name for name in (*own, *one.gids) for _ in range(2)]  # RoCE v1 and v2
        files |= {f"ports/1/gid_attrs/ndevs/{number}": name for number, name in enumerate(names)}
        for name, content in files.items():
            put(place / name, content)
        link(sys / "class/infiniband" / one.rdma, place)
        link(place / "device", device)

    def _commands(self) -> Mapping[str, Any]:
        """What `ip -j` and lldpcli print."""
        addresses, routes, heard = [], [], []
        for one in self.nics:
            found: dict[str, Any] = {"ifname": one.name, "addr_info": []}
            found |= {"master": one.bond} if one.bond else {}
            found |= {"link": one.vlan_of} if one.vlan_of else {}
            if one.address:
                at = ipaddress.ip_interface(one.address)
                own = {"family": "inet", "local": str(at.ip), "prefixlen": at.network.prefixlen, "scope": "global"}
                found["addr_info"] = [own]
                routes.append({"dst": str(at.network), "dev": one.name, "scope": "link", "flags": []})
            addresses.append(found)
            if one.switch[0]:
                heard.append(neighbour(one.name, *one.switch))
        if self.default_route:
            routes.append({"dst": "default", "gateway": "10.9.0.1", "dev": self.default_route, "flags": []})
        said = {"ip-addr": addresses, "ip-route": routes, "ip-neigh": [], "ip-rule": RULES}
        return {**said, "lldpcli": {"lldp": [{"interface": heard}]}}


RULES = [{"priority": 0, "src": "all", "table": "local"}, {"priority": 32766, "src": "all", "table": "main"}]


def neighbour(port: str, switch: str, its_port: str) -> dict[str, Any]:
    """An entry of `lldpcli -f json0 show neighbors`."""
    capability = [{"type": "Bridge", "enabled": True}]
    chassis = {"id": [{"type": "mac", "value": "1c:34:da:00:00:01"}], "name": [{"value": switch}]}
    its = {"id": [{"type": "ifname", "value": its_port}]}
    return {"name": port, "via": "LLDP", "chassis": [{**chassis, "capability": capability}], "port": [its]}


def mac(host: str, index: int) -> str:
    number = int("".join(letter for letter in host if letter.isdigit()) or 0)
    return f"b8:3f:d2:{number >> 8 & 255:02x}:{number & 255:02x}:{index:02x}"


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if text.endswith("\n") else text + "\n")


def link(at: Path, target: Path) -> None:
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(os.path.relpath(target, at.parent))


def snapshot_of_tree(root: Path) -> Snapshot:
    """What the collector itself takes of a tree, in this process."""
    return snapshot_of(collector.snapshot("quick", 0.0, 30.0, str(root)))


def read(host: RoceHost, folder: Path) -> Snapshot:
    """The snapshot of a host whose tree is written below a folder."""
    return snapshot_of_tree(host.write(folder / host.name))
