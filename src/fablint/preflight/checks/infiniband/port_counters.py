"""Checks of the counters of RDMA ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import HostCheck
from fablint.preflight.checks.growth import CountedPart, Excess, GrowthCheck, Limit
from fablint.preflight.checks.infiniband.ports import NO_PORT
from fablint.preflight.host import INFINIBAND, Host
from fablint.snapshot.counter_deltas import saturated

_COUNTERS = f"{INFINIBAND}/DEVICE/ports/PORT"
LIMITS = {  # defaults of infiniband-diags; errors of the link
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
_OF_LINK = 10  # limit of counters of the link; the others count packets


_FILES = {name: name for name in LIMITS}


class IbErrors(GrowthCheck):
    id = "ib.errors"
    what = "error counters of every port of an RDMA device"
    source = f"{_COUNTERS}/counters"
    rule = (
        "growth per hour below the limits of infiniband-diags; as much during the snapshot is a failure. At the first "
        "reading totals not far above those of similar hosts"
    )
    severity = Severity.FAIL
    component = "cable"
    remedy = "clean and reseat the cable, then replace it; clear saturated counters with perfquery -R"
    absent = NO_PORT
    limits: ClassVar = {name: Limit(limit, limit) for name, limit in LIMITS.items()}

    def parts(self, host: Host) -> Iterable[CountedPart]:
        return _ports(host, "counters", _FILES, "its counters cannot be read twice")

    def judged(self, host: Host, part: CountedPart, found: Excess) -> Result:
        full = {
            name: text
            for name in part.files
            if name not in found.grown
            and saturated(part.path(name), text := host.snapshot.read_later(part.path(name)) or "")
        }
        totals = {name: text for name, text in found.totals.items() if name not in full}
        words = Excess(found.grown, totals).words()
        words += [f"{name} is saturated: at least {text} since it was cleared" for name, text in full.items()]
        if not words:
            return self.ok(host.name, part.target)
        failing = any(
            LIMITS[name] == _OF_LINK and grown == host.grown_now(part.path(name)) for name, grown in found.grown.items()
        )
        say = self.failure if failing else self.warning
        return say(host.name, part.target, "; ".join(words[:3]), found.most)


def _ports(host: Host, folder: str, files: Mapping[str, str], why_not: str) -> Iterable[CountedPart]:
    """Yield the counters of every port, or the reason why none was read twice."""
    for device, port in host.ports:
        part = CountedPart(f"{device}/{port}", f"{INFINIBAND}/{device}/ports/{port}/{folder}", files)
        yield part if part.grows(host) else part._replace(why_not=why_not)


class IbCongestion(HostCheck):
    id = "ib.congestion"
    what = "the time for which every port had data to send but no credits"
    source = f"{_COUNTERS}/counters/port_xmit_wait"
    rule = "reported, not judged: congestion is not an error"
    severity = Severity.INFO
    component = "route"
    remedy = "compare with slow pairs: many senders to one host, or a route with many pairs"
    absent = NO_PORT

    def look(self, host: Host) -> Iterable[Result]:
        for device, port in host.ports:
            grown = host.grown_now(f"{INFINIBAND}/{device}/ports/{port}/counters/port_xmit_wait")
            if grown is None:
                yield self.skip(host.name, f"{device}/{port}", "port_xmit_wait cannot be read twice")
            else:
                words = f"waited {grown.rate:.3g} ticks/s" if grown.growth else ""
                yield self.ok(host.name, f"{device}/{port}", words, grown.rate, "ticks/s")


class IbLoss(GrowthCheck):
    id = "ib.roce.loss"
    what = "packets that were retransmitted after a loss"
    source = f"{_COUNTERS}/hw_counters/packet_seq_err, out_of_sequence, local_ack_timeout_err"
    rule = (
        "none during the snapshot, fewer than 10 in an hour; at the first reading totals not far above those of peers"
    )
    severity = Severity.WARN
    component = "config"
    remedy = "RoCE: check PFC, ECN and buffers along the path; InfiniBand: check link errors"
    absent = "no RDMA device with these counters"

    limits: ClassVar = dict.fromkeys(("packet_seq_err", "out_of_sequence", "local_ack_timeout_err"), Limit(1, 10))
    _FILES: ClassVar = {name: name for name in limits}

    def parts(self, host: Host) -> Iterable[CountedPart]:
        return [one for one in _ports(host, "hw_counters", self._FILES, "none") if not one.why_not]

    def judged(self, host: Host, part: CountedPart, found: Excess) -> Result:
        if words := found.words():
            return self.failure(host.name, part.target, ", ".join(words), found.most, 0)
        return self.ok(host.name, part.target)
