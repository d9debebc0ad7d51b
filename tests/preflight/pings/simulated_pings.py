"""Hosts of a simulated rail: the real pinger, in both passes, with calls of ping that take simulated time."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

from preflight_help import host, nic

from fablint.preflight import FIRST, SECOND, lossy_pairs, offsets, repeats
from fablint.preflight.host import Host
from fablint.snapshot.agent import pinger
from fablint.snapshot.pinging import PAUSE_S

Share = Callable[[int, int], float]  # of the pings between two hosts, that come back
Rows = list[list[Any]]


class Burst(NamedTuple):
    """A time in which pings between all hosts are lost, or those of one host."""

    begin_s: float  # after the first ping
    length_s: float
    share: float = 0.5  # of the pings that are lost
    number: int | None = None

    def hits(self, numbers: tuple[int, int], time_s: float) -> bool:
        is_now = self.begin_s <= time_s < self.begin_s + self.length_s
        return is_now and (self.number is None or self.number in numbers)


def lossless(one: int, other: int) -> float:
    return 1.0


def at_hosts(lossy: int | set[int], percent: float, crossings: int = 1) -> Share:
    """Share of pings that survive the cables of hosts, each crossed once or twice."""
    numbers = {lossy} if isinstance(lossy, int) else lossy
    return lambda one, other: (1 - percent / 100) ** (crossings * len({one, other} & numbers))


@dataclass
class SimulatedRail:
    """Pings between hosts, lost by chance, and in bursts."""

    share: Share
    bursts: Sequence[Burst]
    random: Random
    time_s: float = 0.0  # of the host that pings
    end_s: float = 0.0  # of the last ping

    def ping(self, own: str, peer: str, frame: int, count: int = pinger.FIRST) -> dict[str, Any]:
        """Stand for `ping`: what it returns, after as much time."""
        numbers = _number(own), _number(peer)
        came = [self._comes_back(numbers, self.time_s + pinger.GAP_S * number) for number in range(count)]
        self.time_s += pinger.GAP_S * count + (0.0 if came[-1] else 1.0)
        counted = came[:-1] if any(came) and count > 1 else came  # as the pinger counts
        kind, rtt_us = ("", 200) if any(came) else ("no answer", None)
        return {"kind": kind, "rtt_us": rtt_us, "text": "", "sent": len(counted), "received": sum(counted)}

    def _comes_back(self, numbers: tuple[int, int], time_s: float) -> bool:
        share = self.share(*numbers)
        for burst in self.bursts:
            share *= 1 - burst.share if burst.hits(numbers, time_s) else 1
        return self.random.random() < share

    def each(self, function: Callable[[Any], None], jobs: Sequence[Any]) -> None:
        """Stand for the threads of a host: `AT_ONCE` jobs begin together, then as many others."""
        begin_s = self.time_s
        for first in range(0, len(jobs), pinger.AT_ONCE):
            ends_s = []
            for job in jobs[first : first + pinger.AT_ONCE]:
                self.time_s = begin_s
                function(job)
                ends_s.append(self.time_s)
            begin_s = max(ends_s)
        self.end_s = max(self.end_s, begin_s)

    def run(self, request: dict[str, Any], number: int, begin_s: float) -> Rows:
        """Return the rows of a host that begins up to 0.3 s after the others."""
        self.time_s = begin_s + self.random.uniform(0, 0.3)
        with (
            patch.object(pinger, "ping", self.ping),
            patch.object(pinger, "place", lambda _: number),
            patch.object(pinger, "begin", lambda function, *values: function(*values)),
            patch.object(pinger, "wait_for", lambda threads, end: None),
        ):
            task = pinger.Task(request)
            self.each(task.ping_peer, task.jobs)
        return task.rows()


def simulated_hosts(
    count: int, level: str, share: Share = lossless, seed: int = 1, bursts: Sequence[Burst] = ()
) -> list[Host]:
    """Hosts with the rows that their pingers report, of the second pass too if pings were lost."""
    rail = SimulatedRail(share, bursts, Random(seed))
    table = [{"host": f"n{number}", "own": "", "rails": {"": (_address(number), 9000)}} for number in range(count)]
    request = {"hosts": table, "offsets": offsets(count, level), "limit_s": 1e6, "lossy": []}
    first = {**request, "count": repeats(count, level, FIRST)}
    documents = [{"fablint_reach": 1, "pings": rail.run(first, number, 0.0)} for number in range(count)]
    hosts = [_host(number, document) for number, document in enumerate(documents)]
    lossy = lossy_pairs(hosts)
    second = {**request, "count": repeats(count, level, SECOND), "lossy": lossy.ends}
    begin_s = rail.end_s + PAUSE_S
    for name in lossy.hosts:
        number = int(name[1:])
        documents[number]["second"] = {"fablint_reach": 1, "pings": rail.run(second, number, begin_s)}
        hosts[number] = _host(number, documents[number])
    return hosts


def _host(number: int, reach: dict[str, Any]) -> Host:
    address = {"local": _address(number), "prefixlen": 16, "scope": "global"}
    listed = json.dumps([{"ifname": "hsn0", "addr_info": [address]}])
    files = nic("hsn0", address=f"02:00:00:00:{number // 256:02x}:{number % 256:02x}")
    return host(f"n{number}", files, commands={"ip-addr": listed}, reach=reach)


def _address(number: int) -> str:
    return f"10.0.{number // 200}.{number % 200 + 1}"


def _number(address: str) -> int:
    *_, high, low = map(int, address.split("."))
    return 200 * high + low - 1
