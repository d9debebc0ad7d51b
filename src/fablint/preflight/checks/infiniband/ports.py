"""Checks of RDMA ports: state, rate, addresses, firmware."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check, Judge, SiteValues, Value, typical_value
from fablint.preflight.class_values import Agreement
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import INFINIBAND, Host
from fablint.preflight.judges import at_least_peers, limit, uniform
from fablint.preflight.judges.outputs import NO_RDMA_DEVICE
from fablint.preflight.judges.peers import Part
from fablint.preflight.judges.uniform import ValueComparison
from fablint.snapshot.rdma_ports import ACTIVE, RdmaPort
from fablint.text.sanitise import shortened

_PORTS = f"{INFINIBAND}/DEVICE/ports/PORT"
_NO_LIDS = (0, 0xFFFF)  # unassigned, and the permissive LID that a port has until then
_LINK_UP = "LinkUp"
_TRYING = ("Polling", "PortConfigurationTraining", "LinkErrorRecovery", "Phy Test")  # the port looks for a partner


def _typical_state(values: Sequence[Value]) -> Value:
    return ACTIVE if typical_value(values) == ACTIVE else None


def _port_state(check: Check, fleet: Fleet) -> Iterator[Result]:
    like: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for host in fleet.hosts:
        for port in host.ports:
            like[port.target, *host.like(port.device)].append(port.state)
    agreed = {key: Agreement.of(states) for key, states in like.items()}
    for host in fleet.hosts:
        if not host.ports:
            yield check.skip(host.name, "", NO_RDMA_DEVICE)
        for port in host.ports:
            yield _judged_state(check, host, port, agreed[port.target, *host.like(port.device)])


def _judged_state(check: Check, host: Host, port: RdmaPort, agreed: Agreement) -> Result:
    target, name, usual, count = port.target, host.name, agreed.usual, agreed.count
    state, physical = port.state, port.physical_state
    words = f"{state}, {physical}" if physical else state
    if not state:
        return check.skip(name, target, "the driver does not report its state")
    if state == ACTIVE:
        return check.ok(name, target, value=ACTIVE)
    if physical == _LINK_UP and port.link_layer == "InfiniBand":
        return check.failure(name, target, f"{state} although the link is up: no subnet manager", state, ACTIVE)
    if usual == ACTIVE:
        none = not any(other.is_active for other in host.ports)
        message = f"{words}, {count} other{'s' if count > 1 else ''} {ACTIVE}"
        return check.difference(agreed.is_clear or none, name, target, message, state, ACTIVE)
    if usual is not None:
        return check.skip(name, target, f"{words}, the same as {count - 1} other{'s' if count > 2 else ''}")
    twins = [other for other in host.ports if other.is_active and other.model == port.model]
    # a second Ethernet port, or one that is switched off, may have no cable
    is_meant = port.link_layer == "InfiniBand" and physical in _TRYING
    if not is_meant and any(other.is_active for other in host.ports if other.card == port.card):
        return check.skip(name, target, f"{words}; another port of the card is in use")
    message = f"{words}; {twins[0].target} of the same model is {ACTIVE}" if twins else words
    return check.warning(name, target, message, state, ACTIVE)


IB_PORT_STATE = Check(
    id="ib.port.state",
    what="the state of every port of an RDMA device",
    source=f"{_PORTS}/state, phys_state",
    rule=(
        "ACTIVE, LinkUp; a port may be without a cable if it is on most similar hosts; where no other host shows it, a "
        "port that is not active warns, unless its card has another that is and the port is off or Ethernet"
    ),
    severity=Severity.FAIL,
    component="nic",
    remedy="down: check cable and switch port; INIT: start the subnet manager",
    judge=Judge(
        _port_state,
        site=SiteValues(
            lambda _, host: {port.target: port.state or None for port in host.ports}, typical=_typical_state
        ),
    ),
)


def _rates(host: Host) -> Iterator[Part]:
    rates = {port: port.rate for port in host.ports}
    makes = {port: f"{port.model} {port.link_layer}" for port in host.ports}
    for port, rate in rates.items():
        if rate is not None and port.is_active:
            like = [one for other, one in rates.items() if one is not None and makes[other] == makes[port]]
            wider = [one.gbit for one in like if one.lanes > rate.lanes]
            yield Part(port.target, rate.gbit, makes[port], max(wider, default=None))
        else:
            yield Part(port.target, None, why="not active" if rate else "the driver does not report its rate")


IB_PORT_RATE = Check(
    id="ib.port.rate",
    what="the rate of every port of an RDMA device (width times speed)",
    source=f"{_PORTS}/rate",
    rule="not lower than on most similar hosts; not narrower than ports of the same model",
    severity=Severity.FAIL,
    component="cable",
    far_end=True,
    remedy="clean and reseat the cable, then replace it; lanes have failed, or the speed was not reached",
    judge=at_least_peers(_rates, "rate {:g} Gb/s", NO_RDMA_DEVICE),
)


def _lid(check: Check, host: Host) -> Iterator[Result]:
    for port in host.ports:
        if port.link_layer != "InfiniBand":
            continue
        lids = {name: host.number(f"{port.folder}/{name}") for name in ("lid", "sm_lid")}
        missing = [name.upper().replace("_", " ") for name, lid in lids.items() if lid in _NO_LIDS]
        if not port.is_active or None in lids.values():
            yield check.skip(host.name, port.target, "not active, or the driver does not report its LID")
        elif missing:
            yield check.failure(host.name, port.target, f"no {' and no '.join(missing)}", 0)
        else:
            yield check.ok(host.name, port.target, value=lids["lid"])


IB_PORT_LID = Check(
    id="ib.port.lid",
    what="the address of every active InfiniBand port, and that of its subnet manager",
    source=f"{_PORTS}/lid, sm_lid",
    rule="neither is 0",
    severity=Severity.FAIL,
    remedy="check the subnet manager's log; restart it",
    judge=limit(_lid, "no InfiniBand port"),
)


def _texts(host: Host, file: str) -> Mapping[str, Any]:
    texts = {device: host.read(f"{INFINIBAND}/{device}/{file}") for device in host.snapshot.names(INFINIBAND)}
    return {device: shortened(text) if text else None for device, text in texts.items()}


IB_FIRMWARE = Check(
    id="ib.fw",
    what="the firmware of every RDMA device",
    source=f"{INFINIBAND}/DEVICE/fw_ver",
    component="nic",
    remedy="install the same firmware on all hosts",
    judge=uniform(lambda host: _texts(host, "fw_ver"), "firmware {}", absent=NO_RDMA_DEVICE),
)

IB_BOARD = Check(
    id="ib.psid",
    what="the model of every RDMA device (PSID)",
    source=f"{INFINIBAND}/DEVICE/board_id",
    component="nic",
    remedy="check for a spare part of another model: its firmware and speed can differ",
    judge=ValueComparison("board {}", NO_RDMA_DEVICE, by_class=True).judge(lambda host: _texts(host, "board_id")),
)
