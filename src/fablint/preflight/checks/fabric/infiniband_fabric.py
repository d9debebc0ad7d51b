"""Checks of the InfiniBand fabric from one machine: cables, attachments, uplinks, error counters, subnet manager."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from fablint.model.names import plural
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import majority
from fablint.preflight.checks.fabric.fabric_tools import FABRIC, FabricCheck, requested_hosts, spelling
from fablint.preflight.checks.infiniband.port_counters import LIMITS
from fablint.preflight.fleet import Fleet
from fablint.snapshot.cable_speeds import SlowCable, slow_cables
from fablint.snapshot.counter_deltas import Delta, saturated
from fablint.snapshot.parsers.ibnetdiscover import cables_of, node_count, why_incomplete
from fablint.snapshot.parsers.infiniband_tools import NamedCable, host_and_nic, name_cables
from fablint.text.sanitise import shortened

_NO_CABLES = "ibnetdiscover names no cable"


def cables(fleet: Fleet, text: str) -> list[NamedCable]:
    """Return all cables in an output of ibnetdiscover; hosts have the names that preflight was requested for."""
    found, _ = name_cables(cables_of(text))
    spell = spelling(fleet, [one.b for one in found if one.to_host])
    return [replace(one, b=spell(one.b)) if one.to_host else one for one in found]


# ------------------------------------------------------------------------------------------------ cables


class FabricLinks(FabricCheck):
    id = "fabric.links"
    what = "the rate of every cable of the InfiniBand fabric, and its place in the topology"
    source = "ibnetdiscover"
    rule = "no slower than the other cables at its ends; every host and cable as in the topology"
    severity = Severity.FAIL
    component = "cable"
    root = True
    remedy = "reseat or replace the cable; plug swapped cables back"
    program = "ibnetdiscover"

    def look(self, fleet: Fleet, text: str) -> list[Result]:
        if why := why_incomplete(text):
            return [self.error(FABRIC, "", why)]
        every = cables(fleet, text)
        if not every:
            return [self.error(FABRIC, "", _NO_CABLES)]
        slow = slow_cables(one.trained for one in every if one.trained)
        found = [
            *(self._slow(fleet, one) for one in slow),
            *self._misplaced(fleet, every),
            *self._missing(fleet, every),
        ]
        named = {one.host for one in found}
        seen = dict.fromkeys(name for one in every for name in ([one.a] if one.to_host else [one.a, one.b]))
        hosts = [
            one.b for one in every if one.to_host and (one.b in requested_hosts(fleet) or not requested_hosts(fleet))
        ]
        return found + [self.ok(name) for name in dict.fromkeys([*seen, *hosts]) if name not in named]

    def _slow(self, fleet: Fleet, slow: SlowCable) -> Result:
        cable = slow.cable
        message = f"{cable.ends} runs at {cable.rate}, {slow.others}"
        if not cable.to_host:
            say = self.failure if slow.is_certain else self.warning
            return say(cable.a, f"port {cable.a_port}", message)
        host, _, nic = cable.b.partition("/")
        return self.blamed(fleet, host, nic, message) if slow.is_certain else self.warning(host, nic, message)

    def _misplaced(self, fleet: Fleet, every: Sequence[NamedCable]) -> Iterator[Result]:
        """Yield hosts that are connected to another switch than in the topology, or to none."""
        if fleet.topology is None:
            return
        switches = {one.a for one in every} | {one.b for one in every if not one.to_host}
        actual: dict[str, set[str]] = defaultdict(set)
        for one in every:
            if one.to_host:
                actual[one.end].add(one.a)
                actual[one.b].add(one.a)
        expected = {
            end: switch
            for end, switch in {**fleet.topology.host_switch, **fleet.topology.nic_switch}.items()
            if switch in switches  # else the topology has other names for them
        }
        wrong = {end: there for end, there in expected.items() if end in actual and there not in actual[end]}
        for end, there in wrong.items():
            host, _, nic = end.partition("/")
            if nic or not any(other.startswith(f"{host}/") for other in wrong):
                where = ", ".join(sorted(actual[end]))
                message = f"connected to {where}, expected {there}{_swap_note(end, wrong, actual)}"
                yield self.blamed(fleet, host, nic, message)
        yield from self._absent(fleet, {end: switch for end, switch in expected.items() if "/" not in end}, every)
        for host in sorted(requested_hosts(fleet) & actual.keys() - fleet.topology.host_switch.keys()):
            if expected:
                yield self.warning(host, "", f"connected to {', '.join(sorted(actual[host]))}, but not in the topology")

    def _absent(self, fleet: Fleet, expected: Mapping[str, str], every: Sequence[NamedCable]) -> Iterator[Result]:
        """Yield hosts that are on no cable.

        If most hosts are missing, the fabric has other names for them. If an unknown host is on the expected switch, it
        may be the missing host under another name.
        """
        seen = {one.b for one in every if one.to_host}
        strangers = {one.a: one.b for one in every if one.to_host and one.b not in expected}
        missing = sorted(expected.keys() - seen)
        for host in missing if 2 * len(missing) < len(expected) else ():
            there = expected[host]
            if requested_hosts(fleet) and host not in requested_hosts(fleet):
                continue
            if there in strangers:
                yield self.warning(
                    host, "", f"not on the fabric under its name; {strangers[there]} is connected to {there}"
                )
            else:
                yield self.failure(host, "", f"not on the fabric, expected on {there}")

    def _missing(self, fleet: Fleet, every: Sequence[NamedCable]) -> Iterator[Result]:
        """Yield cables between switches that are in the topology but not on the fabric."""
        there = Counter(frozenset((one.a, one.b)) for one in every if not one.to_host)
        switches = {one.a for one in every}
        expected = Counter(frozenset((one.a, one.b)) for one in (fleet.topology.cables if fleet.topology else ()))
        for ends, count in expected.items():
            if ends <= switches and there[ends] < count:
                a, b = sorted(ends)[0], sorted(ends)[-1]
                yield self.failure(a, "", f"{there[ends]} of {count} cables to {b}", there[ends], count)


def _swap_note(end: str, wrong: Mapping[str, str], actual: Mapping[str, set[str]]) -> str:
    """Note that two ends are connected to each other's switch, if exactly one such partner exists."""
    others = [other for other, there in wrong.items() if wrong[end] in actual[other] and there in actual[end]]
    first, second = sorted([end, others[0]]) if len(others) == 1 else ("", "")
    return f": {first} and {second} swapped" if first else ""


