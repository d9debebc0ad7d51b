"""Checks of RDMA ports: state, rate, addresses, firmware."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import Check, HostCheck, UniformCheck, Value
from fablint.preflight.checks.peers import Part, PeerCheck
from fablint.preflight.class_values import Agreement
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import INFINIBAND, Host
from fablint.text.sanitise import shortened

NO_PORT = "no RDMA device"
_PORTS = f"{INFINIBAND}/DEVICE/ports/PORT"
_RATE = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) Gb/sec \((\d{1,2})X")
_ACTIVE, _LINK_UP = "ACTIVE", "LinkUp"


def said(host: Host, device: str, port: str, name: str) -> str:
    """Return the text of a file of a port; for `4: ACTIVE` the word."""
    text = host.read(f"{INFINIBAND}/{device}/ports/{port}/{name}") or ""
    return shortened(text.rpartition(": ")[2] if name in ("state", "phys_state") else text)


def is_active(host: Host, device: str, port: str) -> bool:
    """Tell whether the state of a port is ACTIVE."""
    return said(host, device, port, "state") == _ACTIVE


def rate_gbit(host: Host, device: str, port: str) -> float | None:
    """Return the rate of a port in Gbit/s; None if the driver does not report it."""
    rate = _RATE.search(said(host, device, port, "rate"))
    return float(rate[1]) if rate else None


def is_software(host: Host, device: str, port: str) -> bool:
    """Tell whether the CPU moves the data: Soft-RoCE has no PCI device, and Omni-Path's verbs copy local data."""
    vendor = host.read(f"{INFINIBAND}/{device}/device/vendor")
    return vendor is None or (vendor == "0x8086" and said(host, device, port, "link_layer") == "InfiniBand")


class IbPortState(Check):
    id = "ib.port.state"
    what = "the state of every port of an RDMA device"
    source = f"{_PORTS}/state, phys_state"
    rule = "ACTIVE, LinkUp; a port may be without a cable if it is on most similar hosts"
    severity = Severity.FAIL
    component = "nic"
    remedy = "down: check cable and switch port; INIT: start the subnet manager"
    expects = True

    def site_values(self, host: Host) -> Mapping[str, Value]:
        return {"/".join(target): said(host, *target, "state") or None for target in host.ports}

    def typical(self, values: Sequence[Value]) -> Value:
        return _ACTIVE if super().typical(values) == _ACTIVE else None

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        like: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for host in fleet.hosts:
            for device, port in host.ports:
                like[f"{device}/{port}", *host.like(device)].append(said(host, device, port, "state"))
        agreed = {key: Agreement.of(states) for key, states in like.items()}
        for host in fleet.hosts:
            if not host.ports:
                yield self.skip(host.name, "", NO_PORT)
            for device, port in host.ports:
                yield self._judged(host, device, port, agreed[f"{device}/{port}", *host.like(device)])

    def _judged(self, host: Host, device: str, port: str, agreed: Agreement) -> Result:
        target, name, usual, count = f"{device}/{port}", host.name, agreed.usual, agreed.count
        state, physical = said(host, device, port, "state"), said(host, device, port, "phys_state")
        words = f"{state}, {physical}" if physical else state
        if not state:
            return self.skip(name, target, "the driver does not report its state")
        if state == _ACTIVE:
            return self.ok(name, target, value=_ACTIVE)
        if physical == _LINK_UP and said(host, device, port, "link_layer") == "InfiniBand":
            return self.failure(name, target, f"{state} although the link is up: no subnet manager", state, _ACTIVE)
        if usual == _ACTIVE:
            none = not any(is_active(host, *other) for other in host.ports)
            message = f"{words}, {count} other{'s' if count > 1 else ''} {_ACTIVE}"
            return self.difference(agreed.is_clear or none, name, target, message, state, _ACTIVE)
        if usual is not None:
            return self.skip(name, target, f"{words}, the same as {count - 1} other{'s' if count > 2 else ''}")
        if any(is_active(host, *other) for other in host.ports if _card(host, other[0]) == _card(host, device)):
            return self.skip(name, target, f"{words}; another port of the card is in use")
        return self.warning(name, target, words, state, _ACTIVE)


