"""Checks of the fabric's network interfaces: number, state, speed, MTU, duplex mode."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fablint.model.names import plural
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check, Judge, SiteValues, Value, typical_value
from fablint.preflight.class_values import LEAST_OTHERS, Agreement, is_clear, worded
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import NET, Host
from fablint.preflight.judges import limit, uniform
from fablint.preflight.judges.outputs import NO_INTERFACE
from fablint.snapshot import NicFact
from fablint.snapshot.fabric_nics import is_fabric

_SET_UP = 1  # IFF_UP


def _link_up_values(host: Host) -> Mapping[str, Value]:
    return {nic.name: nic.state or None for nic in host.interfaces}


def _typical_link_up(values: Sequence[Value]) -> Value:
    return "up" if typical_value(values) == "up" else None


def _worded_link_up(target: str, value: Value) -> str:
    return f"link {value}"


def _link_up(check: Check, fleet: Fleet) -> Iterator[Result]:
    states: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for host in fleet.hosts:
        for nic in host.interfaces:
            states[nic.name, *host.like(nic.name)].append(nic.state)
    agreed = {key: Agreement.of(like) for key, like in states.items()}
    for host in fleet.hosts:
        if not host.interfaces:
            yield check.skip(host.name, "", NO_INTERFACE)
        for nic in host.interfaces:
            yield _look_link_up(check, host, nic, agreed[nic.name, *host.like(nic.name)])


def _look_link_up(check: Check, host: Host, nic: NicFact, agreed: Agreement) -> Result:
    usual, count = agreed.usual, agreed.count
    flags = host.number(f"{NET}/{nic.name}/flags")
    set_up = flags is None or bool(flags & _SET_UP)
    if not nic.state:
        return check.skip(host.name, nic.name, "the driver reports neither state nor carrier")
    if nic.state == "up":
        return check.ok(host.name, nic.name)
    another = any(one.state == "up" for one in host.interfaces)
    if usual == "up":
        message = f"{'link down' if set_up else 'not configured'}, {_others(count)} up"
        alone = not another or (set_up and is_fabric(nic.name, nic))
        return check.difference(agreed.is_clear or alone, host.name, nic.name, message, "down", "up")
    if not set_up:
        return check.skip(host.name, nic.name, "it is not configured")
    if usual == "down" and another:
        return check.skip(host.name, nic.name, f"no carrier, the same as {_others(count - 1)}")
    if is_fabric(nic.name, nic) or (usual == "down" and not another):
        return check.failure(host.name, nic.name, "link down", "down", "up")
    return check.skip(host.name, nic.name, "no carrier, and no similar host to compare with")


LINK_UP = Check(
    id="net.link.up",
    what="the link of every NIC of the fabric",
    source=f"{NET}/NIC/operstate, carrier, flags",
    rule="up, unless it is unused on most similar hosts as well",
    severity=Severity.FAIL,
    component="nic",
    remedy="check the cable, the NIC and the switch port",
    judge=Judge(
        _link_up, site=SiteValues(lambda _, host: _link_up_values(host), _worded_link_up, typical=_typical_link_up)
    ),
)


LINK_SPEED = Check(
    id="net.link.speed",
    what="the speed of every NIC of the fabric",
    source=f"{NET}/NIC/speed",
    rule="not lower than on most similar hosts",
    severity=Severity.FAIL,
    component="nic",
    far_end=True,
    remedy="reseat the cable, check the port of the switch",
    judge=uniform(
        lambda host: {nic.name: None if nic.state == "down" else nic.speed for nic in host.interfaces},
        "{} Mbit/s",
        below=True,
        numeric=True,
    ),
)


LINK_MTU = Check(
    id="net.link.mtu",
    what="the MTU of every NIC of the fabric",
    source=f"{NET}/NIC/mtu",
    severity=Severity.FAIL,
    remedy="set the same MTU everywhere; long messages are lost on the path",
    judge=uniform(
        lambda host: {nic.name: nic.mtu for nic in host.interfaces}, "MTU {}", absent=NO_INTERFACE, numeric=True
    ),
)


def _link_duplex(check: Check, host: Host) -> Iterable[Result]:
    for nic in host.interfaces:
        duplex = host.read(f"{NET}/{nic.name}/duplex")
        if nic.state == "up" and duplex == "half":
            yield check.failure(host.name, nic.name, "half duplex", "half", "full")
        elif nic.state == "up" and duplex == "full":
            yield check.ok(host.name, nic.name)
        else:
            yield check.skip(host.name, nic.name, "the driver does not report it")


LINK_DUPLEX = Check(
    id="net.link.duplex",
    what="the duplex mode of every NIC of the fabric",
    source=f"{NET}/NIC/duplex",
    rule="not half",
    remedy="enable auto-negotiation at both ends of the cable",
    judge=limit(_link_duplex, NO_INTERFACE),
)


def _rails_count_values(host: Host) -> Mapping[str, Value]:
    return {"": len(host.rails)}


def _is_met_rails_count(value: Value, expected: Value) -> bool:
    return isinstance(value, int) and isinstance(expected, int | float) and value >= expected


def _worded_rails_count(target: str, value: Value) -> str:
    return worded("{} NIC[s] of the fabric", value)


def _rails_count(check: Check, fleet: Fleet) -> Iterator[Result]:
    like = defaultdict(list)
    for host in fleet.hosts:
        like[host.kind].append(host)
    for hosts in like.values():
        having = Counter(nic.name for host in hosts for nic in host.rails)
        nic_counts = Counter(nic.name for host in hosts for nic in host.nics)
        usual = {name: count for name, count in having.items() if count >= LEAST_OTHERS and 2 * count > len(hosts)}
        interfaces = Counter(nic.name for host in hosts for nic in host.interfaces)
        for host in hosts:
            yield from _look_rails_count(check, host, usual, nic_counts, len(hosts))
            yield from _lost_interfaces(check, host, {name: usual[name] for name in usual.keys() & interfaces.keys()})


def _look_rails_count(
    check: Check, host: Host, usual: Mapping[str, int], nic_counts: Mapping[str, int], hosts: int
) -> Iterator[Result]:
    here, rails = {nic.name for nic in host.nics}, {nic.name for nic in host.rails}
    missing = sorted(usual.keys() - here)
    unused = [] if host.snapshot.nics else sorted(usual.keys() & here - rails)
    unusual = rails - usual.keys()
    additional = {
        name for name in unusual if 2 * nic_counts[name] <= hosts
    }  # on few hosts: another name of the same NIC
    if not usual:
        yield check.skip(host.name, "", "no similar hosts to compare with, or NICs have other names on each")
    elif not missing and not unused:
        yield check.ok(host.name, "", value=len(host.rails))
    elif missing and len(additional) >= len(missing):
        yield check.ok(host.name, "", f"named {_some(additional)} here", len(host.rails))
    for name in unused:
        message = f"not a NIC of the fabric here, although it is one on {_others(usual[name])}: check its address"
        yield check.warning(host.name, name, message, None, name)
    for name in missing if len(additional) < len(missing) else ():
        message = f"{name} is missing, {_others(usual[name])} have it"
        yield check.difference(is_clear(usual[name], hosts), host.name, name, message, None, name)


def _lost_interfaces(check: Check, host: Host, usual: Mapping[str, int]) -> Iterator[Result]:
    """Yield a warning for each interface that a host lacks although it has as many devices as others."""
    here, interfaces = {nic.name for nic in host.rails}, {nic.name for nic in host.interfaces}
    lost = sorted(usual.keys() - {nic.name for nic in host.nics})
    if lost and len(interfaces) < len(usual) <= len(here):
        for name in lost:
            message = f"no network interface {name}, {_others(usual[name])} have it: its device is there without one"
            yield check.warning(host.name, name, message, None, name)


RAILS_COUNT = Check(
    id="net.rails.count",
    what="the NICs of the fabric",
    source=f"{NET}, /sys/class/infiniband",
    rule="all NICs that most similar hosts have, with an address if theirs have one",
    severity=Severity.FAIL,
    component="nic",
    remedy="check whether the NIC failed or its driver is not loaded",
    judge=Judge(
        _rails_count,
        site=SiteValues(
            lambda _, host: _rails_count_values(host), _worded_rails_count, numeric=True, is_met=_is_met_rails_count
        ),
    ),
)


def _others(count: int) -> str:
    return plural(count, "other")


def _some(names: Iterable[str], most: int = 3) -> str:
    ordered: Sequence[str] = sorted(names)
    return ", ".join(ordered[:most])
