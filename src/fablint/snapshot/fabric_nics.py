"""Selection of the NICs that belong to the fabric, and not to the management network.

The first rule that selects a NIC is used:

1. NICs that the user named.
2. NICs with the name or of the kind of a fabric (`hsn0`, `ib0`, `cxi0`), and ports of InfiniBand devices.
3. Interfaces of RDMA devices on Ethernet (RoCE), whatever their names, and the bonds and VLANs above them.
4. Interfaces of the default route, and faster interfaces with an address.
5. Interfaces without the name of a management interface; of these the fastest, if speeds are known.

In 3, 4 and 5 a slower port of the same model as the fastest is included if it is configured: it may be faulty.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from functools import cache

from fablint.model.facts.run_attributes import HostNic
from fablint.snapshot.nics import NicFact

LEAST_SHARE = 0.25  # of the highest speed, as in engine/host/nics.hpp: a link that trained at a quarter still counts

_FABRIC = re.compile(r"(hsn|ib|cxi|mlx|roce|hfi|opa|rdma|irdma|bnxt_re|qib|HCA)[\d_-]", re.IGNORECASE)
_MANAGES = re.compile(r"(mgmt|bmc|ipmi|nmn|usb|idrac|oob)", re.IGNORECASE)
_MANAGEMENT = re.compile(rf"({_MANAGES.pattern}|lo$|docker|veth|virbr|br-|vlan|tun|tap)", re.IGNORECASE)
_Known = Mapping[str, NicFact]


def fabric_nics(named: Iterable[str], nics: _Known) -> set[str]:
    """Return the NICs among `named` that belong to the fabric. `nics`: all NICs of the host by name."""
    named = set(named)
    if any(nic.is_chosen is not None for nic in nics.values()):
        return {name for name in named if name in nics and nics[name].is_chosen}
    candidates = named | {name for name, nic in nics.items() if nic.kind != "virtual"}
    fast = {name for name in candidates if is_fabric(name, nics.get(name))}
    if all(name in nics and _is_roce_port(nics[name]) for name in fast):
        ports, interfaces = _over_rdma(nics)
        fast |= ports | (interfaces or _of_ethernet(candidates - ports, nics))
    return fast & named


def is_fabric(name: str, nic: NicFact | None) -> bool:
    """Tell whether a NIC belongs to a fabric by its name or its kind."""
    return bool(_FABRIC.match(name)) or (nic is not None and nic.kind in ("infiniband", "cxi"))


def rails(nics: Sequence[NicFact]) -> list[NicFact]:
    """Return the NICs of a host that belong to the fabric."""
    nic_of_name = {nic.name: nic for nic in nics if nic.kind != "virtual"}
    wanted = fabric_nics(nic_of_name, nic_of_name)
    return [nic for nic in nics if nic.name in wanted]


def adapters(nics: Sequence[NicFact]) -> list[NicFact]:
    """Return the adapters of the fabric: ports of InfiniBand devices, else of RoCE devices, else network interfaces."""
    result = rails(nics)
    ports = [nic for nic in result if nic.is_port]
    special = [nic for nic in ports if nic.kind == "infiniband"]
    fast = _fastest_makes(ports)
    over_rdma = [nic for nic in ports if nic.name in fast]
    return special or over_rdma or [nic for nic in result if not nic.members and not nic.parent]


def message_nics(recorded: Sequence[HostNic]) -> list[str]:
    """Return the adapters that can carry the messages of a run, from the NICs that it recorded of a host.

    These are up, and not much slower than the fastest. A bond stands for its ports. Virtual NICs count if the host has
    no others: it is a container.
    """
    if not recorded:
        return []
    physical = [nic for nic in recorded if nic.physical is not False] or recorded
    able = _equal_adapters(tuple(_recorded(nic) for nic in physical if _is_usable(nic)))
    least = LEAST_SHARE * max((nic.speed or 0 for nic in able), default=0)
    return [nic.name for nic in able if (nic.speed or 0) >= least]


@cache
def _equal_adapters(nics: tuple[NicFact, ...]) -> list[NicFact]:
    """Return `adapters`, once for all hosts with equal NICs."""
    return adapters(nics)


def _recorded(nic: HostNic) -> NicFact:
    """Return a NIC of any host."""
    kind, speed = nic.kind, nic.speed_mbps or None
    is_port = kind in ("infiniband", "roce")
    return NicFact("", nic.name, speed=speed, kind="ethernet" if kind == "roce" else kind, is_port=is_port)


def _is_usable(nic: HostNic) -> bool:
    """Return whether a recorded NIC is up and in the name space of the ranks; a port of a bond has no messages."""
    is_up = nic.state in ("", "up", "unknown") or "ACTIVE" in nic.state
    return is_up and not nic.port_of and (nic.kind != "roce" or nic.netdevs is None or bool(nic.netdevs))


# ------------------------------------------------------------------------------------------------ RoCE


def _is_roce_port(nic: NicFact) -> bool:
    return nic.is_port and nic.kind == "ethernet"


def _over_rdma(nics: _Known) -> tuple[set[str], set[str]]:
    """Return the RoCE ports of the fabric, and the interfaces of their messages.

    A slower card of another model is used for management or storage. A port below the speed of its card is included,
    since it may be faulty. VLANs belong to the fabric if their parent has no address.
    """
    ports = _fastest_makes([nic for nic in nics.values() if _is_roce_port(nic)])
    base = {name for name, nic in nics.items() if nic.device in ports}
    base = {name for name in base if not _MANAGES.match(name)} or base
    for name, nic in nics.items():
        if base & set(nic.members):
            base |= {name, *(member for member in nic.members if member in nics)}
    if not any(_has_address(nics[name]) for name in base):
        base |= {name for name, nic in nics.items() if nic.parent in base and _has_address(nic)}
    return ports, base


def _fastest_makes(ports: Sequence[NicFact]) -> set[str]:
    """Return the ports of the models of the fastest active ports, and of models without an active port."""
    speeds: dict[str, int] = defaultdict(int)
    for port in ports:
        if port.state == "up":
            speeds[port.make] = max(speeds[port.make], port.speed or 0)
    top = max(speeds.values(), default=0)
    return {port.name for port in ports if speeds.get(port.make, top) == top}


def _has_address(nic: NicFact) -> bool:
    """Tell whether a NIC has an address of IPv4 or IPv6, not counting that of the link."""
    return any(not address.lower().startswith("fe80:") for address in nic.addresses)


# ------------------------------------------------------------------------------------------------ plain Ethernet


def _of_ethernet(candidates: Set[str], nics: _Known) -> set[str]:
    """Return the interfaces that MPI uses without an RDMA device."""
    routed = {name for name in candidates if name in nics and nics[name].is_routed and not _MANAGES.match(name)}
    able = {name for name in candidates if not _MANAGEMENT.match(name)} or set(candidates)
    if not routed:
        return _fastest(able, nics)
    usual = max((nics[name].speed or 0 for name in routed), default=0)
    faster = {name for name in able & nics.keys() if _is_in_use(nics[name]) and (nics[name].speed or 0) > usual}
    return _with_parts(routed | (_fastest(faster, nics, able) if usual else set()), nics)


def _fastest(names: Collection[str], nics: _Known, others: Iterable[str] = ()) -> set[str]:
    """Return the fastest NICs and those of unknown speed, with slower NICs and `others` of the same model.

    The slower NICs must have an address: unconfigured ports do not belong to the fabric, whatever their card.
    """
    speeds = {name: nic.speed for name in names if (nic := nics.get(name)) and nic.speed}
    top = max(speeds.values(), default=None)
    result = {name for name in names if speeds.get(name, top) == top}
    makes = {nics[name].make for name in result if name in nics} - {""}
    able = ({*names, *others} & nics.keys()) - result
    return result | {name for name in able if nics[name].make in makes and _has_address(nics[name])}


def _is_in_use(nic: NicFact) -> bool:
    return nic.state == "up" and _has_address(nic) and not nic.is_port


def _with_parts(names: Collection[str], nics: _Known) -> set[str]:
    """Return the interfaces with the members of their bonds and bridges and the parents of their VLANs."""
    parts: set[str] = set()
    left = [name for name in names if name in nics]
    while left:
        name = left.pop()
        if name not in parts:
            parts.add(name)
            left += [below for below in (*nics[name].members, nics[name].parent) if below in nics]
    return parts
