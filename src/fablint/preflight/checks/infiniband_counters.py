"""Ports of RDMA devices: what their counters say."""

from __future__ import annotations

from collections.abc import Iterable

from fablint.fitness import Result, Severity
from fablint.preflight.check import HostCheck
from fablint.preflight.checks.growth import excess
from fablint.preflight.checks.infiniband import NO_PORT
from fablint.preflight.counters import saturated
from fablint.preflight.host import INFINIBAND, Host

_COUNTERS = f"{INFINIBAND}/DEVICE/ports/PORT"
LIMITS = {  # as infiniband-diags ships them; of the link
    "symbol_error": 10,
    "link_error_recovery": 10,
    "link_downed": 10,
    "port_rcv_errors": 10,
    "local_link_integrity_errors": 10,
    "excessive_buffer_overrun_errors": 10,
    "port_rcv_remote_physical_errors": 100,
    "port_rcv_switch_relay_errors": 100,
    "port_xmit_discards": 100,
    "port_xmit_constraint_errors": 100,
    "port_rcv_constraint_errors": 100,
    "VL15_dropped": 100,
}
_OF_LINK = 10  # counters with this limit tell of the link, the others of what goes through it


class IbErrors(HostCheck):
    id = "ib.errors"
    what = "error counters of every port of an RDMA device"
    source = f"{_COUNTERS}/counters"
    rule = "growth since the last time below infiniband-diags' limits; that much while it is looked at is a failure"
    severity = Severity.FAIL
    component = "cable"
    mend = "clean and reseat the cable, then replace it; clear counters that are full with perfquery -R"
    absent = NO_PORT

    def look(self, host: Host) -> Iterable[Result]:
        for device, port in host.ports:
            at = f"{INFINIBAND}/{device}/ports/{port}/counters/"
            if not any(host.grown_now(at + name) for name in LIMITS):
                yield self.skipped(host.name, f"{device}/{port}", "its counters cannot be read twice")
            else:
                yield self._judged(host, f"{device}/{port}", at)

    def _judged(self, host: Host, target: str, at: str) -> Result:
        found = {
            name: grown for name, limit in LIMITS.items() if (grown := excess(host, at + name, now=limit, since=limit))
        }
        full = [
            name for name in LIMITS if name not in found and saturated(at + name, host.snapshot.read_later(at + name))
        ]
        if not found and not full:
            return self.passed(host.name, target)
        words = [f"{name} {grown}" for name, grown in found.items()]
        words += [f"{name} is full: at least {host.read(at + name)} since it was cleared" for name in full]
        failing = any(LIMITS[name] == _OF_LINK and grown == host.grown_now(at + name) for name, grown in found.items())
        say = self.wrong if failing else self.warned
        return say(host.name, target, "; ".join(words[:3]), max((grown.growth for grown in found.values()), default=0))


class IbCongestion(HostCheck):
    id = "ib.congestion"
    what = "how long every port had something to send and could not"
    source = f"{_COUNTERS}/counters/port_xmit_wait"
    rule = "told, not judged: it is congestion, no error"
    severity = Severity.INFO
    component = "route"
    mend = "compare with slow pairs: many senders to one host, or a route that many share"
    absent = NO_PORT

    def look(self, host: Host) -> Iterable[Result]:
        for device, port in host.ports:
            grown = host.grown_now(f"{INFINIBAND}/{device}/ports/{port}/counters/port_xmit_wait")
            if grown is None:
                yield self.skipped(host.name, f"{device}/{port}", "port_xmit_wait cannot be read twice")
            else:
                words = f"waited {grown.rate:.3g} ticks/s" if grown.growth else ""
                yield self.passed(host.name, f"{device}/{port}", words, grown.rate, "ticks/s")


class IbLoss(HostCheck):
    id = "ib.roce.loss"
    what = "packets that were sent again, because they or their answers were lost"
    source = f"{_COUNTERS}/hw_counters/packet_seq_err, out_of_sequence, local_ack_timeout_err"
    rule = "none while it is looked at, fewer than 10 since the last time"
    severity = Severity.WARN
    component = "config"
    mend = "RoCE: look at PFC, ECN and buffers along the way; InfiniBand: look at link errors"
    absent = "no RDMA device that counts them"

    _NAMES = ("packet_seq_err", "out_of_sequence", "local_ack_timeout_err")

    def look(self, host: Host) -> Iterable[Result]:
        for device, port in host.ports:
            at = f"{INFINIBAND}/{device}/ports/{port}/hw_counters/"
            if not any(host.grown_now(at + name) for name in self._NAMES):
                continue
            found = {name: grown for name in self._NAMES if (grown := excess(host, at + name, now=1, since=10))}
            words = ", ".join(f"{name} {grown}" for name, grown in found.items())
            if found:
                most = max(grown.growth for grown in found.values())
                yield self.wrong(host.name, f"{device}/{port}", words, most, 0)
            else:
                yield self.passed(host.name, f"{device}/{port}")
