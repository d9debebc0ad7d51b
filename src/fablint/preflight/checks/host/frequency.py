"""Checks of CPU frequencies: turbo, caps, throttling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from statistics import median
from typing import Any, NamedTuple

from fablint.model.preflight_results import Result
from fablint.preflight.check import Check, Judge
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import CPUS, Host
from fablint.preflight.judges import log_patterns, uniform
from fablint.preflight.judges.log_patterns import KERNEL_LOG
from fablint.preflight.judges.outputs import LEAST_SIMILAR
from fablint.snapshot.parsers.kernel_log import DAY_S, Grade, Pattern
from fablint.snapshot.parsers.tallies import numbers


def _turbo(host: Host) -> Mapping[str, Any]:
    """Return on or off: `no_turbo` is 1 if turbo is off, `boost` is 1 if it is on."""
    no_turbo, boost = host.number(f"{CPUS}/intel_pstate/no_turbo"), host.number(f"{CPUS}/cpufreq/boost")
    if no_turbo in (0, 1):
        return {"": "off" if no_turbo else "on"}
    return {"": "on" if boost else "off"} if boost in (0, 1) else {}


TURBO = Check(
    id="host.turbo",
    what="whether CPUs may run above their nominal frequency",
    source=f"{CPUS}/intel_pstate/no_turbo, {CPUS}/cpufreq/boost",
    rule="on; if it is off on most similar hosts, one warning for all of them",
    remedy="set turbo or boost identically in the BIOS and in the boot options",
    judge=uniform(
        _turbo, "turbo {}", absent="the frequency driver does not report it", is_poor=lambda value: bool(value == "off")
    ),
)


_LEAST = 95  # percent, even if all hosts are equal


def _frequency_cap(host: Host) -> Mapping[str, Any]:
    allowed, possible = (host.read(f"{CPUS}/cpu*/cpufreq/{name}_max_freq") for name in ("scaling", "cpuinfo"))
    share = _slowest_share(allowed, possible)
    if share is None:
        return {}
    limit = host.number(f"{CPUS}/intel_pstate/max_perf_pct")
    return {"": min(round(100 * share), 100, limit if limit is not None and limit > 0 else 100)}


FREQUENCY_CAP = Check(
    id="host.cpu.cap",
    what="the frequency cap of the CPUs, as a share of the highest frequency of the most capped CPU",
    source=f"{CPUS}/cpu*/cpufreq/scaling_max_freq, cpuinfo_max_freq; {CPUS}/intel_pstate/max_perf_pct",
    rule="not lower than on most similar hosts, and at least 95 %",
    remedy="cpupower frequency-set -u MAX; check for a power cap of a job or the BMC",
    judge=uniform(
        _frequency_cap,
        "CPUs capped at {} % of their highest frequency",
        absent="no frequency scaling (cpufreq)",
        below=True,
        is_poor=lambda value: bool(value < _LEAST),
        numeric=True,
    ),
)


@lru_cache(maxsize=4096)  # equal for similar hosts
def _slowest_share(allowed: str | None, possible: str | None) -> float | None:
    """Return the allowed share of its highest frequency of the most capped CPU.

    The tallies do not contain the CPU of each value. Both tallies are matched in ascending order, since some cores have
    a higher maximum than others. None if the tallies are of different numbers of CPUs.
    """
    now, most = numbers(allowed), numbers(possible)
    if not now or 0 in most or sum(now.values()) != sum(most.values()):
        return None
    shares, left = [], sorted(most.items())
    for frequency, count in sorted(now.items()):
        while count:
            highest, cpus = left[0]
            together = min(count, cpus)
            shares.append(frequency / highest)
            count -= together
            left[0] = highest, cpus - together
            if cpus == together:
                left.pop(0)
    return min(shares, default=None)


class _Throttled(NamedTuple):
    """Throttling events of one kind."""

    kind: str  # `core`, `package`
    total: int
    grown: int  # within the snapshot's window


_THROTTLING_MOST_A_DAY, _THROTTLING_TIMES_OTHERS = 100, 10
_ALL = 10_000  # per day: one every nine seconds, more than a few hot hours explain


def _throttling(check: Check, fleet: Fleet) -> Iterator[Result]:
    like: dict[str, list[float]] = defaultdict(list)
    seen = {id(host): list(_throttled(host)) for host in fleet.hosts}
    for host in fleet.hosts:
        if seen[id(host)]:
            like[host.kind].append(_a_day(host, seen[id(host)]))
    usual = {kind: median(rates) for kind, rates in like.items() if len(rates) >= LEAST_SIMILAR}
    for host in fleet.hosts:
        result = seen[id(host)]
        yield (
            _judged(check, host, result, usual.get(host.kind))
            if result
            else check.skip(host.name, "", "its driver does not count it (no thermal_throttle)")
        )


def _judged(check: Check, host: Host, result: list[_Throttled], usual: float | None) -> Result:
    now = [one for one in result if one.grown]
    if now:
        events = ", ".join(f"{one.kind} throttled {one.grown} times" for one in now)
        message = f"{events} in {host.snapshot.window_s:.1f} s"
        return check.failure(host.name, "", message, max(one.grown for one in now), 0)
    rate = _a_day(host, result)
    if usual is not None and rate > max(_THROTTLING_MOST_A_DAY, _THROTTLING_TIMES_OTHERS * usual):
        message = f"throttled {rate:,.0f} times a day since boot, median of similar hosts {usual:,.0f}"
        return check.failure(host.name, "", message, rate, usual)
    if rate > _ALL:
        message = f"throttled more than {_ALL:,} times a day since boot, as similar hosts are"
        alone = f"throttled {rate:,.0f} times a day since boot"
        return check.failure(host.name, "", alone if usual is None else message, rate, _ALL)
    return check.ok(host.name, value=sum(one.total for one in result))


THROTTLING = Check(
    id="host.throttle",
    what="thermal throttling of Intel CPUs",
    source=f"{CPUS}/cpu*/thermal_throttle/core_throttle_count, package_throttle_count",
    rule=(
        "none during the snapshot; since boot fewer than 100 per day or 10 times those of similar hosts; always fewer "
        "than 10,000 per day"
    ),
    component="host",
    remedy="check fans, heat sinks, coolant and the power limits of the BIOS; compare with log.throttle",
    judge=Judge(_throttling),
)


def _throttled(host: Host) -> Iterator[_Throttled]:
    for kind in ("core", "package"):
        path = f"{CPUS}/cpu*/thermal_throttle/{kind}_throttle_count"
        first, last = _events(kind, host.snapshot.read_first(path)), _events(kind, host.snapshot.read_later(path))
        if first is not None and last is not None:
            yield _Throttled(kind, last, max(last - first, 0))


def _events(kind: str, text: str | None) -> int | None:
    """Sum the events; all CPUs of a package report the count of the package, which is added once."""
    events = numbers(text)
    if not events:
        return None
    return sum(events) if kind == "package" else sum(value * count for value, count in events.items())


def _a_day(host: Host, result: list[_Throttled]) -> float:
    """Return the events per day since boot; an uptime below a day counts as a day."""
    return sum(one.total for one in result) * DAY_S / max(host.uptime_s or DAY_S, DAY_S)


_THROTTLE_PATTERNS = (
    Pattern(
        "above threshold, cpu clock",  # since Linux 5.6 `temperature is above`
        "(?:Core|Package) temperature (?:is )?above threshold, cpu clock(?: is)? throttled",
        Grade.WARN,
        "CPU throttled",
    ),
)

LOG_THROTTLE = Check(
    id="log.throttle",
    what="reports of thermal throttling of CPUs",
    source=KERNEL_LOG,
    rule="none within a day",
    component="host",
    remedy="check fans, heat sinks, coolant and the power limits of the BIOS",
    judge=log_patterns(_THROTTLE_PATTERNS),
)
