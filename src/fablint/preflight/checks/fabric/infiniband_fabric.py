"""Checks of the InfiniBand fabric from one machine: cables, attachments, uplinks, error counters, subnet manager."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from fablint.model.host_name import NicRef
from fablint.model.names import plural
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check
from fablint.preflight.class_values import majority
from fablint.preflight.fleet import Fleet
from fablint.preflight.judges import fabric_tool
from fablint.preflight.judges.fabric_tools import FABRIC, blamed, requested_hosts, spelling, without_output
from fablint.preflight.judges.growth import DIAGS_LIMITS
from fablint.snapshot.cable_speeds import SlowCable, slow_cables
from fablint.snapshot.counter_deltas import Delta, saturated
from fablint.snapshot.parsers.ibnetdiscover import cables_of, node_count, why_incomplete
from fablint.snapshot.parsers.ibqueryerrors import (
    PortErrors,
    checked_nodes,
    port_errors,
    subnet_manager,
    unanswered_requests,
)
from fablint.snapshot.parsers.infiniband_tools import NamedCable, host_and_nic, name_cables
from fablint.text.sanitise import shortened

_NO_CABLES = "ibnetdiscover names no cable"


def cables(fleet: Fleet, text: str) -> list[NamedCable]:
    """Return all cables in an output of ibnetdiscover; hosts have the names that preflight was requested for."""
    result, _ = name_cables(cables_of(text))
    spell = spelling(fleet, [one.b for one in result if one.to_host])
    return [replace(one, b=spell(one.b)) if one.to_host else one for one in result]


# ------------------------------------------------------------------------------------------------ cables


def _fabric_links(check: Check, fleet: Fleet, text: str) -> list[Result]:
    if why := why_incomplete(text):
        return [check.error(FABRIC, "", why)]
    named_cables = cables(fleet, text)
    if not named_cables:
        return [check.error(FABRIC, "", _NO_CABLES)]
    slow = slow_cables(one.trained for one in named_cables if one.trained)
    result = [
        *(_slow(check, fleet, one) for one in slow),
        *_misplaced(check, fleet, named_cables),
        *_missing(check, fleet, named_cables),
    ]
    named = {one.host for one in result}
    seen = dict.fromkeys(name for one in named_cables for name in ([one.a] if one.to_host else [one.a, one.b]))
    hosts = [
        cable.b
        for cable in named_cables
        if cable.to_host and (cable.b in requested_hosts(fleet) or not requested_hosts(fleet))
    ]
    return result + [check.ok(name) for name in dict.fromkeys([*seen, *hosts]) if name not in named]


def _slow(check: Check, fleet: Fleet, slow: SlowCable) -> Result:
    cable = slow.cable
    message = f"{cable.ends} runs at {cable.rate}, {slow.others}"
    if not cable.to_host:
        say = check.failure if slow.is_certain else check.warning
        return say(cable.a, f"port {cable.a_port}", message)
    end = NicRef(cable.b)
    if slow.is_certain:
        return blamed(check, fleet, end.host, end.device, message)
    return check.warning(end.host, end.device, message)


def _misplaced(check: Check, fleet: Fleet, named_cables: Sequence[NamedCable]) -> Iterator[Result]:
    """Yield hosts that are connected to another switch than in the topology, or to none."""
    if fleet.topology is None:
        return
    switches = {one.a for one in named_cables} | {one.b for one in named_cables if not one.to_host}
    actual: dict[str, set[str]] = defaultdict(set)
    for named_cable in named_cables:
        if named_cable.to_host:
            actual[named_cable.end].add(named_cable.a)
            actual[named_cable.b].add(named_cable.a)
    expected = {
        end: switch
        for end, switch in fleet.topology.end_switch.items()
        if switch in switches  # else the topology has other names for them
    }
    wrong = {end: there for end, there in expected.items() if end in actual and there not in actual[end]}
    for end, there in wrong.items():
        if end.device or not any(other.device for other in wrong if other.host == end.host):
            where = ", ".join(sorted(actual[end]))
            message = f"connected to {where}, expected {there}{_swap_note(end, wrong, actual)}"
            yield blamed(check, fleet, end.host, end.device, message)
    yield from _absent(check, fleet, {end: switch for end, switch in expected.items() if not end.device}, named_cables)
    for host in sorted(requested_hosts(fleet) & actual.keys() - fleet.topology.host_switch.keys()):
        if expected:
            yield check.warning(host, "", f"connected to {', '.join(sorted(actual[host]))}, but not in the topology")


def _absent(
    check: Check, fleet: Fleet, expected: Mapping[str, str], named_cables: Sequence[NamedCable]
) -> Iterator[Result]:
    """Yield hosts that are on no cable.

    If most hosts are missing, the fabric has other names for them. If an unknown host is on the expected switch, it
    may be the missing host under another name.
    """
    seen = {one.b for one in named_cables if one.to_host}
    strangers = {one.a: one.b for one in named_cables if one.to_host and one.b not in expected}
    missing = sorted(expected.keys() - seen)
    for host in missing if 2 * len(missing) < len(expected) else ():
        there = expected[host]
        if requested_hosts(fleet) and host not in requested_hosts(fleet):
            continue
        if there in strangers:
            yield check.warning(
                host, "", f"not on the fabric under its name; {strangers[there]} is connected to {there}"
            )
        else:
            yield check.failure(host, "", f"not on the fabric, expected on {there}")


def _missing(check: Check, fleet: Fleet, named_cables: Sequence[NamedCable]) -> Iterator[Result]:
    """Yield cables between switches that are in the topology but not on the fabric."""
    there = Counter(frozenset((one.a, one.b)) for one in named_cables if not one.to_host)
    switches = {one.a for one in named_cables}
    expected = Counter(frozenset((one.a, one.b)) for one in (fleet.topology.cables if fleet.topology else ()))
    for ends, count in expected.items():
        if ends <= switches and there[ends] < count:
            a, b = sorted(ends)[0], sorted(ends)[-1]
            yield check.failure(a, "", f"{there[ends]} of {count} cables to {b}", there[ends], count)


FABRIC_LINKS = Check(
    id="fabric.links",
    what="the rate of every cable of the InfiniBand fabric, and its place in the topology",
    source="ibnetdiscover",
    rule="no slower than the other cables at its ends; every host and cable as in the topology",
    severity=Severity.FAIL,
    component="cable",
    root=True,
    remedy="reseat or replace the cable; plug swapped cables back",
    judge=fabric_tool("ibnetdiscover", _fabric_links),
)


def _swap_note(end: NicRef, wrong: Mapping[NicRef, str], actual: Mapping[str, set[str]]) -> str:
    """Note that two ends are connected to each other's switch, if exactly one such partner exists."""
    others = [other for other, there in wrong.items() if wrong[end] in actual[other] and there in actual[end]]
    first, second = sorted([end, others[0]]) if len(others) == 1 else ("", "")
    return f": {first} and {second} swapped" if first else ""


