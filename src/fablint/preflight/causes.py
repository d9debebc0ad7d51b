"""Common causes of results on many hosts: a switch, an image, a name server or a rack.

The results of a check have a common cause if the affected hosts are nearly the hosts that share a property, and the
other hosts of the check do not have it. Such results become one finding about the cause.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress, repeat
from operator import is_not, itemgetter

from fablint.model.host_name import HostName
from fablint.model.names import rack_name, switch_name
from fablint.model.preflight_results import Outcome, Result
from fablint.preflight.check import Check
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot.parsers.ama import decode
from fablint.snapshot.parsers.proc_files import boot_images, name_servers, system_name
from fablint.text.sanitise import shortened

LEAST_HOSTS = 3  # with the result, and at least as many without it
_OVERLAP = 0.8  # share of the hosts with the result, and of the hosts with the property
_WRONG = (Outcome.FAIL, Outcome.WARN)
_JUDGED = (*_WRONG, Outcome.PASS)
_MAX_NAME = 60
_OUTCOME = itemgetter(Result._fields.index("outcome"))


def with_causes(results: Sequence[Result], fleet: Fleet, checks: Sequence[Check]) -> list[Result]:
    """Return the results with their common causes. A failure that the far end of a cable causes becomes a warning."""
    rules = {check.id: check for check in checks}
    hosts: dict[str, set[str]] = defaultdict(set)
    for result in _not_passed(results):
        if result.outcome in _WRONG:
            hosts[result.check].add(result.host)
    judged: dict[str, set[str]] = {check: set() for check, names in hosts.items() if len(names) >= LEAST_HOSTS}
    for result in results if judged else ():
        if result.check in judged and result.outcome in _JUDGED:
            judged[result.check].add(result.host)
    many = [check for check, names in judged.items() if len(hosts[check]) <= len(names) - LEAST_HOSTS]
    shared = {kind: _shared(fleet, find) for kind, find in _KINDS.items()} if many else {}
    causes = {check: cause for check in many if (cause := _cause(rules[check], hosts[check], judged[check], shared))}
    return [_with_cause(one, rules[one.check], causes) for one in results] if causes else list(results)


def _not_passed(results: Sequence[Result]) -> Iterator[Result]:
    """Yield the results that are no pass. Most of 3 million are passes: no Python code runs for these."""
    return compress(results, map(is_not, map(_OUTCOME, results), repeat(Outcome.PASS)))


def _with_cause(result: Result, check: Check, causes: Mapping[str, tuple[str, frozenset[str]]]) -> Result:
    cause, hosts = causes.get(result.check, ("", frozenset()))
    if result.outcome not in _WRONG or result.host not in hosts:
        return result
    outcome = Outcome.WARN if check.far_end and cause.startswith(_SWITCH) else result.outcome
    return result._replace(outcome=outcome, cause=cause)


def _cause(
    check: Check, wrong: set[str], judged: set[str], shared: Mapping[str, Mapping[str, set[str]]]
) -> tuple[str, frozenset[str]] | None:
    """Return what the hosts with a result share, and the hosts that share it."""
    of_cables = check.component in ("cable", "nic", "link", "route")
    for kind in _OF_CABLES if of_cables else _OF_SETTINGS:
        for name, having in shared[kind].items():
            both, examined = wrong & having, having & judged
            enough = len(both) >= max(LEAST_HOSTS, _OVERLAP * len(examined), _OVERLAP * len(wrong))
            if enough and len(judged - having) >= LEAST_HOSTS:
                return f"{kind} {name}", frozenset(both)
    return None


def _shared(fleet: Fleet, find: Callable[[Fleet, Host], Iterator[str]]) -> Mapping[str, set[str]]:
    """Group hosts by a shared property."""
    result: dict[str, set[str]] = defaultdict(set)
    for host in fleet.hosts:
        for name in find(fleet, host):
            if name:
                result[shortened(name, _MAX_NAME)].add(host.name)
    return {name: hosts for name, hosts in result.items() if len(hosts) >= LEAST_HOSTS}


def _switches(fleet: Fleet, host: Host) -> Iterator[str]:
    """Yield the switches of a host from the topology, from LLDP, or from Slingshot's algorithmic addresses."""
    yield from {fleet.topology.host_switch.get(host.name, "")} if fleet.topology and not fleet.topology.inferred else ()
    rails = {nic.name for nic in host.interfaces}
    neighbours = {switch_name(one.name) for one in host.neighbours if one.port in rails}
    places = {place.switch_name for nic in host.interfaces if (place := decode(nic.mac))}
    yield from neighbours or places


def _images(_: Fleet, host: Host) -> Iterator[str]:
    """Yield kernel, operating system and boot image, and the kernel alone."""
    kernel = host.snapshot.kernel or host.read("/proc/sys/kernel/osrelease") or ""
    booted = boot_images(host.read("/proc/cmdline"))
    yield " ".join(filter(None, [kernel, system_name(host.read("/etc/os-release")), *booted[:1]]))
    if kernel:
        yield kernel


def _name_servers(_: Fleet, host: Host) -> Iterator[str]:
    yield from name_servers(host.read("/etc/resolv.conf"))


def _racks(_: Fleet, host: Host) -> Iterator[str]:
    yield rack_name(HostName(host.name).short)


_SWITCH = "switch"
_KINDS: Mapping[str, Callable[[Fleet, Host], Iterator[str]]] = {
    _SWITCH: _switches,
    "image": _images,
    "name server": _name_servers,
    "rack": _racks,
}
_OF_CABLES = (_SWITCH, "rack", "image")
_OF_SETTINGS = ("image", "name server", "rack", _SWITCH)