class FabricBalance(FabricCheck):
    id = "fabric.balance"
    what = "the number of uplinks of every leaf switch of an InfiniBand tree"
    source = "ibnetdiscover"
    rule = "the same as on most leaf switches"
    severity = Severity.WARN
    component = "cable"
    root = True
    remedy = "find the missing cable; hosts of this leaf share fewer uplinks"
    program = "ibnetdiscover"

    def look(self, fleet: Fleet, text: str) -> list[Result]:
        if why := why_incomplete(text):
            return [self.error(FABRIC, "", why)]
        every = cables(fleet, text)
        leaves = {one.a for one in every if one.to_host}
        ends = [(leaf, far) for one in every if not one.to_host for leaf, far in ((one.a, one.b), (one.b, one.a))]
        uplinks = Counter(leaf for leaf, far in ends if leaf in leaves and far not in leaves)
        if not uplinks:
            return [self.skip(FABRIC, "", "not a tree: every switch has hosts" if every else _NO_CABLES)]
        usual, count = majority([uplinks[leaf] for leaf in leaves])
        found = []
        for leaf in sorted(leaves):
            if usual is None:
                found.append(self.skip(leaf, "", f"{uplinks[leaf]} uplinks; no majority to compare with"))
            elif uplinks[leaf] < usual:
                message = f"{uplinks[leaf]} uplinks, {count} other{'s' if count > 1 else ''} {usual}"
                found.append(self.failure(leaf, "", message, uplinks[leaf], usual))
            else:
                found.append(self.ok(leaf, value=uplinks[leaf]))
        return found


# ------------------------------------------------------------------------------------------------ counters

_NODE = re.compile(r'Errors for (?:0x[0-9a-f]{1,16} )?"(.*)"', re.IGNORECASE)
_PORT = re.compile(r"\s+GUID 0x([0-9a-f]{1,16}) port (\d{1,4}):", re.IGNORECASE)  # `port ALL` counts twice
_COUNT = re.compile(r"\[(\w{1,60}) == (\d{1,20})\b")
_SUMMARY = re.compile(r"^## Summary: (\d{1,9}) nodes checked", re.MULTILINE)
_UNREAD = re.compile(r"^## +(\d{1,9}) PMA query failures", re.MULTILINE)
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


class _Errors(NamedTuple):
    """Error counters of a port."""

    node: str  # the node's description
    guid: str
    port: str
    counted: Mapping[str, int]  # by the kernel's names