def _fabric_balance(check: Check, fleet: Fleet, text: str) -> list[Result]:
    if why := why_incomplete(text):
        return [check.error(FABRIC, "", why)]
    named_cables = cables(fleet, text)
    leaves = {one.a for one in named_cables if one.to_host}
    ends = [(leaf, far) for one in named_cables if not one.to_host for leaf, far in ((one.a, one.b), (one.b, one.a))]
    uplinks = Counter(leaf for leaf, far in ends if leaf in leaves and far not in leaves)
    if not uplinks:
        return [check.skip(FABRIC, "", "not a tree: every switch has hosts" if named_cables else _NO_CABLES)]
    usual, count = majority([uplinks[leaf] for leaf in leaves])
    fabric_balance = []
    for leaf in sorted(leaves):
        if usual is None:
            fabric_balance.append(check.skip(leaf, "", f"{uplinks[leaf]} uplinks; no majority to compare with"))
        elif uplinks[leaf] < usual:
            message = f"{uplinks[leaf]} uplinks, {count} other{'s' if count > 1 else ''} {usual}"
            fabric_balance.append(check.failure(leaf, "", message, uplinks[leaf], usual))
        else:
            fabric_balance.append(check.ok(leaf, value=uplinks[leaf]))
    return fabric_balance


FABRIC_BALANCE = Check(
    id="fabric.balance",
    what="the number of uplinks of every leaf switch of an InfiniBand tree",
    source="ibnetdiscover",
    rule="the same as on most leaf switches",
    component="cable",
    root=True,
    remedy="find the missing cable; hosts of this leaf share fewer uplinks",
    judge=fabric_tool("ibnetdiscover", _fabric_balance),
)


# ------------------------------------------------------------------------------------------------ counters


