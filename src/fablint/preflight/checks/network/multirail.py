"""Checks of rails that share a subnet: with default settings Linux drops or misdirects packets between such rails."""

from __future__ import annotations

from collections.abc import Iterable

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.address_owners import siblings
from fablint.preflight.check import Check
from fablint.preflight.host import Host
from fablint.preflight.judges import limit
from fablint.preflight.judges.outputs import unseen
from fablint.preflight.route_lookup import RouteLookup
from fablint.snapshot.parsers.inet import Address
from fablint.snapshot.parsers.proc_files import reverse_path_drops

_CONF = "/proc/sys/net/ipv4/conf"
_NETSTAT = "/proc/net/netstat"
_STRICT = 1
_BEST_ANNOUNCE = 2
_NO_SHARED_SUBNET = "no two rails share a subnet"
_FEWEST, _A_MINUTE = 3, 1 / 60  # drops; single stray packets are ignored


def _rp_filter(check: Check, host: Host) -> Iterable[Result]:
    if host.inet.missing_tables:
        yield unseen(check, host, host.inet.missing_tables)
        return
    for nic, address in siblings(host).items():
        value = _setting(host, nic, "rp_filter")
        if value is None:
            yield check.skip(host.name, nic, "the kernel does not show it")
        elif value != _STRICT or _answers_by(host, address):
            yield check.ok(host.name, nic, value=value)
        else:
            message = f"strict: drops packets to {address.text}; the route to {address.network} leaves by another NIC"
            yield check.failure(host.name, nic, message, value, 2)


RP_FILTER = Check(
    id="net.rp_filter",
    what="the reverse path filter of rails that share a subnet",
    source=f"{_CONF}/{{all,NIC}}/rp_filter, ip -j rule",
    rule="not strict, unless a rule sends answers through the rail that received the request",
    severity=Severity.FAIL,
    remedy="set net.ipv4.conf.all.rp_filter and that of the rails to 2, or add source rules",
    judge=limit(_rp_filter, _NO_SHARED_SUBNET),
)


def _arp_settings(check: Check, host: Host) -> Iterable[Result]:
    if host.inet.addresses.missing:
        yield unseen(check, host, host.inet.addresses)
        return
    for nic, address in siblings(host).items():
        ignore, announce = _setting(host, nic, "arp_ignore"), _setting(host, nic, "arp_announce")
        wrong = []
        if ignore == 0 and not _setting(host, nic, "arp_filter"):
            wrong.append("arp_ignore 0")
        if announce is not None and announce < _BEST_ANNOUNCE:
            wrong.append(f"arp_announce {announce}")
        if ignore is None or announce is None:
            yield check.skip(host.name, nic, "the kernel does not show them")
        elif wrong:
            yield check.failure(host.name, nic, f"{', '.join(wrong)} with several rails in {address.network}")
        else:
            yield check.ok(host.name, nic)


ARP_SETTINGS = Check(
    id="net.arp.settings",
    what="ARP settings of rails that share a subnet",
    source=f"{_CONF}/{{all,NIC}}/{{arp_ignore,arp_announce,arp_filter}}",
    rule="arp_ignore 1 or more (or arp_filter), arp_announce 2",
    remedy="set net.ipv4.conf.all.arp_ignore=1 and arp_announce=2; otherwise each rail answers for the others",
    judge=limit(_arp_settings, _NO_SHARED_SUBNET),
)


def _rpf_drops(check: Check, host: Host) -> Iterable[Result]:
    grown = host.grown(_NETSTAT, reverse_path_drops)
    if grown and grown.growth >= _FEWEST and grown.rate > _A_MINUTE:
        yield check.failure(host.name, "", f"dropped {grown}", grown.growth, 0)
    elif grown:
        yield check.ok(host.name)


RPF_DROPS = Check(
    id="net.rpf.drops",
    what="packets that the reverse path filter dropped",
    source=f"{_NETSTAT}, TcpExt IPReversePathFilter",
    rule=f"fewer than {_FEWEST}, or fewer than one per minute",
    remedy="set rp_filter to 2 on the rails, or correct the routes of the sending hosts",
    judge=limit(_rpf_drops, "the kernel does not show the counter"),
)


def _setting(host: Host, nic: str, name: str) -> int | None:
    """Return the effective setting: the larger of the NIC's own setting and the setting for all."""
    settings = [host.number(f"{_CONF}/{where}/{name}") for where in ("all", nic)]
    return max((value for value in settings if value is not None), default=None)


def _answers_by(host: Host, address: Address) -> bool:
    """Tell whether an answer from an address leaves by the NIC of the address."""
    numbers = {one.number for one in host.inet.addresses.items}
    partner = next((number for number in range(address.last - 1, address.first, -1) if number not in numbers), None)
    route = None if partner is None else RouteLookup(host.inet).find_route(partner, address.number)
    return partner is None or (route is not None and address.nic in route.nics)