class FabricErrors(FabricCheck):
    id = "fabric.errors"
    what = "error counters of all ports of the InfiniBand fabric"
    source = "ibqueryerrors"
    rule = "growth per hour below the limits of infiniband-diags; at the first reading the totals since the last clear"
    severity = Severity.WARN
    component = "cable"
    root = True
    remedy = "clean and reseat the cable, then replace it; clear saturated counters with ibqueryerrors -k"
    program = "ibqueryerrors"

    def look(self, fleet: Fleet, text: str) -> list[Result]:
        summary = _SUMMARY.search(text)
        if summary is None:
            return [self.error(FABRIC, "", "the output of ibqueryerrors is incomplete")]
        before = _earlier(fleet)
        every = list(_errors(text))
        spell = spelling(fleet, [host_and_nic(one.node)[0] for one in every])
        found = list(self._unread(fleet, int(summary[1]), text))
        for one in every:
            words = list(_beyond(one, before))
            host, nic = host_and_nic(one.node)
            if words and host:
                target = f"{nic}/{one.port}" if nic else f"port {one.port}"
                found.append(self.failure(spell(host), target, "; ".join(words[:3])))
        return found

    def _unread(self, fleet: Fleet, checked: int, text: str) -> Iterator[Result]:
        """Yield an error for nodes and ports whose counters were not read: they did not answer in time."""
        nodes = node_count(fleet.fabric.command("ibnetdiscover").text) if fleet.fabric else 0
        if checked < nodes:
            yield self.error(FABRIC, "", f"ibqueryerrors reached {checked} of {plural(nodes, 'node')} of the fabric")
        if match := _UNREAD.search(text):
            yield self.error(
                FABRIC, "", f"ibqueryerrors had no answer to {plural(int(match[1]), 'request')} for counters"
            )


def _errors(text: str) -> Iterator[_Errors]:
    node = ""
    for line in text.splitlines():
        if match := _NODE.match(line):
            node = match[1]
        elif match := _PORT.match(line):
            counts = {_NAMES[name]: int(value) for name, value in _COUNT.findall(line) if name in _NAMES}
            yield _Errors(node, match[1], match[2], counts)


class _Before(NamedTuple):
    """Counters of all ports at an earlier time."""

    seconds: float  # since then
    counted: Mapping[tuple[str, str], Mapping[str, int]]


def _earlier(fleet: Fleet) -> list[_Before]:
    """Return the earlier readings that are complete."""
    known = [(one, one.command("ibqueryerrors").text) for one in fleet.fabric_before]
    now = fleet.fabric.time if fleet.fabric else 0.0
    return [
        _Before(now - one.time, {(error.guid, error.port): error.counted for error in _errors(text)})
        for one, text in known
        if _SUMMARY.search(text)
    ]


def _beyond(one: _Errors, before: Sequence[_Before]) -> Iterable[str]:
    """Yield a message for each counter of a port that grows too fast or is saturated."""
    for name, value in one.counted.items():
        if saturated(f"/infiniband/{name}", str(value)):
            yield f"{name} is saturated: >= {value} since it was cleared"
        elif not before and value >= LIMITS[name]:
            yield f"{name} {value} since it was cleared"
        else:
            growths = [Delta(_growth(one, name, value, then), then.seconds) for then in before]
            fast = [grown for grown in growths if grown.growth >= LIMITS[name] * max(grown.seconds / 3600, 1.0)]
            if fast:
                yield f"{name} {max(fast, key=lambda grown: (grown.rate, grown.growth))}"


def _growth(one: _Errors, name: str, value: int, before: _Before) -> int:
    known = before.counted.get((one.guid, one.port), {}).get(name, 0)
    return value - known if value >= known else value  # it was cleared in between


# ------------------------------------------------------------------------------------------------ subnet manager


class FabricSm(FabricCheck):
    id = "fabric.sm"
    what = "the subnet manager of the InfiniBand fabric"
    source = "sminfo"
    rule = "a subnet manager answers, and it is the master"
    severity = Severity.FAIL
    component = "config"
    root = True
    remedy = "start the subnet manager, or check why it is not the master"
    program = "sminfo"

    def look(self, fleet: Fleet, text: str) -> list[Result]:
        match = re.search(r"sm lid (\d{1,6}) .*\bstate (\d)\s+SMINFO_(\w{1,20})", text)
        if match is None:
            return [self.error(FABRIC, "", shortened(text))]
        if match[3] == "MASTER":
            return [self.ok(FABRIC, value=f"LID {match[1]}")]
        return [self.failure(FABRIC, "", f"the subnet manager at LID {match[1]} is {match[3]}", match[3], "MASTER")]

    def without(self, fleet: Fleet, why: str) -> Result:
        """Return a failure if the fabric is visible but no subnet manager answers."""
        fabric = fleet.fabric.command("ibnetdiscover").text if fleet.fabric else ""
        if fleet.fabric and fleet.fabric.command("sminfo").ran and cables(fleet, fabric):
            return self.failure(FABRIC, "", f"no subnet manager answers: {why}")
        return super().without(fleet, why)