def _card(host: Host, device: str) -> str:
    """Return the PCI slot of a device, since each port of a card can be a device."""
    return host.snapshot.link(f"{INFINIBAND}/{device}/device").rpartition(".")[0] or device


class IbPortRate(PeerCheck):
    id = "ib.port.rate"
    what = "the rate of every port of an RDMA device (width times speed)"
    source = f"{_PORTS}/rate"
    rule = "not lower than on most similar hosts; not narrower than ports of the same model"
    severity = Severity.FAIL
    component = "cable"
    remedy = "clean and reseat the cable, then replace it; lanes have failed, or the speed was not reached"
    words = "rate {:g} Gb/s"
    far_end = True
    absent = NO_PORT

    def parts(self, host: Host) -> Iterable[Part]:
        rates = {target: _RATE.search(said(host, *target, "rate")) for target in host.ports}
        makes = {target: f"{make(host, target[0])} {said(host, *target, 'link_layer')}" for target in host.ports}
        for target, rate in rates.items():
            name = "/".join(target)
            if rate and is_active(host, *target):
                like = [
                    (int(one[2]), float(one[1]))
                    for other, one in rates.items()
                    if one and makes[other] == makes[target]
                ]
                wider = [gbit for width, gbit in like if width > int(rate[2])]
                yield Part(name, float(rate[1]), makes[target], max(wider, default=None))
            else:
                yield Part(name, None, why="not active" if rate else "the driver does not report its rate")


def make(host: Host, device: str) -> str:
    """Return the model of the card of a device: board id, type, or the name of the device."""
    return host.read(f"{INFINIBAND}/{device}/board_id") or host.read(f"{INFINIBAND}/{device}/hca_type") or device


class IbPortLid(HostCheck):
    id = "ib.port.lid"
    what = "the address of every active InfiniBand port, and that of its subnet manager"
    source = f"{_PORTS}/lid, sm_lid"
    rule = "neither is 0"
    severity = Severity.FAIL
    component = "config"
    remedy = "check the subnet manager's log; restart it"
    absent = "no InfiniBand port"

    def look(self, host: Host) -> Iterable[Result]:
        for device, port in host.ports:
            if said(host, device, port, "link_layer") != "InfiniBand":
                continue
            target = f"{device}/{port}"
            lids = {name: host.number(f"{INFINIBAND}/{device}/ports/{port}/{name}") for name in ("lid", "sm_lid")}
            missing = [name.upper().replace("_", " ") for name, lid in lids.items() if lid == 0]
            if not is_active(host, device, port) or None in lids.values():
                yield self.skip(host.name, target, "not active, or the driver does not report its LID")
            elif missing:
                yield self.failure(host.name, target, f"no {' and no '.join(missing)}", 0)
            else:
                yield self.ok(host.name, target, value=lids["lid"])


class _DeviceCheck(UniformCheck):
    """Base of checks of one property of each RDMA device."""

    severity = Severity.WARN
    component = "nic"
    absent = NO_PORT
    file: str

    def values(self, host: Host) -> Mapping[str, Any]:
        texts = {device: host.read(f"{INFINIBAND}/{device}/{self.file}") for device in host.snapshot.names(INFINIBAND)}
        return {device: shortened(text) if text else None for device, text in texts.items()}


class IbFirmware(_DeviceCheck):
    id = "ib.fw"
    what = "the firmware of every RDMA device"
    source = f"{INFINIBAND}/DEVICE/fw_ver"
    rule = "the same as on most similar hosts"
    remedy = "install the same firmware on all hosts"
    file, words = "fw_ver", "firmware {}"


class IbBoard(_DeviceCheck):
    id = "ib.psid"
    what = "the model of every RDMA device (PSID)"
    source = f"{INFINIBAND}/DEVICE/board_id"
    rule = "the same as on most similar hosts"
    remedy = "check for a spare part of another model: its firmware and speed can differ"
    file, words = "board_id", "board {}"
    by_class = True
