"""Check of the LLDP neighbours of a host among each other: no other host, and as many switches as similar hosts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from fablint.model.names import fold, switch_name
from fablint.model.preflight_results import Result
from fablint.preflight.check import Check, Judge
from fablint.preflight.class_values import Agreement
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host


def _switches(host: Host) -> dict[str, str]:
    """Return the neighbour of each NIC with exactly one."""
    return {nic: ends[0].switch for nic, ends in host.switch_ports.items() if len(ends) == 1}


def _leaves(check: Check, fleet: Fleet) -> Iterator[Result]:
    hosts = {switch_name(host.name) for host in fleet.hosts}
    switches_of_host = {host.name: _switches(host) for host in fleet.hosts}
    counts: dict[tuple[str, int], list[int]] = defaultdict(list)  # by class and rails: switches of each host
    direct = 0
    for host in fleet.hosts:
        switches = switches_of_host[host.name]
        counts[host.kind, len(switches)].append(len(set(switches.values())))
        direct += any(name in hosts for name in switches.values())
    agreed = {key: Agreement.of(values) for key, values in counts.items()}
    for host in fleet.hosts:
        switches = switches_of_host[host.name]
        if not switches:
            yield check.skip(host.name, "", "no LLDP neighbour")
            continue
        others = [nic for nic, name in switches.items() if name in hosts]
        if others and 2 * direct < len(fleet.hosts):  # otherwise hosts are connected back to back
            message = f"connected to the host {switches[others[0]]}, most other hosts to switches"
            yield check.failure(host.name, others[0], message, switches[others[0]])
            continue
        if agreed[host.kind, len(switches)].is_pair and agreed[host.kind, len(switches)].is_divided:
            message = agreed[host.kind, len(switches)].kinds("number of switches {}")
            yield check.warning(host.name, "", message, len(set(switches.values())))
            continue
        usual, number = agreed[host.kind, len(switches)], len(set(switches.values()))
        if usual.usual is not None and number < usual.usual:
            ends = f"{number} switch{'es' * (number > 1)}"
            message = f"{fold(switches)} on {ends}, those of {usual.count} others on {usual.usual}"
            yield check.failure(host.name, "", message, number, usual.usual)
        else:
            yield check.ok(host.name, value=number)


LLDP_LEAVES = Check(
    id="lldp.leaves",
    what="the switches that the NICs of a host are connected to",
    source="lldpcli show neighbors, lldptool -t -n -i NIC",
    rule=(
        "not fewer than on most similar hosts, or the other of two, with as many neighbours; no neighbour is another "
        "host"
    ),
    component="cable",
    root=True,
    remedy="move the cable of one rail to the switch of its plane",
    judge=Judge(_leaves),
)
