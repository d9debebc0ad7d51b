"""Checks of the fabric's network interfaces: number, state, speed, MTU, duplex mode."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fablint.model.names import plural
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import LEAST_OTHERS, Check, HostCheck, UniformCheck, Value
from fablint.preflight.class_values import Agreement, is_clear, worded
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import NET, Host
from fablint.snapshot import NicFact
from fablint.snapshot.fabric_nics import is_fabric

ABSENT = "no network interface of the fabric"
_SET_UP = 1  # IFF_UP


class LinkUp(Check):
    id = "net.link.up"
    what = "the link of every NIC of the fabric"
    source = f"{NET}/NIC/operstate, carrier, flags"
    rule = "up, unless it is unused on most similar hosts as well"
    severity = Severity.FAIL
    component = "nic"
    remedy = "check the cable, the NIC and the switch port"
    expects = True

    def site_values(self, host: Host) -> Mapping[str, Value]:
        return {nic.name: nic.state or None for nic in host.interfaces}

    def typical(self, values: Sequence[Value]) -> Value:
        return "up" if super().typical(values) == "up" else None

    def worded(self, target: str, value: Value) -> str:
        return f"link {value}"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        states: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for host in fleet.hosts:
            for nic in host.interfaces:
                states[nic.name, *host.like(nic.name)].append(nic.state)
        agreed = {key: Agreement.of(like) for key, like in states.items()}
        for host in fleet.hosts:
            if not host.interfaces:
                yield self.skip(host.name, "", ABSENT)
            for nic in host.interfaces:
                yield self._look(host, nic, agreed[nic.name, *host.like(nic.name)])

    def _look(self, host: Host, nic: NicFact, agreed: Agreement) -> Result:
        usual, count = agreed.usual, agreed.count
        flags = host.number(f"{NET}/{nic.name}/flags")
        set_up = flags is None or bool(flags & _SET_UP)
        if not nic.state:
            return self.skip(host.name, nic.name, "the driver reports neither state nor carrier")
        if nic.state == "up":
            return self.ok(host.name, nic.name)
        another = any(one.state == "up" for one in host.interfaces)
        if usual == "up":
            message = f"{'link down' if set_up else 'not configured'}, {_others(count)} up"
            alone = not another or (set_up and is_fabric(nic.name, nic))
            return self.difference(agreed.is_clear or alone, host.name, nic.name, message, "down", "up")
        if not set_up:
            return self.skip(host.name, nic.name, "it is not configured")
        if usual == "down" and another:
            return self.skip(host.name, nic.name, f"no carrier, the same as {_others(count - 1)}")
        if is_fabric(nic.name, nic) or (usual == "down" and not another):
            return self.failure(host.name, nic.name, "link down", "down", "up")
        return self.skip(host.name, nic.name, "no carrier, and no similar host to compare with")


class LinkSpeed(UniformCheck):
    id = "net.link.speed"
    what = "the speed of every NIC of the fabric"
    source = f"{NET}/NIC/speed"
    rule = "not lower than on most similar hosts"
    severity = Severity.FAIL
    component = "nic"
    remedy = "reseat the cable, check the port of the switch"
    words = "{} Mbit/s"
    numeric = True
    below = True
    far_end = True

    def values(self, host: Host) -> Mapping[str, Any]:
        return {nic.name: None if nic.state == "down" else nic.speed for nic in host.interfaces}


class LinkMtu(UniformCheck):
    id = "net.link.mtu"
    what = "the MTU of every NIC of the fabric"
    source = f"{NET}/NIC/mtu"
    rule = "the same as on most similar hosts"
    severity = Severity.FAIL
    component = "config"
    remedy = "set the same MTU everywhere; long messages are lost on the path"
    words = "MTU {}"
    numeric = True
    absent = ABSENT

    def values(self, host: Host) -> Mapping[str, Any]:
        return {nic.name: nic.mtu for nic in host.interfaces}


class LinkDuplex(HostCheck):
    id = "net.link.duplex"
    what = "the duplex mode of every NIC of the fabric"
    source = f"{NET}/NIC/duplex"
    rule = "not half"
    severity = Severity.WARN
    component = "config"
    remedy = "enable auto-negotiation at both ends of the cable"
    absent = ABSENT

    def look(self, host: Host) -> Iterable[Result]:
        for nic in host.interfaces:
            duplex = host.read(f"{NET}/{nic.name}/duplex")
            if nic.state == "up" and duplex == "half":
                yield self.failure(host.name, nic.name, "half duplex", "half", "full")
            elif nic.state == "up" and duplex == "full":
                yield self.ok(host.name, nic.name)
            else:
                yield self.skip(host.name, nic.name, "the driver does not report it")


class RailsCount(Check):
    id = "net.rails.count"
    what = "the NICs of the fabric"
    source = f"{NET}, /sys/class/infiniband"
    rule = "all NICs that most similar hosts have, with an address if theirs have one"
    severity = Severity.FAIL
    component = "nic"
    remedy = "check whether the NIC failed or its driver is not loaded"
    expects = True
    numeric = True

    def site_values(self, host: Host) -> Mapping[str, Value]:
        return {"": len(host.rails)}

    def is_met(self, value: Value, expected: Value) -> bool:
        return isinstance(value, int) and isinstance(expected, int | float) and value >= expected

    def worded(self, target: str, value: Value) -> str:
        return worded("{} NIC[s] of the fabric", value)

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        like = defaultdict(list)
        for host in fleet.hosts:
            like[host.kind].append(host)
        for hosts in like.values():
            having = Counter(nic.name for host in hosts for nic in host.rails)
            known = Counter(nic.name for host in hosts for nic in host.nics)
            usual = {name: count for name, count in having.items() if count >= LEAST_OTHERS and 2 * count > len(hosts)}
            for host in hosts:
                yield from self._look(host, usual, known, len(hosts))

    def _look(self, host: Host, usual: Mapping[str, int], known: Mapping[str, int], of: int) -> Iterator[Result]:
        here, rails = {nic.name for nic in host.nics}, {nic.name for nic in host.rails}
        missing = sorted(usual.keys() - here)
        unused = [] if host.snapshot.nics else sorted(usual.keys() & here - rails)
        own = rails - usual.keys()
        additional = {name for name in own if 2 * known[name] <= of}  # on few hosts: another name of the same NIC
        if not usual:
            yield self.skip(host.name, "", "no similar hosts to compare with, or NICs have other names on each")
        elif not missing and not unused:
            yield self.ok(host.name, "", value=len(host.rails))
        elif missing and len(additional) >= len(missing):
            yield self.ok(host.name, "", f"named {_some(additional)} here", len(host.rails))
        for name in unused:
            message = f"not a NIC of the fabric here, although it is one on {_others(usual[name])}: check its address"
            yield self.warning(host.name, name, message, None, name)
        for name in missing if len(additional) < len(missing) else ():
            message = f"{name} is missing, {_others(usual[name])} have it"
            yield self.difference(is_clear(usual[name], of), host.name, name, message, None, name)


def _others(count: int) -> str:
    return plural(count, "other")


def _some(names: Iterable[str], most: int = 3) -> str:
    ordered: Sequence[str] = sorted(names)
    return ", ".join(ordered[:most])