def _fabric_errors(check: Check, fleet: Fleet, text: str) -> list[Result]:
    checked = checked_nodes(text)
    if checked is None:
        return [check.error(FABRIC, "", "the output of ibqueryerrors is incomplete")]
    before = _earlier(fleet)
    errors = list(port_errors(text))
    spell = spelling(fleet, [host_and_nic(one.node)[0] for one in errors])
    fabric_errors = list(_unread(check, fleet, checked, text))
    for port_error in errors:
        words = list(_beyond(port_error, before))
        host, nic = host_and_nic(port_error.node)
        if words and host:
            target = f"{nic}/{port_error.port}" if nic else f"port {port_error.port}"
            fabric_errors.append(check.failure(spell(host), target, "; ".join(words[:3])))
    return fabric_errors


def _unread(check: Check, fleet: Fleet, checked: int, text: str) -> Iterator[Result]:
    """Yield an error for nodes and ports whose counters were not read: they did not answer in time."""
    nodes = node_count(fleet.fabric.command("ibnetdiscover").text) if fleet.fabric else 0
    if checked < nodes:
        yield check.error(FABRIC, "", f"ibqueryerrors reached {checked} of {plural(nodes, 'node')} of the fabric")
    if unanswered := unanswered_requests(text):
        yield check.error(FABRIC, "", f"ibqueryerrors had no answer to {plural(unanswered, 'request')} for counters")


FABRIC_ERRORS = Check(
    id="fabric.errors",
    what="error counters of all ports of the InfiniBand fabric",
    source="ibqueryerrors",
    rule="growth per hour below the limits of infiniband-diags; at the first reading the totals since the last clear",
    component="cable",
    root=True,
    remedy="clean and reseat the cable, then replace it; clear saturated counters with ibqueryerrors -k",
    judge=fabric_tool("ibqueryerrors", _fabric_errors),
)


class _Before(NamedTuple):
    """Counters of all ports at an earlier time."""

    seconds: float  # since then
    counted: Mapping[tuple[str, str], Mapping[str, int]]


def _earlier(fleet: Fleet) -> list[_Before]:
    """Return the earlier readings that are complete."""
    readings = [(one, one.command("ibqueryerrors").text) for one in fleet.fabric_before]
    now = fleet.fabric.time if fleet.fabric else 0.0
    return [
        _Before(now - item.time, {(error.guid, error.port): error.counted for error in port_errors(text)})
        for item, text in readings
        if checked_nodes(text) is not None
    ]


def _beyond(port_errors: PortErrors, before: Sequence[_Before]) -> Iterable[str]:
    """Yield a message for each counter of a port that grows too fast or is saturated."""
    for name, value in port_errors.counted.items():
        if saturated(f"/infiniband/{name}", str(value)):
            yield f"{name} is saturated: >= {value} since it was cleared"
        elif not before and value >= DIAGS_LIMITS[name]:
            yield f"{name} {value} since it was cleared"
        else:
            growths = [Delta(_growth(port_errors, name, value, then), then.seconds) for then in before]
            fast = [grown for grown in growths if grown.growth >= DIAGS_LIMITS[name] * max(grown.seconds / 3600, 1.0)]
            if fast:
                yield f"{name} {max(fast, key=lambda grown: (grown.rate, grown.growth))}"


def _growth(port_errors: PortErrors, name: str, value: int, before: _Before) -> int:
    earlier = before.counted.get((port_errors.guid, port_errors.port), {}).get(name, 0)
    return value - earlier if value >= earlier else value  # it was cleared in between


# ------------------------------------------------------------------------------------------------ subnet manager


def _fabric_sm(check: Check, fleet: Fleet, text: str) -> list[Result]:
    manager = subnet_manager(text)
    if manager is None:
        return [check.error(FABRIC, "", shortened(text))]
    lid, state = manager
    if state == "MASTER":
        return [check.ok(FABRIC, value=f"LID {lid}")]
    return [check.failure(FABRIC, "", f"the subnet manager at LID {lid} is {state}", state, "MASTER")]


def _without_fabric_sm(check: Check, fleet: Fleet, why: str) -> Result:
    """Return a failure if the fabric is visible but no subnet manager answers."""
    fabric = fleet.fabric.command("ibnetdiscover").text if fleet.fabric else ""
    if fleet.fabric and fleet.fabric.command("sminfo").ran and cables(fleet, fabric):
        return check.failure(FABRIC, "", f"no subnet manager answers: {why}")
    return without_output(check, fleet, why)


FABRIC_SM = Check(
    id="fabric.sm",
    what="the subnet manager of the InfiniBand fabric",
    source="sminfo",
    rule="a subnet manager answers, and it is the master",
    severity=Severity.FAIL,
    root=True,
    remedy="start the subnet manager, or check why it is not the master",
    judge=fabric_tool("sminfo", _fabric_sm, without=_without_fabric_sm),
)
