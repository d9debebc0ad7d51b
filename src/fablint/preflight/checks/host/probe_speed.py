"""Checks of the rates of memory copies and computation, which find slow hosts without any error counter."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median
from typing import ClassVar, NamedTuple

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import Check
from fablint.preflight.checks.host.processors import cpu_model
from fablint.preflight.checks.outputs import TIMED_OUT
from fablint.preflight.fleet import Fleet
from fablint.text.sanitise import shortened

PROBE = "probe"
LEAST_LIKE = 4  # hosts, for a comparison
_GIGA = 1e9
_SIGMA = 1.4826  # standard deviation per median deviation of a normal distribution


class Speed(NamedTuple):
    """Result of a half-second probe on a host."""

    rate: float  # bytes/s
    spread: float  # of five time slices, relative to their median
    others: float  # CPUs used by other programs during the probe
    cores: int
    method: str  # copy or hash function and version of Python


class SpeedCheck(Check):
    """Base of checks of a probe rate, compared with idle hosts with the same CPU, number of cores and probe method.

    A host is slow if its rate is more than a tenth below their median, and further from it than four of their standard
    deviations and than its own spread. A host with other running programs is not judged.
    """

    severity = Severity.WARN
    component = "host"
    half: ClassVar[str]  # part of the probe's output: `copy`, `hash`

    _SLOW, _SIGMAS = 0.9, 4.0
    _BUSY = 0.05  # share of cores in use by other programs above which a host is not judged

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        like: dict[tuple[str, str, int, str], dict[str, Speed]] = defaultdict(dict)
        for host in fleet.hosts:
            output = host.command(PROBE)
            speed = speed_of(output.text, self.half)
            if output.error == TIMED_OUT or (output.status == 0 and speed is None):
                yield self.error(host.name, "", shortened(output.error) or "the output of the probe cannot be parsed")
            elif speed is None:
                yield self.skip(host.name, "", shortened(output.error) or "the probe did not run")
            elif speed.others > self._BUSY * speed.cores:
                why = f"other programs used {speed.others:.1f} of {speed.cores} cores"
                yield self.skip(host.name, "", why)
            else:
                like[host.kind, cpu_model(host) or "", speed.cores, speed.method][host.name] = speed
        for found in like.values():
            yield from self._compared(found)

    def _compared(self, found: Mapping[str, Speed]) -> Iterator[Result]:
        rates = [one.rate for one in found.values()]
        usual = median(rates)
        sigma = _SIGMA * median(abs(rate - usual) for rate in rates)
        for name, one in found.items():
            lacking = usual - one.rate
            if len(found) < LEAST_LIKE:
                yield self.skip(name, "", f"{one.rate / _GIGA:.3g} GB/s; too few similar idle hosts to compare with")
            elif one.rate < self._SLOW * usual and lacking > max(self._SIGMAS * sigma, one.spread * usual):
                message = (
                    f"{one.rate / _GIGA:.3g} GB/s on {one.cores} cores, spread {one.spread:.1%}; "
                    f"median of {len(found)} hosts {usual / _GIGA:.3g}, standard deviation {sigma / usual:.1%}"
                )
                yield self.failure(name, "", message, one.rate, usual, "B/s")
            else:
                yield self.ok(name, value=one.rate, unit="B/s")


class MemorySpeed(SpeedCheck):
    id = "host.memory.speed"
    what = "the memory copy rate of all cores together, in the count of STREAM copy"
    source = "copies of 16 MiB by each core for half a second, at level full"
    rule = "not below the median of similar idle hosts by 10 %, four standard deviations and its own spread"
    remedy = "check host.numa.memory, host.throttle, host.cpu.cap, the DIMM speed and memory settings in the BIOS"
    half = "copy"


class CpuSpeed(SpeedCheck):
    id = "host.cpu.speed"
    what = "the computation rate of all cores together on cached data"
    source = "SHA-256 of 64 KiB by each core for half a second, at level full"
    rule = "not below the median of similar idle hosts by 10 %, four standard deviations and its own spread"
    remedy = "check host.governor, host.turbo, host.cpu.cap, host.throttle, and power caps of the BMC"
    half = "hash"


def speed_of(text: str, half: str) -> Speed | None:
    """Parse a rate in the output of the probe; None if it is malformed."""
    try:
        said = json.loads(text)
        own = said[half]
        rate, spread, others = (float(one) for one in (own["rate"], own["spread"], said["others"]))
        speed = Speed(rate, spread, others, int(said["cores"]), shortened(str(said["with"]), 60))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    return speed if 0 < rate < 1e18 and 0 <= spread < 1e6 and 0 <= others < 1e6 and speed.cores > 0 else None
