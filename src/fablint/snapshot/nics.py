"""The network interfaces of a host and the ports of its fabric devices, as the host itself sees them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from fablint.names import plain
from fablint.snapshot.documents import dicts
from fablint.snapshot.machine import VIRTUAL
from fablint.snapshot.snapshot import Snapshot, integer

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
    state: str = ""  # `up`, `down`; empty where it cannot be told
    kind: str = ""  # `ethernet`, `infiniband`, `cxi`, `virtual`
    addresses: tuple[str, ...] = ()


def nics_of(snapshot: Snapshot) -> list[NicFact]:
    """Network interfaces but the loopback, then ports of fabric devices."""
    slingshot = {
        name
        for device in snapshot.names("/sys/class/cxi")
        for name in snapshot.names(f"/sys/class/cxi/{device}/device/net")
    }
    addresses = _addresses(snapshot)
    found = [_interface(snapshot, name, slingshot, addresses) for name in snapshot.names("/sys/class/net")]
    for device in snapshot.names("/sys/class/infiniband"):
        ports = snapshot.names(f"/sys/class/infiniband/{device}/ports")
        found += [_port(snapshot, device, port, several=len(ports) > 1) for port in ports]
    return [nic for nic in found if nic is not None and nic.name]


def ip_documents(snapshot: Snapshot, command: str) -> list[dict[str, Any]]:
    """What `ip -j` printed."""
    try:
        return dicts(json.loads(snapshot.command(command).text or "[]"))
    except (ValueError, RecursionError):
        return []


def _interface(
    snapshot: Snapshot, name: str, slingshot: set[str], addresses: dict[str, tuple[str, ...]]
) -> NicFact | None:
    at = f"/sys/class/net/{name}"
    hardware = snapshot.number(f"{at}/type")
    if hardware == _LOOPBACK or snapshot.read(f"{at}/address") is None:
        return None
    virtual = name.startswith(VIRTUAL)
    kind = "virtual" if virtual else "infiniband" if hardware == _INFINIBAND else "ethernet"
    return NicFact(
        snapshot.host,
        plain(name),
        mac=(snapshot.read(f"{at}/address") or "").lower(),
        mtu=_above_zero(snapshot.read(f"{at}/mtu"), integer),
        speed=_above_zero(snapshot.read(f"{at}/speed"), integer),
        state=_state(snapshot.read(f"{at}/operstate") or "", snapshot.read(f"{at}/carrier") or ""),
        kind="cxi" if name in slingshot else kind,
        addresses=addresses.get(name, ()),
    )


def _addresses(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """Addresses with their prefix, by interface."""
    found = {}
    for nic in ip_documents(snapshot, "ip-addr"):
        every = [f"{one.get('local')}/{one.get('prefixlen')}" for one in dicts(nic.get("addr_info")) if "local" in one]
        found[str(nic.get("ifname"))] = tuple(every)
    return found


def _port(snapshot: Snapshot, device: str, port: str, *, several: bool) -> NicFact:
    """A port of an RDMA device; those of one device that has several are told apart by their number."""
    at = f"/sys/class/infiniband/{device}/ports/{port}"
    rate = (snapshot.read(f"{at}/rate") or "").partition(" ")[0]
    state = (snapshot.read(f"{at}/state") or "").partition(":")[2].strip().lower()
    return NicFact(
        snapshot.host,
        plain(f"{device}-{port}" if several else device),
        speed=_above_zero(rate, lambda text: int(float(text) * 1000)),
        state="up" if state == "active" else state,
        kind="infiniband" if snapshot.read(f"{at}/link_layer") == "InfiniBand" else "ethernet",
    )


def _above_zero(text: str | None, of: Callable[[str], _Number | None]) -> _Number | None:
    """A figure above 0; drivers that do not know write -1."""
    try:
        figure = of(text or "")
    except (ValueError, OverflowError):
        return None
    return figure if figure is not None and figure > 0 else None


def _state(operstate: str, carrier: str) -> str:
    """Drivers that tell no state (`unknown`) tell the carrier."""
    if operstate in ("up", "down", "lowerlayerdown", "dormant"):
        return "up" if operstate == "up" else "down"
    return {"1": "up", "0": "down"}.get(carrier, "")
