"""Network interfaces of a host and ports of its fabric devices, from its snapshot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from fablint.model.names import plain
from fablint.snapshot.agent.machine import VIRTUAL
from fablint.snapshot.host_snapshot import CXI, INFINIBAND, NET, Snapshot, integer
from fablint.snapshot.interfaces import default_route, devices_of_interfaces, port_name, stacked
from fablint.snapshot.parsers.documents import dicts
from fablint.snapshot.parsers.inet import Inet
from fablint.snapshot.sharing import parsed

_MAKE = ("board_id", "hca_type")
_LOOPBACK, _INFINIBAND = 772, 32  # ARPHRD_*
_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True)
class NicFact:
    """A network interface of a host, or a port of a fabric device."""

    host: str
    name: str
    mac: str = ""
    mtu: int | None = None
    speed: int | None = None  # Mbit/s
    state: str = ""  # `up`, `down`; empty if unknown
    kind: str = ""  # `ethernet`, `infiniband`, `cxi`, `virtual`
    addresses: tuple[str, ...] = ()
    is_port: bool = False  # a port of an RDMA device, not a network interface
    make: str = ""  # of a port: the PSID of its card, else its type; of an interface the PCI ids of its card
    device: str = ""  # of an interface: the port of its RDMA device (RoCE)
    members: tuple[str, ...] = ()  # of a bond or a bridge
    parent: str = ""  # of a VLAN: the interface below
    is_routed: bool = False  # has the default route
    is_chosen: bool | None = None  # named by the user; None if the user named no NIC


def nics_of(snapshot: Snapshot, inet: Inet | None = None) -> list[NicFact]:
    """Return network interfaces except the loopback, then ports of fabric devices. `inet`: the host's, if parsed."""
    context = _Context.of(snapshot, inet or Inet(snapshot))
    interfaces = [_interface(snapshot, name, context) for name in snapshot.names(NET)]
    for device in snapshot.names(INFINIBAND):
        ports = snapshot.names(f"{INFINIBAND}/{device}/ports")
        interfaces += [_port(snapshot, device, port, several=len(ports) > 1) for port in ports]
    return _marked([nic for nic in interfaces if nic is not None and nic.name], snapshot.nics)


def _marked(nics: list[NicFact], names: Sequence[str]) -> list[NicFact]:
    """Mark the NICs that the user named: interfaces, RDMA devices, and the NICs that belong to them."""
    if not names:
        return nics
    ports = {nic.name for nic in nics if nic.is_port and (nic.name in names or nic.name.rpartition("-")[0] in names)}
    below = {nic.name for nic in nics if nic.device in ports}
    chosen = {nic.name for nic in nics if nic.name in names or below & set(nic.members)} | below | ports
    chosen |= {member for nic in nics if nic.name in chosen for member in nic.members}
    chosen |= {nic.device for nic in nics if nic.name in chosen and nic.device}
    return [replace(nic, is_chosen=nic.name in chosen) for nic in nics]


def ip_documents(snapshot: Snapshot, command: str) -> list[dict[str, Any]]:
    """Parse an output of `ip -j`; [] if it is malformed."""
    try:
        return dicts(parsed((snapshot.command(command).text or "[]").encode()))
    except (ValueError, RecursionError):
        return []


class _Context(NamedTuple):
    """Relations of interfaces to other devices and routes, by the name of the interface."""

    slingshot: Collection[str]
    device: Mapping[str, str]
    addresses: Mapping[str, tuple[str, ...]]
    members: Mapping[str, tuple[str, ...]]
    parent: Mapping[str, str]
    routed: Collection[str]

    @classmethod
    def of(cls, snapshot: Snapshot, inet: Inet) -> _Context:
        documents = ip_documents(snapshot, "ip-addr")
        slingshot = {name for device in snapshot.names(CXI) for name in snapshot.names(f"{CXI}/{device}/device/net")}
        members, parent = stacked(snapshot, documents)
        device = devices_of_interfaces(snapshot, {*members, *parent})
        return cls(slingshot, device, _addresses(documents), members, parent, default_route(inet))


def _interface(snapshot: Snapshot, name: str, context: _Context) -> NicFact | None:
    at = f"{NET}/{name}"
    hardware = snapshot.number(f"{at}/type")
    if hardware == _LOOPBACK or snapshot.read(f"{at}/address") is None:
        return None
    virtual = name.startswith(VIRTUAL)
    vendor, device = (snapshot.read(f"{at}/device/{file}") for file in ("vendor", "device"))
    kind = "virtual" if virtual else "infiniband" if hardware == _INFINIBAND else "ethernet"
    return NicFact(
        snapshot.host,
        plain(name),
        mac=(snapshot.read(f"{at}/address") or "").lower(),
        mtu=_above_zero(snapshot.read(f"{at}/mtu"), integer),
        speed=_above_zero(snapshot.read(f"{at}/speed"), integer),
        state=_state(snapshot.read(f"{at}/operstate") or "", snapshot.read(f"{at}/carrier") or ""),
        kind="cxi" if name in context.slingshot else kind,
        addresses=context.addresses.get(name, ()),
        device=context.device.get(name, ""),
        members=context.members.get(name, ()),
        parent=context.parent.get(name, ""),
        is_routed=name in context.routed,
        make=f"{vendor}:{device}" if vendor and device else "",
    )


def _addresses(documents: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Return the addresses with their prefix by interface."""
    addresses = {}
    for nic in documents:
        texts = [
            f"{item.get('local')}/{item.get('prefixlen')}" for item in dicts(nic.get("addr_info")) if "local" in item
        ]
        addresses[str(nic.get("ifname"))] = tuple(texts)
    return addresses


def _port(snapshot: Snapshot, device: str, port: str, *, several: bool) -> NicFact:
    """Return a port of an RDMA device; if the device has several ports, the name contains the number."""
    at = f"{INFINIBAND}/{device}/ports/{port}"
    rate = (snapshot.read(f"{at}/rate") or "").partition(" ")[0]
    state = (snapshot.read(f"{at}/state") or "").partition(":")[2].strip().lower()
    return NicFact(
        snapshot.host,
        port_name(device, port, several=several),
        speed=_above_zero(rate, lambda text: int(float(text) * 1000)),
        state="up" if state == "active" else state,
        kind="infiniband" if snapshot.read(f"{at}/link_layer") == "InfiniBand" else "ethernet",
        is_port=True,
        make=next(filter(None, (snapshot.read(f"{INFINIBAND}/{device}/{file}") for file in _MAKE)), ""),
    )


def _above_zero(text: str | None, number: Callable[[str], _Number | None]) -> _Number | None:
    """Parse a positive number; None for others (-1: unknown to the driver)."""
    try:
        figure = number(text or "")
    except (ValueError, OverflowError):
        return None
    return figure if figure is not None and figure > 0 else None


def _state(operstate: str, carrier: str) -> str:
    """Return the state of a link; drivers with the state `unknown` report the carrier."""
    if operstate in ("up", "down", "lowerlayerdown", "dormant"):
        return "up" if operstate == "up" else "down"
    return {"1": "up", "0": "down"}.get(carrier, "")
