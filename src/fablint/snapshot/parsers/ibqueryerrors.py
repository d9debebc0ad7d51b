"""Parsers of `ibqueryerrors`, error counters of all ports of a fabric, and of `sminfo`, its subnet manager."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_NODE = re.compile(r'Errors for (?:0x[0-9a-f]{1,16} )?"(.*)"', re.IGNORECASE)
_PORT = re.compile(r"\s+GUID 0x([0-9a-f]{1,16}) port (\d{1,4}):", re.IGNORECASE)  # `port ALL` counts twice
_COUNT = re.compile(r"\[(\w{1,60}) == (\d{1,20})\b")
_SUMMARY = re.compile(r"^## Summary: (\d{1,9}) nodes checked", re.MULTILINE)
_UNREAD = re.compile(r"^## +(\d{1,9}) PMA query failures", re.MULTILINE)
_MANAGER = re.compile(r"sm lid (\d{1,6}) .*\bstate (\d)\s+SMINFO_(\w{1,20})")
_NAMES = {
    "SymbolErrorCounter": "symbol_error",
    "LinkErrorRecoveryCounter": "link_error_recovery",
    "LinkDownedCounter": "link_downed",
    "PortRcvErrors": "port_rcv_errors",
    "PortRcvRemotePhysicalErrors": "port_rcv_remote_physical_errors",
    "PortRcvSwitchRelayErrors": "port_rcv_switch_relay_errors",
    "PortXmitDiscards": "port_xmit_discards",
    "PortXmitConstraintErrors": "port_xmit_constraint_errors",
    "PortRcvConstraintErrors": "port_rcv_constraint_errors",
    "LocalLinkIntegrityErrors": "local_link_integrity_errors",
    "ExcessiveBufferOverrunErrors": "excessive_buffer_overrun_errors",
    "VL15Dropped": "VL15_dropped",
}


class PortErrors(NamedTuple):
    """Error counters of a port."""

    node: str  # the node's description
    guid: str
    port: str
    counted: Mapping[str, int]  # by the kernel's names


def port_errors(text: str) -> Iterator[PortErrors]:
    """Yield the error counters of each port."""
    node = ""
    for line in text.splitlines():
        if match := _NODE.match(line):
            node = match[1]
        elif match := _PORT.match(line):
            counts = {_NAMES[name]: int(value) for name, value in _COUNT.findall(line) if name in _NAMES}
            yield PortErrors(node, match[1], match[2], counts)


def checked_nodes(text: str) -> int | None:
    """Return the number of nodes whose counters were read; None if the output is incomplete."""
    match = _SUMMARY.search(text)
    return int(match[1]) if match else None


def unanswered_requests(text: str) -> int:
    """Return the number of requests for counters without an answer."""
    match = _UNREAD.search(text)
    return int(match[1]) if match else 0


class SubnetManager(NamedTuple):
    """The subnet manager that answers."""

    lid: str
    state: str  # `MASTER`


def subnet_manager(text: str) -> SubnetManager | None:
    """Parse `sminfo`; None if it cannot be parsed."""
    match = _MANAGER.search(text)
    return SubnetManager(match[1], match[3]) if match else None
