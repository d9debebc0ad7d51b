"""Counters of the fabric's network interfaces: link losses, errors, dropped packets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from statistics import median
from typing import NamedTuple

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import LEAST_OTHERS, Check, HostCheck
from fablint.preflight.checks.network.links import ABSENT
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import NET, Host
from fablint.snapshot.counter_deltas import Delta

_HOUR = 3600.0
_LIMITS = ((5, _HOUR), (10, 10 * _HOUR))  # flaps within seconds, as in HPE's cxi_healthcheck
_MORE_FLAPS = 3  # than most others, since they were booted
_ERRORS = ("rx_errors", "tx_errors", "rx_crc_errors", "rx_frame_errors")
_RATE = 1e-7  # errors a packet: Ethernet's 1e-12 a bit (IEEE 802.3), in jumbo frames
_FULL = ("rx_missed_errors", "rx_fifo_errors", "rx_over_errors")  # drivers count the same loss as one or the other
_LOSS, _FEWEST = 1e-6, 10  # drops a packet, drops
_IDLE_LOSS, _TIMES = 1e-3, 10.0  # share of frames of unknown protocols, and factor above that of others


class LinkFlaps(Check):
    id = "net.link.flaps"
    what = "link losses of every NIC of the fabric"
    source = f"{NET}/NIC/carrier_down_count, carrier_changes"
    rule = "none since the last reading; below 5 per hour and 10 in 10 hours; not more than on similar hosts since boot"
    severity = Severity.FAIL
    component = "cable"
    remedy = "reseat or replace the cable, check the port of the switch"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        seen: dict[tuple[str, ...], list[_Flaps]] = defaultdict(list)
        for host in fleet.hosts:
            if not host.interfaces:
                yield self.skip(host.name, "", ABSENT)
            for nic in host.interfaces:
                flaps = _flaps(host, nic.name)
                if flaps is None:
                    yield self.skip(host.name, nic.name, "the driver does not count them")
                else:
                    seen[nic.name, *host.like(nic.name)].append(flaps)
        for (nic_name, *_), like in seen.items():
            yield from self._compared(nic_name, like)

    def _compared(self, nic: str, like: list[_Flaps]) -> Iterator[Result]:
        usual = median(one.grown.growth for one in like) if len(like) > LEAST_OTHERS else 0
        typical = median(one.total for one in like)
        for one in like:
            growth = one.grown.growth
            message = f"link went down: {one.grown}"
            if any(growth >= most and one.grown.rate >= most / length for most, length in _LIMITS):
                yield self.failure(one.host, nic, message, growth)
            elif growth > usual:
                yield self.warning(one.host, nic, message, growth, usual)
            elif one.total >= typical + _MORE_FLAPS and (others := _peers(one, like)) is not None:
                message = f"link went down {one.total} times since boot, {others:g} on most others"
                yield self.warning(one.host, nic, message, one.total, others)
            else:
                yield self.ok(one.host, nic, f"{message}, as on most others" if growth else "", growth)


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


def _peers(one: _Flaps, like: list[_Flaps]) -> float | None:
    """Return the median of hosts with a comparable uptime if it is much lower; else None."""
    others = [other.total for other in like if other is not one and 2 * other.uptime_s >= one.uptime_s]
    usual = median(others) if len(others) >= LEAST_OTHERS else None
    return usual if usual is not None and one.total >= max(usual + _MORE_FLAPS, 2 * usual) else None


class LinkErrors(HostCheck):
    id = "net.link.errors"
    what = "damaged frames, and frames that could not be sent"
    source = f"{NET}/NIC/statistics"
    rule = f"at most {_RATE:g} of the packets, which is Ethernet's own bit error rate"
    severity = Severity.WARN
    component = "cable"
    remedy = "clean or replace cable and transceivers"
    absent = ABSENT

    def look(self, host: Host) -> Iterable[Result]:
        for nic in host.interfaces:
            found = _grown(host, nic.name, _ERRORS)
            some = any(one.growth for one in found.values())
            limit = _RATE * _packets(host, nic.name) if some else 0.0
            bad = {name: one for name, one in found.items() if one.growth > limit}
            if not found:
                yield self.skip(host.name, nic.name, "the driver does not count them")
            elif bad:
                message = ", ".join(f"{name} {one}" for name, one in bad.items())
                yield self.failure(host.name, nic.name, message, max(one.growth for one in bad.values()), 0)
            else:
                yield self.ok(host.name, nic.name)


class LinkDrops(Check):
    id = "net.link.drops"
    what = "packets that a NIC dropped"
    source = f"{NET}/NIC/statistics"
    rule = f"at most {_LOSS:g} of the packets for lack of buffers; for other reasons not far more than on similar hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "enlarge the NIC's rings (ethtool -G), spread its interrupts"
    follows = ("net.link.flaps", "net.link.errors", "net.ping.loss")

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        unwanted: dict[tuple[str, ...], list[tuple[str, Delta, float]]] = defaultdict(list)
        for host in fleet.hosts:
            if not host.interfaces:
                yield self.skip(host.name, "", ABSENT)
            for nic in host.interfaces:
                lost = _grown(host, nic.name, (*_FULL, "tx_dropped", "rx_dropped"))
                some = any(one.growth for one in lost.values())
                packets = max(_packets(host, nic.name) if some else 0, 1)
                dropped = lost.pop("rx_dropped", None)
                name, worst = max(lost.items(), key=lambda pair: pair[1].growth, default=("", None))
                if worst and worst.growth >= _FEWEST and worst.growth > _LOSS * packets:
                    yield self.failure(host.name, nic.name, f"{name} {worst}", worst.growth, 0)
                elif dropped is None:
                    yield self.skip(host.name, nic.name, "the driver does not count them")
                else:
                    unwanted[nic.name, *host.like(nic.name)].append((host.name, dropped, dropped.growth / packets))
        for (nic_name, *_), like in unwanted.items():
            yield from self._compared(nic_name, like)

    def _compared(self, nic: str, like: list[tuple[str, Delta, float]]) -> Iterator[Result]:
        """Compare with similar hosts, since frames of unsupported protocols are dropped as well."""
        usual = median(share for *_, share in like)
        for host, dropped, share in like:
            much = dropped.growth >= _FEWEST and share > max(_IDLE_LOSS, _TIMES * usual)
            if much and len(like) > LEAST_OTHERS:
                message = f"rx_dropped {dropped}, {share:.2g} of the packets, {usual:.2g} on most others"
                yield self.failure(host, nic, message, share, usual)
            else:
                yield self.ok(host, nic)


def _grown(host: Host, nic: str, names: Iterable[str]) -> dict[str, Delta]:
    return host.all_grown(f"{NET}/{nic}/statistics", names)


def _packets(host: Host, nic: str) -> int:
    return sum(one.growth for one in _grown(host, nic, ("rx_packets", "tx_packets")).values())
