"""Counters of the fabric's network interfaces: link losses, errors, dropped packets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check
from fablint.preflight.class_values import LEAST_OTHERS
from fablint.preflight.host import NET, Host
from fablint.preflight.judges import among_peers
from fablint.preflight.judges.outputs import NO_INTERFACE
from fablint.snapshot.counter_deltas import Delta

_HOUR = 3600.0
_LIMITS = ((5, _HOUR), (10, 10 * _HOUR))  # flaps within seconds, as in HPE's cxi_healthcheck
_MORE_FLAPS = 3  # than most others, since they were booted
_ERRORS = ("rx_errors", "tx_errors", "rx_crc_errors", "rx_frame_errors")
_MOST_BEFORE = 100  # errors since boot, if no earlier reading is known
_RATE = 1e-7  # errors a packet: Ethernet's 1e-12 a bit (IEEE 802.3), in jumbo frames
_FULL = ("rx_missed_errors", "rx_fifo_errors", "rx_over_errors")  # drivers count the same loss as one or the other
_LOSS, _FEWEST = 1e-6, 10  # drops a packet, drops
_IDLE_LOSS, _TIMES = 1e-3, 10.0  # share of frames of unknown protocols, and factor above that of others


def _flaps_of(check: Check, host: Host) -> Mapping[str, Result | _Flaps]:
    why = "the driver does not count them"
    return {nic.name: _flaps(host, nic.name) or check.skip(host.name, nic.name, why) for nic in host.interfaces}


def _compared_flaps(check: Check, nic: str, of_hosts: Sequence[tuple[Host, _Flaps]]) -> Iterator[Result]:
    like = [flaps for _, flaps in of_hosts]
    usual = median(one.grown.growth for one in like) if len(like) > LEAST_OTHERS else 0
    typical = median(one.total for one in like)
    for item in like:
        growth = item.grown.growth
        message = f"link went down: {item.grown}"
        if any(growth >= most and item.grown.rate >= most / length for most, length in _LIMITS):
            yield check.failure(item.host, nic, message, growth)
        elif growth > usual:
            yield check.warning(item.host, nic, message, growth, usual)
        elif len(like) <= LEAST_OTHERS and _is_frequent(item):
            message = f"link went down {item.total} times since boot, {item.total / _hours(item):.2g} times per hour"
            yield check.warning(item.host, nic, message, item.total)
        elif item.total >= typical + _MORE_FLAPS and (others := _peers(item, like)) is not None:
            message = f"link went down {item.total} times since boot, {others:g} on most others"
            yield check.warning(item.host, nic, message, item.total, others)
        else:
            yield check.ok(item.host, nic, f"{message}, as on most others" if growth else "", growth)


LINK_FLAPS = Check(
    id="net.link.flaps",
    what="link losses of every NIC of the fabric",
    source=f"{NET}/NIC/carrier_down_count, carrier_changes",
    rule=(
        "none since the last reading; below 5 per hour and 10 in 10 hours; not more than on similar hosts since boot, "
        "or without these below 10 in 10 hours"
    ),
    severity=Severity.FAIL,
    component="cable",
    remedy="reseat or replace the cable, check the port of the switch",
    judge=among_peers(_flaps_of, _compared_flaps, NO_INTERFACE),
)


class _Flaps(NamedTuple):
    host: str
    grown: Delta
    total: int  # since boot
    uptime_s: float


def _flaps(host: Host, nic: str) -> _Flaps | None:
    """Count the link losses; drivers of old kernels count losses and recoveries together."""
    at = f"{NET}/{nic}"
    uptime = host.uptime_s or 0.0
    lost, total = host.grown(f"{at}/carrier_down_count"), host.number(f"{at}/carrier_down_count")
    if lost is not None and total is not None:
        return _Flaps(host.name, lost, total, uptime)
    changed, total = host.grown(f"{at}/carrier_changes"), host.number(f"{at}/carrier_changes")
    if changed is None or total is None:
        return None
    return _Flaps(host.name, Delta((changed.growth + 1) // 2, changed.seconds), total // 2, uptime)


def _hours(flaps: _Flaps) -> float:
    return max(flaps.uptime_s / _HOUR, 1.0)


def _is_frequent(flaps: _Flaps) -> bool:
    """Tell whether the link was lost as often since boot as the limit of the longest time allows."""
    most, length = _LIMITS[-1]
    return flaps.uptime_s > 0 and flaps.total >= most and flaps.total >= most / length * _HOUR * _hours(flaps)


def _peers(flaps: _Flaps, like: list[_Flaps]) -> float | None:
    """Return the median of hosts with a comparable uptime if it is much lower; else None."""
    others = [other.total for other in like if other is not flaps and 2 * other.uptime_s >= flaps.uptime_s]
    usual = median(others) if len(others) >= LEAST_OTHERS else None
    return usual if usual is not None and flaps.total >= max(usual + _MORE_FLAPS, 2 * usual) else None


class _Errors(NamedTuple):
    result: Result  # by the growth of the counters
    totals: Mapping[str, int]  # since boot, where no earlier reading is known
    packets: int


def _link_errors(check: Check, host: Host) -> Mapping[str, Result | _Errors]:
    return {nic.name: _link_errors_of(check, host, nic.name) for nic in host.interfaces}


def _link_errors_of(check: Check, host: Host, nic: str) -> Result | _Errors:
    grown = _grown(host, nic, _ERRORS)
    has_growth = any(one.growth for one in grown.values())
    limit = _RATE * _packets(host, nic) if has_growth else 0.0
    bad = {name: one for name, one in grown.items() if one.growth > limit}
    if not grown:
        return check.skip(host.name, nic, "the driver does not count them")
    if bad:
        message = ", ".join(f"{name} {one}" for name, one in bad.items())
        return check.failure(host.name, nic, message, max(one.growth for one in bad.values()), 0)
    names = _ERRORS if host.before is None else ()
    totals = {name: host.number(f"{NET}/{nic}/statistics/{name}") or 0 for name in names}
    packets = sum(host.number(f"{NET}/{nic}/statistics/{side}_packets") or 0 for side in ("rx", "tx"))
    return _Errors(check.ok(host.name, nic), totals, packets)


def _compared_errors(check: Check, nic: str, of_hosts: Sequence[tuple[Host, _Errors]]) -> Iterator[Result]:
    """Compare totals with those of similar hosts, since they may be of a cable before.

    Without similar hosts totals are judged that no exchange of a cable explains.
    """
    has_peers = len(of_hosts) > LEAST_OTHERS
    usual = {name: median(errors.totals.get(name, 0) for _, errors in of_hosts) for name in _ERRORS}
    for host, (result, totals, packets) in of_hosts:
        least = max(_MOST_BEFORE, _RATE * packets)
        most = {name: max(least, _TIMES * usual[name]) if has_peers else _TIMES * least for name in _ERRORS}
        high = {name: total for name, total in totals.items() if total > most[name]}
        if high:
            name, total = max(high.items(), key=lambda item: item[1])
            others = f"{usual[name]:g} on most others" if has_peers else f"{total / max(packets, 1):.2g} of the packets"
            message = f"{name} {total:,} since boot, {others}"
            yield check.failure(host.name, nic, message, total, usual[name] if has_peers else least)
        else:
            yield result


LINK_ERRORS = Check(
    id="net.link.errors",
    what="damaged frames, and frames that could not be sent",
    source=f"{NET}/NIC/statistics",
    rule=(
        f"at most {_RATE:g} of the packets, which is Ethernet's own bit error rate; at the first reading totals not "
        f"far above those of similar hosts, or without these not above {_TIMES:g} times that rate"
    ),
    component="cable",
    remedy="clean or replace cable and transceivers",
    judge=among_peers(_link_errors, _compared_errors, NO_INTERFACE),
)


class _Drops(NamedTuple):
    grown: Delta
    share: float  # of the packets


def _drops(check: Check, host: Host) -> Mapping[str, Result | _Drops]:
    return {nic.name: _drops_of(check, host, nic.name) for nic in host.interfaces}


def _drops_of(check: Check, host: Host, nic: str) -> Result | _Drops:
    lost = _grown(host, nic, (*_FULL, "tx_dropped", "rx_dropped"))
    has_growth = any(one.growth for one in lost.values())
    packets = max(_packets(host, nic) if has_growth else 0, 1)
    dropped = lost.pop("rx_dropped", None)
    name, worst = max(lost.items(), key=lambda pair: pair[1].growth, default=("", None))
    if worst and worst.growth >= _FEWEST and worst.growth > _LOSS * packets:
        return check.failure(host.name, nic, f"{name} {worst}", worst.growth, 0)
    if dropped is None:
        return check.skip(host.name, nic, "the driver does not count them")
    return _Drops(dropped, dropped.growth / packets)


def _compared_drops(check: Check, nic: str, like: Sequence[tuple[Host, _Drops]]) -> Iterator[Result]:
    """Compare with similar hosts, since frames of unsupported protocols are dropped as well."""
    usual = median(drops.share for _, drops in like)
    for host, (dropped, share) in like:
        much = dropped.growth >= _FEWEST and share > max(_IDLE_LOSS, _TIMES * usual)
        if much and len(like) > LEAST_OTHERS:
            message = f"rx_dropped {dropped}, {share:.2g} of the packets, {usual:.2g} on most others"
            yield check.failure(host.name, nic, message, share, usual)
        else:
            yield check.ok(host.name, nic)


LINK_DROPS = Check(
    id="net.link.drops",
    what="packets that a NIC dropped",
    source=f"{NET}/NIC/statistics",
    rule=f"at most {_LOSS:g} of the packets for lack of buffers; for other reasons not far more than on similar hosts",
    follows=("net.link.flaps", "net.link.errors", "net.ping.loss"),
    remedy="enlarge the NIC's rings (ethtool -G), spread its interrupts",
    judge=among_peers(_drops, _compared_drops, NO_INTERFACE),
)


def _grown(host: Host, nic: str, names: Iterable[str]) -> dict[str, Delta]:
    return host.all_grown(f"{NET}/{nic}/statistics", names)


def _packets(host: Host, nic: str) -> int:
    return sum(one.growth for one in _grown(host, nic, ("rx_packets", "tx_packets")).values())
