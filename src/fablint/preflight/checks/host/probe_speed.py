"""How fast a host copies memory and computes, compared with similar hosts: slow hosts that no counter shows."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median
from typing import ClassVar, NamedTuple

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import Check
from fablint.preflight.checks.host.processors import cpu_model
from fablint.preflight.checks.outputs import HUNG
from fablint.preflight.fleet import Fleet
from fablint.text.sanitise import shortened

PROBE = "probe"
LEAST_LIKE = 4  # hosts, for one of them to be compared with the others
_GIGA = 1e9
_SIGMA = 1.4826  # median deviation of a normal distribution, as its standard deviation


class Speed(NamedTuple):
    """What a host reached in half a second."""

    rate: float  # bytes/s
    spread: float  # of five slices of the time, as a share of their median
    others: float  # CPUs that other programs used meanwhile
    cores: int
    way: str  # how it was measured


class SpeedCheck(Check):
    """A rate of the probe, compared with idle hosts that have as many cores of this CPU and measured in the same way.

    A host is slow where its rate is more than a tenth below their median, and further from it than four standard
    deviations of theirs and than its own spread. A host on which something else ran is not judged.
    """

    severity = Severity.WARN
    component = "host"
    half: ClassVar[str]  # of the probe's answer

    _SLOW, _SIGMAS = 0.9, 4.0
    _BUSY = 0.05  # of the cores in use by others: the host is not judged

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        like: dict[tuple[str, str, int, str], dict[str, Speed]] = defaultdict(dict)
        for host in fleet.hosts:
            said = host.command(PROBE)
            speed = speed_of(said.text, self.half)
            if said.error == HUNG or (said.status == 0 and speed is None):
                yield self.unclear(host.name, "", shortened(said.error) or "the probe's answer cannot be parsed")
            elif speed is None:
                yield self.skipped(host.name, "", shortened(said.error) or "there is no answer")
            elif speed.others > self._BUSY * speed.cores:
                why = f"other programs used {speed.others:.1f} of {speed.cores} cores meanwhile"
                yield self.skipped(host.name, "", why)
            else:
                like[host.kind, cpu_model(host) or "", speed.cores, speed.way][host.name] = speed
        for found in like.values():
            yield from self._compared(found)

    def _compared(self, found: Mapping[str, Speed]) -> Iterator[Result]:
        rates = [one.rate for one in found.values()]
        usual = median(rates)
        sigma = _SIGMA * median(abs(rate - usual) for rate in rates)
        for name, one in found.items():
            lacking = usual - one.rate
            if len(found) < LEAST_LIKE:
                yield self.skipped(name, "", f"{one.rate / _GIGA:.3g} GB/s; too few idle hosts like it to compare with")
            elif one.rate < self._SLOW * usual and lacking > max(self._SIGMAS * sigma, one.spread * usual):
                message = (
                    f"{one.rate / _GIGA:.3g} GB/s on {one.cores} cores, spread {one.spread:.1%}; "
                    f"median of {len(found)} hosts {usual / _GIGA:.3g}, of which one varies by {sigma / usual:.1%}"
                )
                yield self.wrong(name, "", message, one.rate, usual, "B/s")
            else:
                yield self.passed(name, value=one.rate, unit="B/s")


class MemorySpeed(SpeedCheck):
    id = "host.memory.speed"
    what = "the rate at which all cores together copy memory, as STREAM's copy counts it"
    source = "a copy of 16 MiB by each core for half a second, at level full"
    rule = "not 10 % below the median of idle hosts like it, four of their deviations and its own spread"
    remedy = "check host.numa.memory, host.throttle, host.cpu.cap, at DIMMs' speed and memory settings in the BIOS"
    half = "copy"


class CpuSpeed(SpeedCheck):
    id = "host.cpu.speed"
    what = "the rate at which all cores together compute, on data in their caches"
    source = "SHA-256 of 64 KiB by each core for half a second, at level full"
    rule = "not 10 % below the median of idle hosts like it, four of their deviations and its own spread"
    remedy = "check host.governor, host.turbo, host.cpu.cap, host.throttle, and at power caps of the BMC"
    half = "hash"


def speed_of(text: str, half: str) -> Speed | None:
    """A rate in the probe's answer; None where it cannot be parsed."""
    try:
        said = json.loads(text)
        own = said[half]
        rate, spread, others = (float(one) for one in (own["rate"], own["spread"], said["others"]))
        speed = Speed(rate, spread, others, int(said["cores"]), shortened(str(said["with"]), 60))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    return speed if 0 < rate < 1e18 and 0 <= spread < 1e6 and 0 <= others < 1e6 and speed.cores > 0 else None
