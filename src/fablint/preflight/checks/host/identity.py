"""Checks of host identity: unique machine and name, own addresses, clock, and plane of each rail."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from statistics import median

from fablint.model.host_name import HostName, unified
from fablint.model.names import fold
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.address_owners import comparable
from fablint.preflight.check import Check, Judge
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot.host_snapshot import BOOT

_HOSTNAME = "/proc/sys/kernel/hostname"
_MACHINE, _SERIAL = "/etc/machine-id", "/sys/devices/virtual/dmi/id/product_serial"
_FEWEST_LETTERS, _MOST_HOSTS = 5, 2  # of a serial number; hosts with the same number: more have a vendor's default
_PEERS = 4  # other hosts, for a comparison of clocks
_CLOCK_S = 60.0  # all hosts are queried at once, and answer within 20 s
_PLANE, _CLEAR = 2, 0.8  # other hosts' NICs of a rail, and their share, for a switch to belong to it
_SURE = 3  # NICs of a rail on a switch, for a failure


def _host_identity(check: Check, fleet: Fleet) -> Iterator[Result]:
    twice = dict(_twice(fleet.hosts))
    rest = [host for host in fleet.hosts if host.name not in twice]
    doubtful = {**dict(_ids(rest)), **dict(_called(rest))}
    for host in fleet.hosts:
        if host.name in twice:
            yield check.failure(host.name, "", twice[host.name])
        elif host.name in doubtful:
            yield check.warning(host.name, "", doubtful[host.name])
        elif not host.read(_HOSTNAME) and not host.read(BOOT):
            yield check.skip(host.name, "", "neither its name nor its boot id can be read")
        else:
            yield check.ok(host.name)


HOST_IDENTITY = Check(
    id="host.identity",
    what="whether every name is a different machine",
    source=f"{_HOSTNAME}, {BOOT}, {_MACHINE}, {_SERIAL} (root), MAC addresses of the fabric's NICs",
    rule="no machine with two names; no host name, machine id or serial number of two machines",
    severity=Severity.FAIL,
    remedy="list every machine once; give every machine a unique name and machine id",
    judge=Judge(_host_identity),
)


def _own(host: Host) -> HostName:
    return HostName(host.read(_HOSTNAME) or "")


def _has_own_name(host: Host) -> bool:
    return _own(host).is_same(HostName(host.name))


def _twice(hosts: Sequence[Host]) -> Iterator[tuple[str, str]]:
    """Yield additional names of a machine: those that are not its own host name."""
    for group in _groups(hosts, _machine):
        right = next((host for host in group if _has_own_name(host)), group[0])
        for host in group:
            if host is not right:
                yield host.name, f"is the same machine as {right.name}: same boot, same MACs"


def _called(hosts: Sequence[Host]) -> Iterator[tuple[str, str]]:
    """Yield machines with the host name of another machine."""
    spelled = unified(_own(host).text for host in hosts)
    for group in _groups(hosts, lambda host: spelled[_own(host).text]):
        same = all(map(_has_own_name, group))
        for host in group:
            if same or not _has_own_name(host):
                yield host.name, f"has the host name {_own(host).short}, the same as {_others(group, host)}"


def _ids(hosts: Sequence[Host]) -> Iterator[tuple[str, str]]:
    """Yield machines with the id or serial number of another machine, except containers of one machine."""
    for words, path in (("serial number", _SERIAL), ("machine id", _MACHINE)):
        for group in _groups(hosts, partial(_figure, path=path)):
            containers = len({host.read(BOOT) for host in group}) < len(group)
            if not containers and (path == _MACHINE or len(group) <= _MOST_HOSTS):
                for host in group:
                    yield host.name, f"has the same {words} as {_others(group, host)}"


def _own_name(check: Check, fleet: Fleet) -> Iterator[Result]:
    owners: dict[str, set[str]] = defaultdict(set)
    for host in fleet.hosts:
        for address in host.inet.addresses.items:
            owners[address.text].add(host.name)
    for host in fleet.hosts:
        name = host.read(_HOSTNAME) or host.name
        answers = host.snapshot.addresses_of.get(name)
        addresses = {address.text for address in host.inet.addresses.items}
        away = [one for one in answers or () if len(owners.get(one, ())) == 1 and host.name not in owners[one]]
        if not answers or not addresses:
            yield check.skip(host.name, "", "its own name was not looked up, or has no address")
        elif away and not addresses & set(answers):
            (other,) = owners[away[0]]
            message = f"its own name {name} resolves to {away[0]}, an address of {other}"
            yield check.failure(host.name, "", message, away[0])
        else:
            yield check.ok(host.name)


OWN_NAME = Check(
    id="host.name",
    what="the addresses that a host finds for its own name",
    source="getaddrinfo of the host's name; ip -j addr of all hosts",
    rule="not an address of another host",
    severity=Severity.FAIL,
    remedy="correct the entry in /etc/hosts or DNS; programs that listen on their own name use another host's address",
    judge=Judge(_own_name),
)


def _clock_peers(check: Check, fleet: Fleet) -> Iterator[Result]:
    times = [host.snapshot.time for host in fleet.hosts if host.snapshot.time]
    middle = median(times) if times else 0.0
    near = sum(abs(one - middle) <= _CLOCK_S for one in times)
    enough = near > _PEERS - 1 and 2 * near > len(times)  # snapshots of several days have no common time
    for host in fleet.hosts:
        off = host.snapshot.time - middle
        if not enough or not host.snapshot.time:
            yield check.skip(host.name, "", "too few snapshots were taken at the same time")
        elif abs(off) > _CLOCK_S:
            message = f"clock {abs(off):,.0f} s {'ahead of' if off > 0 else 'behind'} that of {near} others"
            yield check.failure(host.name, "", message, off, 0.0, "s")
        else:
            yield check.ok(host.name)


CLOCK_PEERS = Check(
    id="host.time.peers",
    what="the clock, compared with the clocks of the other hosts",
    source="time() at the start of the snapshot",
    rule=f"within {_CLOCK_S:g} s of the median, the accuracy of snapshots that are taken at the same time",
    remedy="start a time service (chronyd), and check its sources",
    judge=Judge(_clock_peers),
)


def _planes(check: Check, fleet: Fleet) -> Iterator[Result]:
    ends = {host.name: {nic: ports[0].switch for nic, ports in host.switch_ports.items() if len(ports) == 1}
            for host in fleet.hosts}  # fmt: skip
    rails: dict[str, Counter[str]] = defaultdict(Counter)  # of a switch: NICs of each name
    for of_nics in ends.values():
        for nic, switch in of_nics.items():
            rails[switch][nic] += 1
    for host in fleet.hosts:
        of_nics = ends[host.name]
        if len(of_nics) <= 1:
            yield check.skip(host.name, "", "fewer than two rails have a neighbour")
            continue
        wrong = {nic: plane for nic, switch in of_nics.items() if (plane := _plane(rails[switch], nic))}
        for nic, switch in of_nics.items():
            other = wrong.get(nic, "")
            if other and wrong.get(other) == nic:
                message = (
                    f"connected to {switch}, where {rails[switch][other]} other hosts have {other}: the cables of "
                    f"{nic} and {other} are swapped"
                )
                clear = min(rails[switch][other], rails[of_nics[other]][nic]) >= _SURE
                yield check.difference(clear, host.name, nic, message, switch)
            else:
                yield check.ok(host.name, nic, value=switch)


PLANES = Check(
    id="lldp.planes",
    what="the switch plane that every rail is connected to",
    source="lldpcli show neighbors, lldptool -t -n -i NIC",
    rule="the plane of the same rail on other hosts (no swapped cables); a warning if fewer than 3 hosts show it",
    severity=Severity.FAIL,
    component="cable",
    root=True,
    remedy="exchange the two cables of the host",
    judge=Judge(_planes),
)


def _plane(others: Mapping[str, int], nic: str) -> str:
    """Return the rail of nearly all other NICs on a switch, if it is not the rail of this single NIC; else ''."""
    most = max(others, key=lambda one: others[one])
    single = others[nic] == 1 and others[most] >= _PLANE
    return most if single and most != nic and others[most] >= _CLEAR * (sum(others.values()) - 1) else ""


def _machine(host: Host) -> tuple[str, ...] | None:
    """Return the boot id and the MACs of the fabric, which identify a machine; containers share the boot id."""
    boot = host.read(BOOT)
    macs = sorted(comparable(nic.mac) for nic in host.interfaces if nic.mac)
    return (boot, *macs) if boot and macs else None


def _figure(host: Host, path: str) -> str | None:
    """Return an id or serial number; None for a vendor's default value."""
    text = (host.read(path) or "").strip()
    default = len(set(text)) < _FEWEST_LETTERS or not any(letter.isdigit() for letter in text)
    return None if default or text.startswith(("0123456789", "123456789")) else text


def _groups(hosts: Sequence[Host], key: Callable[[Host], Hashable]) -> list[list[Host]]:
    """Group hosts by a key; return the groups of several hosts."""
    result: dict[Hashable, list[Host]] = defaultdict(list)
    for host in hosts:
        if value := key(host):
            result[value].append(host)
    return [group for group in result.values() if len(group) > 1]


def _others(group: Sequence[Host], host: Host) -> str:
    return fold(one.name for one in group if one is not host)
