"""Counters of NIC drivers: damaged symbols and frames, timeouts, and frames dropped for lack of buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fablint.model.preflight_results import Result
from fablint.preflight.check import TIMED_OUT, Check
from fablint.preflight.host import Host
from fablint.preflight.judges import among_peers
from fablint.preflight.judges.growth import third_quartile
from fablint.preflight.judges.outputs import NO_INTERFACE, without_answer
from fablint.snapshot.parsers.driver_counters import error_counters, is_damage, is_timeout
from fablint.snapshot.parsers.kernel_log import DAY_S

_FEWEST_PEERS = 4
_TIMES = 10  # as many as most similar NICs
_A_DAY = 100  # on average since the boot
_NOW = 10  # in some seconds


class _Counted(NamedTuple):
    host: Host
    totals: Mapping[str, int]
    grown: Mapping[str, int]  # between two readings


def _counted(check: Check, host: Host) -> Mapping[str, Result | _Counted]:
    return {nic.name: _counted_of(check, host, nic.name) for nic in host.interfaces}


def _counted_of(check: Check, host: Host, nic: str) -> Result | _Counted:
    first, last = (host.command(f"{name}/{nic}") for name in ("ethtool-S", "ethtool-S-later"))
    before, after = error_counters(first.text), error_counters(last.text)
    if TIMED_OUT in (first.error, last.error):
        return check.error(host.name, nic, f"ethtool: {TIMED_OUT}")
    if not after or first.status or last.status:
        why = without_answer(last) if last.status != 0 else "its driver does not count these errors"
        return check.skip(host.name, nic, f"ethtool: {why}")
    grown = {name: after[name] - before[name] for name in after if after[name] > before.get(name, 1 << 64)}
    return _Counted(host, after, grown)


def _compared(check: Check, nic: str, of_hosts: Sequence[tuple[Host, _Counted]]) -> Iterator[Result]:
    like = [counted for _, counted in of_hosts]
    usual = {name: third_quartile([one.totals.get(name, 0) for one in like]) for one in like for name in one.totals}
    growing = {name: third_quartile([one.grown.get(name, 0) for one in like]) for one in like for name in one.grown}
    for item in like:
        days = (item.host.uptime_s or 0.0) / DAY_S
        messages = [
            f"{name} {count} in some seconds"
            for name, count in item.grown.items()
            if is_timeout(name)
            or (count >= _NOW and (is_damage(name) or len(like) == 1 or count > _TIMES * growing[name]))
        ]
        if len(like) > _FEWEST_PEERS:
            messages += [
                f"{name} {total:,} so far, at most {usual[name]:,.0f} on most of {len(like)} hosts"
                for name, total in item.totals.items()
                if total >= max(_TIMES * max(usual[name], 1), _A_DAY * max(days, 1))
            ]
        elif item.host.uptime_s is not None:
            messages += [
                f"{name} {total:,} since boot, {total / max(days, 1):,.0f} per day"
                for name, total in item.totals.items()
                if (is_damage(name) or is_timeout(name)) and total >= _TIMES * _A_DAY * max(days, 1)
            ]
        if messages:
            yield check.failure(item.host.name, nic, "; ".join(messages[:3]), len(messages), 0)
        else:
            yield check.ok(item.host.name, nic)


NIC_COUNTERS = Check(
    id="net.nic.counters",
    what="damaged symbols and frames of every NIC of the fabric, timeouts, and frames dropped for lack of buffers",
    source="ethtool -S NIC, twice, at level full",
    rule=(
        f"no timeout within 4 s; of other errors fewer than {_NOW}, or for discarded frames fewer than {_TIMES} times "
        f"those of most similar hosts; since boot fewer than {_A_DAY} per day, or fewer than {_TIMES} times those of "
        f"most similar hosts; without these fewer than {_TIMES * _A_DAY:,} damaged ones and timeouts per day"
    ),
    component="nic",
    follows=("net.link.flaps", "net.link.errors", "net.ping.loss"),
    remedy=(
        "damaged ones: clean or replace cable and transceivers; discarded ones: enlarge rings (ethtool -G), look at PFC"
    ),
    judge=among_peers(_counted, _compared, NO_INTERFACE),
)
