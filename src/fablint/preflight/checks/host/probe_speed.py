"""Checks of the rates of memory copies and computation, which find slow hosts without any error counter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from statistics import median

from fablint.model.preflight_results import Result
from fablint.preflight.check import TIMED_OUT, Check, Judge
from fablint.preflight.fleet import Fleet
from fablint.snapshot.parsers.probe import ProbeSpeed, probe_speed
from fablint.text.sanitise import shortened
from fablint.text.units import share_text

PROBE = "probe"
LEAST_LIKE = 4  # hosts, for a comparison
_GIGA = 1e9
_SIGMA = 1.4826  # standard deviation per median deviation of a normal distribution


_SLOW, _SIGMAS = 0.9, 4.0
_BUSY = 0.05  # share of cores in use by other programs above which a host is not judged


def probe_rate(half: str) -> Judge:
    """Judge a rate of the probe, `copy` or `hash`, compared with idle hosts with the same CPU, cores and probe method.

    A host is slow if its rate is more than a tenth below their median, and further from it than four of their standard
    deviations and than its own spread. A host with other running programs is not judged.
    """
    return Judge(partial(_rates, half))


def _rates(half: str, check: Check, fleet: Fleet) -> Iterator[Result]:
    like: dict[tuple[str, str, int, str], dict[str, ProbeSpeed]] = defaultdict(dict)
    for host in fleet.hosts:
        output = host.command(PROBE)
        speed = probe_speed(output.text, half)
        if output.error == TIMED_OUT or (output.status == 0 and speed is None):
            yield check.error(host.name, "", shortened(output.error) or "the output of the probe cannot be parsed")
        elif speed is None:
            yield check.skip(host.name, "", shortened(output.error) or "the probe did not run")
        elif speed.others > _BUSY * speed.cores:
            why = f"other programs used {speed.others:.1f} of {speed.cores} cores"
            yield check.skip(host.name, "", why)
        else:
            like[host.kind, host.cpu.short_model, speed.cores, speed.method][host.name] = speed
    for result in like.values():
        yield from _compared(check, result)


def _compared(check: Check, result: Mapping[str, ProbeSpeed]) -> Iterator[Result]:
    rates = [one.rate for one in result.values()]
    usual = median(rates)
    sigma = _SIGMA * median(abs(rate - usual) for rate in rates)
    for name, item in result.items():
        lacking = usual - item.rate
        if len(result) < LEAST_LIKE:
            yield check.skip(name, "", f"{item.rate / _GIGA:.3g} GB/s; too few similar idle hosts to compare with")
        elif item.rate < _SLOW * usual and lacking > max(_SIGMAS * sigma, item.spread * usual):
            message = (
                f"{item.rate / _GIGA:.3g} GB/s on {item.cores} cores, spread {share_text(item.spread)}; "
                f"median of {len(result)} hosts {usual / _GIGA:.3g}, standard deviation {share_text(sigma / usual)}"
            )
            yield check.failure(name, "", message, item.rate, usual, "B/s")
        else:
            yield check.ok(name, value=item.rate, unit="B/s")


MEMORY_SPEED = Check(
    id="host.memory.speed",
    what="the memory copy rate of all cores together, in the count of STREAM copy",
    source="copies of 16 MiB by each core for half a second, at level full",
    rule="not below the median of similar idle hosts by 10 %, four standard deviations and its own spread",
    remedy="check host.numa.memory, host.throttle, host.cpu.cap, the DIMM speed and memory settings in the BIOS",
    component="host",
    judge=probe_rate("copy"),
)


CPU_SPEED = Check(
    id="host.cpu.speed",
    what="the computation rate of all cores together on cached data",
    source="SHA-256 of 64 KiB by each core for half a second, at level full",
    rule="not below the median of similar idle hosts by 10 %, four standard deviations and its own spread",
    remedy="check host.governor, host.turbo, host.cpu.cap, host.throttle, and power caps of the BMC",
    component="host",
    judge=probe_rate("hash"),
)
