"""Checks of the counters of RDMA ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check
from fablint.preflight.host import INFINIBAND, Host
from fablint.preflight.judges import growth, limit
from fablint.preflight.judges.growth import DIAGS_LIMITS, CountedPart, Excess, Limit
from fablint.preflight.judges.outputs import NO_RDMA_DEVICE
from fablint.snapshot.counter_deltas import saturated

_COUNTERS = f"{INFINIBAND}/DEVICE/ports/PORT"
_OF_LINK = 10  # limit of counters of the link; the others count packets


_FILES = {name: name for name in DIAGS_LIMITS}


def _judged_ib_errors(check: Check, host: Host, part: CountedPart, excess: Excess) -> Result:
    full = {
        name: text
        for name in part.files
        if name not in excess.grown
        and saturated(part.path(name), text := host.snapshot.read_later(part.path(name)) or "")
    }
    totals = {name: text for name, text in excess.totals.items() if name not in full}
    words = Excess(excess.grown, totals).words()
    words += [f"{name} is saturated: at least {text} since it was cleared" for name, text in full.items()]
    if not words:
        return check.ok(host.name, part.target)
    failing = any(
        DIAGS_LIMITS[name] == _OF_LINK and grown == host.grown_now(part.path(name))
        for name, grown in excess.grown.items()
    )
    say = check.failure if failing else check.warning
    return say(host.name, part.target, "; ".join(words[:3]), excess.most)


IB_ERRORS = Check(
    id="ib.errors",
    what="error counters of every port of an RDMA device",
    source=f"{_COUNTERS}/counters",
    rule=(
        "growth per hour below the limits of infiniband-diags; as much during the snapshot is a failure. At the first "
        "reading totals not far above those of similar hosts"
    ),
    severity=Severity.FAIL,
    component="cable",
    remedy="clean and reseat the cable, then replace it; clear saturated counters with perfquery -R",
    judge=growth(
        {name: Limit(limit, limit) for name, limit in DIAGS_LIMITS.items()},
        lambda host: _ports(host, "counters", _FILES, "its counters cannot be read twice"),
        _judged_ib_errors,
        NO_RDMA_DEVICE,
    ),
)


def _ports(host: Host, folder: str, files: Mapping[str, str], why_not: str) -> Iterable[CountedPart]:
    """Yield the counters of every port, or the reason why none was read twice."""
    for port in host.ports:
        part = CountedPart(port.target, f"{port.folder}/{folder}", files)
        yield part if part.grows(host) else part._replace(why_not=why_not)


def _ib_congestion(check: Check, host: Host) -> Iterable[Result]:
    for port in host.ports:
        grown = host.grown_now(f"{port.folder}/counters/port_xmit_wait")
        if grown is None:
            yield check.skip(host.name, port.target, "port_xmit_wait cannot be read twice")
        else:
            words = f"waited {grown.rate:.3g} ticks/s" if grown.growth else ""
            yield check.ok(host.name, port.target, words, grown.rate, "ticks/s")


IB_CONGESTION = Check(
    id="ib.congestion",
    what="the time for which every port had data to send but no credits",
    source=f"{_COUNTERS}/counters/port_xmit_wait",
    rule="reported, not judged: congestion is not an error",
    severity=Severity.INFO,
    component="route",
    remedy="compare with slow pairs: many senders to one host, or a route with many pairs",
    judge=limit(_ib_congestion, NO_RDMA_DEVICE),
)
