"""Counters of NIC drivers: damaged symbols and frames, and frames dropped for lack of buffers.

Names are those of mlx5 (rx_symbol_err_phy, rx_crc_errors_phy, rx_discards_phy, rx_out_of_buffer), bnxt_en
(rx_fcs_err_frames, rx_total_discard_pkts), ice (rx_crc_errors.nic): each driver names its own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from statistics import quantiles
from typing import NamedTuple

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import Check
from fablint.preflight.checks.network.links import ABSENT
from fablint.preflight.checks.outputs import TIMED_OUT, without_answer
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot.parsers.kernel_log import DAY_S

_COUNTER = re.compile(r"^\s*([\w.]{1,80}): (\d{1,20})\s*$", re.MULTILINE)
_WANTED = re.compile(r"symbol_err|fcs_err|crc_err|discard|out_of_buffer", re.IGNORECASE)
_DAMAGED = re.compile(r"symbol_err|fcs_err|crc_err", re.IGNORECASE)
_QUEUE = re.compile(r"^(?:[rt]x|ch|xdp)?_?(?:queue_)?\[?\d")  # of one queue: counted in the NIC's sum as well
_FEWEST_PEERS = 4
_TIMES = 10  # as many as most similar NICs
_A_DAY = 100  # on average since the boot
_NOW = 10  # in some seconds


class _Counted(NamedTuple):
    host: Host
    totals: Mapping[str, int]
    grown: Mapping[str, int]  # between two readings


class NicCounters(Check):
    id = "net.nic.counters"
    what = "damaged symbols and frames of every NIC of the fabric, and frames dropped for lack of buffers"
    source = "ethtool -S NIC, twice, at level full"
    rule = (
        f"within 4 s fewer than {_NOW}, or for discarded frames fewer than {_TIMES} times those of most similar hosts; "
        f"since boot fewer than {_A_DAY} per day, or fewer than {_TIMES} times those of most similar hosts"
    )
    severity = Severity.WARN
    component = "nic"
    follows = ("net.link.flaps", "net.link.errors", "net.ping.loss")
    remedy = (
        "damaged ones: clean or replace cable and transceivers; discarded ones: enlarge rings (ethtool -G), look at PFC"
    )

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        like: dict[tuple[str, ...], list[_Counted]] = defaultdict(list)
        for host in fleet.hosts:
            if not host.interfaces:
                yield self.skip(host.name, "", ABSENT)
            for nic in host.interfaces:
                first, last = (host.command(f"{name}/{nic.name}") for name in ("ethtool-S", "ethtool-S-later"))
                before, after = _counters(first.text), _counters(last.text)
                if TIMED_OUT in (first.error, last.error):
                    yield self.error(host.name, nic.name, f"ethtool: {TIMED_OUT}")
                elif not after or first.status or last.status:
                    why = without_answer(last) if last.status != 0 else "its driver does not count these errors"
                    yield self.skip(host.name, nic.name, f"ethtool: {why}")
                else:
                    grown = {
                        name: after[name] - before[name] for name in after if after[name] > before.get(name, 1 << 64)
                    }
                    like[nic.name, *host.like(nic.name)].append(_Counted(host, after, grown))
        for (nic_name, *_), found in like.items():
            yield from self._compared(nic_name, found)

    def _compared(self, nic: str, like: Sequence[_Counted]) -> Iterator[Result]:
        usual = {name: _quartile([one.totals.get(name, 0) for one in like]) for one in like for name in one.totals}
        growing = {name: _quartile([one.grown.get(name, 0) for one in like]) for one in like for name in one.grown}
        for one in like:
            days = (one.host.uptime_s or 0.0) / DAY_S
            messages = [
                f"{name} {count} in some seconds"
                for name, count in one.grown.items()
                if count >= _NOW and (_DAMAGED.search(name) or len(like) == 1 or count > _TIMES * growing[name])
            ]
            if len(like) > _FEWEST_PEERS:
                messages += [
                    f"{name} {total:,} so far, at most {usual[name]:,.0f} on most of {len(like)} hosts"
                    for name, total in one.totals.items()
                    if total >= max(_TIMES * max(usual[name], 1), _A_DAY * max(days, 1))
                ]
            if messages:
                yield self.failure(one.host.name, nic, "; ".join(messages[:3]), len(messages), 0)
            else:
                yield self.ok(one.host.name, nic)


@lru_cache(maxsize=4096)
def _counters(text: str) -> Mapping[str, int]:
    """Return the error counters of the NIC as a whole, without those of single queues."""
    found = {name: int(value) for name, value in _COUNTER.findall(text) if _WANTED.search(name)}
    return {name: value for name, value in found.items() if not _QUEUE.match(name)}


def _quartile(values: Sequence[int]) -> float:
    """Return the third quartile."""
    return quantiles(values, n=4, method="inclusive")[2] if len(values) > 1 else float(values[0])
