"""Relations between the network interfaces of a host: bonds, VLANs, RDMA devices, the default route."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from fablint.model.names import plain
from fablint.snapshot.agent.machine import VIRTUAL
from fablint.snapshot.host_snapshot import INFINIBAND, NET, Snapshot
from fablint.snapshot.parsers.inet import Inet

_REPRESENTOR = re.compile(r"(c\d+)?pf\d+(vf|sf)\d+")  # phys_port_name of a port for a virtual machine


def port_name(device: str, port: str, *, several: bool) -> str:
    """Return the name of a port of an RDMA device: the name of the device, with a number if it has several ports."""
    return plain(f"{device}-{port}" if several else device)


def stacked(
    snapshot: Snapshot, links: Iterable[Mapping[str, Any]]
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return the members of each bond or bridge, and the parent of each VLAN. `links`: output of `ip -j addr`."""
    result: dict[str, dict[str, None]] = defaultdict(dict)
    for name in snapshot.names(NET):
        for member in (snapshot.read(f"{NET}/{name}/bonding/slaves") or "").split():
            result[name][plain(member)] = None
    parents: dict[str, str] = {}
    for link in links:
        name, master, below = plain(link.get("ifname")), link.get("master"), link.get("link")
        if isinstance(master, str) and not name.startswith(VIRTUAL):
            result[master][name] = None
        if isinstance(below, str) and not name.startswith(VIRTUAL):
            parents[name] = plain(below)
    return {master: tuple(members) for master, members in result.items()}, parents


def devices_of_interfaces(snapshot: Snapshot, upper: Collection[str]) -> dict[str, str]:
    """Return by interface the port of the RDMA device that carries its messages.

    Sources are `device/net`, which holds the interfaces of the same PCI function, and `gid_attrs/ndevs`, the interface
    of each GID (Documentation/ABI/stable/sysfs-class-infiniband). GIDs name VLANs and bonds as well; these `upper`
    interfaces and representors of virtual functions are excluded.
    """
    devices: dict[str, str] = {}
    for device in snapshot.names(INFINIBAND):
        ports = snapshot.names(f"{INFINIBAND}/{device}/ports")
        near = [
            name for name in snapshot.names(f"{INFINIBAND}/{device}/device/net") if not _is_for_guests(snapshot, name)
        ]
        for port in ports:
            folder = f"{INFINIBAND}/{device}/ports/{port}/gid_attrs/ndevs"
            named = {snapshot.read(f"{folder}/{index}") or "" for index in snapshot.names(folder)} - {""}
            carriers = named & set(near) or (set(near) if len(ports) == 1 else set()) or named - set(upper)
            devices |= {name: port_name(device, port, several=len(ports) > 1) for name in carriers}
    return devices


def default_route(inet: Inet) -> frozenset[str]:
    """Return the interfaces of the IPv4 default route with the lowest metric."""
    routes = [
        item
        for item in inet.routes.items
        if item.prefix == 0 and item.table == "main" and item.kind == "unicast" and item.nics
    ]
    best = min((route.metric for route in routes), default=0)
    return frozenset(nic for route in routes if route.metric == best for nic in route.nics)


def _is_for_guests(snapshot: Snapshot, name: str) -> bool:
    return _REPRESENTOR.fullmatch(snapshot.read(f"{NET}/{name}/phys_port_name") or "") is not None
