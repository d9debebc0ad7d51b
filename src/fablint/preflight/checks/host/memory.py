"""Checks of memory: size, available memory, shares of NUMA nodes, errors."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from fablint.model.preflight_results import Outcome, Result, Severity
from fablint.preflight.base import Check, HostCheck, Value
from fablint.preflight.checks.host.settings import GIB, memory_of
from fablint.preflight.checks.host.software import LEAST_LIKE, MeasuredCheck
from fablint.preflight.class_values import is_clear
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot.host_snapshot import text_in
from fablint.snapshot.parsers.kernel_log import DAY_S
from fablint.text.sanitise import shortened

EDAC = "/sys/devices/system/edac/mc"
NODES = "/sys/devices/system/node"
# One DIMM of 64 is 1.56 % of the memory. The memory reserved by firmware and kernel differs by at most about 1 %.
MIN_SHARE = 0.986
_LABEL = re.compile(r"\w[\w #/.-]{0,40}")


class Memory(Check):
    id = "host.memory"
    what = "the size of the memory"
    source = "/proc/meminfo, MemTotal"
    rule = "at most 1.4 % below the median of similar hosts (one DIMM of 64 is 1.56 %); half of it is a failure"
    severity = Severity.FAIL
    component = "host"
    remedy = "look for a DIMM that failed or was mapped out: host.numa.memory says on which NUMA node"

    expects = True
    numeric = True

    _HALF = 0.55
    _KIND_SHARE, _KIND_LEAST = 0.2, 3  # share and number of hosts with one size that are a kind, not faults
    _CLEAR, _OTHERS = 0.8, 4  # similar hosts with the usual size, for a failure

    def site_values(self, host: Host) -> Mapping[str, Value]:
        """GiB."""
        memory = memory_of(host)
        return {"": None if memory is None else memory / GIB}

    def typical(self, values: Sequence[Value]) -> Value:
        """Return the median if a clear majority is near it; else None."""
        sizes = [value for value in values if isinstance(value, float)]
        usual = median(sizes)
        near = sum(MIN_SHARE * usual <= size <= usual / MIN_SHARE for size in sizes)
        return round(usual, 1) if near == len(sizes) or is_clear(near, len(sizes)) else None

    def is_met(self, value: Value, expected: Value) -> bool:
        return isinstance(value, float) and isinstance(expected, int | float) and value >= MIN_SHARE * expected

    def against(self, host: str, target: str, value: Value, expected: Value, site: str) -> Result:
        """Compare with the site value: half of the memory missing is a failure, less is a warning."""
        found = super().against(host, target, value, expected, site)
        is_half = isinstance(value, float) and isinstance(expected, int | float) and value <= self._HALF * expected
        few = found.outcome is not Outcome.PASS and not is_half
        return self.warning(host, target, found.message, value, expected) if few else found

    def worded(self, target: str, value: Value) -> str:
        return f"{value:.1f} GiB"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        like: dict[str, dict[str, float]] = defaultdict(dict)
        for host in fleet.hosts:
            memory = memory_of(host)
            if memory is None:
                yield self.skip(host.name, "", "no MemTotal in /proc/meminfo")
            else:
                like[host.kind][host.name] = memory / GIB
        for sizes in like.values():
            every = sorted(sizes.values())
            usual = median(every)
            for name, size in sizes.items():
                if len(every) < LEAST_LIKE:
                    yield self.skip(name, "", "too few similar hosts to compare with")
                else:
                    yield self._judged(name, size, every, usual)

    def _judged(self, host: str, size: float, every: list[float], usual: float) -> Result:
        """Return the result for a size; `every` is the sorted sizes of similar hosts."""
        if size >= MIN_SHARE * usual:
            return self.ok(host, value=size, unit="GiB")
        same, most = (
            bisect_right(every, one / MIN_SHARE) - bisect_left(every, MIN_SHARE * one) for one in (size, usual)
        )
        if same >= max(self._KIND_LEAST, self._KIND_SHARE * len(every)):
            why = f"{size:.1f} GiB, the same as {same - 1} other hosts; median {usual:.1f}: hosts of several kinds"
            return self.skip(host, "", why)
        message = f"{size:.1f} GiB, median of {len(every)} hosts {usual:.1f}"
        is_clear = most >= self._CLEAR * len(every) and most >= self._OTHERS
        say = self.failure if size <= self._HALF * usual and is_clear else self.warning
        return say(host, "", message, size, usual)


class AvailableMemory(MeasuredCheck):
    id = "host.memory.free"
    what = "the available share of the memory"
    source = "/proc/meminfo, MemAvailable of MemTotal"
    rule = "at least 80 % of the median of similar hosts, if these are idle"
    severity = Severity.WARN
    component = "host"
    remedy = "remove processes, files in /dev/shm and huge pages of earlier jobs"
    absent = "no MemAvailable in /proc/meminfo"

    _LEAST, _IDLE = 0.8, 0.5

    _AVAILABLE = re.compile(r"^MemAvailable: +(\d{1,15}) kB", re.MULTILINE)

    def figure(self, host: Host) -> float | None:
        found, memory = self._AVAILABLE.search(host.read("/proc/meminfo") or ""), memory_of(host)
        return 1024 * int(found[1]) / memory if found and memory else None

    def compared(self, host: str, figure: float, usual: float, others: int) -> Result:
        if usual < self._IDLE:
            return self.skip(host, "", f"similar hosts are not idle: median {usual:.0%} available")
        if figure >= self._LEAST * usual:
            return self.ok(host, value=figure)
        message = f"{figure:.0%} of the memory available, median of {others + 1} hosts {usual:.0%}"
        return self.failure(host, "", message, figure, usual)


class NumaMemory(Check):
    id = "host.numa.memory"
    what = "the share of the memory of each NUMA node"
    source = f"{NODES}/node*/meminfo, MemTotal"
    rule = "at most 1.4 % below the median of this node on similar hosts"
    severity = Severity.WARN
    component = "host"
    remedy = "look for a DIMM that failed or was mapped out at this socket"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        like: dict[tuple[str, int, str], dict[str, float]] = defaultdict(dict)
        for host in fleet.hosts:
            sizes = _nodes(host)
            total = sum(sizes.values())
            if len(sizes) < 2 or not total:
                yield self.skip(host.name, "", "one NUMA node" if sizes else "memory of NUMA nodes is not visible")
            for node, size in sizes.items() if len(sizes) > 1 and total else ():
                like[host.kind, len(sizes), node][host.name] = size / total
        for (_, _, node), shares in like.items():
            usual = median(shares.values())
            for name, share in shares.items():
                yield self._judged(name, node, share, usual, len(shares))

    def _judged(self, host: str, node: str, share: float, usual: float, count: int) -> Result:
        if count < LEAST_LIKE:
            return self.skip(host, node, "too few similar hosts to compare with")
        if share >= MIN_SHARE * usual:
            return self.ok(host, node, value=share)
        message = f"{share:.1%} of the host's memory, median of {count} hosts {usual:.1%}"
        return self.failure(host, node, message, share, usual)


def _nodes(host: Host) -> Mapping[str, int]:
    """Return the memory in KiB of each NUMA node."""
    found = {}
    for name in host.snapshot.names(NODES):
        size = re.match(r"Node \d{1,5} MemTotal: +(\d{1,15}) kB", host.read(f"{NODES}/{name}/meminfo") or "")
        if size:
            found[name] = int(size[1])
    return found


class MemoryErrors(HostCheck):
    id = "host.edac"
    what = "errors counted by memory controllers"
    source = f"{EDAC}/mc*/ue_count, ce_count; dimm*/dimm_label"
    rule = "no uncorrected error; corrected errors below 10 during the snapshot and 100 per day since boot"
    severity = Severity.FAIL
    component = "host"
    remedy = "replace the named DIMM"
    absent = "memory errors are not counted (no EDAC)"

    _MOST_NOW, _MOST_A_DAY = 10, 100

    def look(self, host: Host) -> Iterable[Result]:
        for controller in host.snapshot.names(EDAC):
            at = f"{EDAC}/{controller}"
            first, last = host.snapshot.readings_in(at)
            bad, corrected = (_count(text_in(last, name) or text_in(first, name)) for name in ("ue_count", "ce_count"))
            if bad is None and corrected is None:
                continue
            now = host.grown_now(f"{at}/ce_count") if corrected != 0 else None
            days = max(host.uptime_s or DAY_S, DAY_S) / DAY_S
            where = _dimms(host, at) if bad or corrected else ""
            if bad:
                yield self.failure(
                    host.name, controller, f"{bad} uncorrected errors since the driver was loaded{where}", bad, 0
                )
            elif now and now.growth >= self._MOST_NOW:
                yield self.warning(host.name, controller, f"corrected errors: {now}{where}", now.growth, 0)
            elif corrected and corrected / days > self._MOST_A_DAY:
                message = f"{corrected:,} corrected errors since boot, {corrected / days:,.0f} a day{where}"
                yield self.warning(host.name, controller, message, corrected, 0)
            else:
                yield self.ok(host.name, controller, value=corrected)


def _count(text: str | None) -> int | None:
    """Parse a count; None if it is not a number."""
    return int(text) if text and text.isdecimal() and len(text) <= 18 else None


def _dimms(host: Host, controller: str) -> str:
    """Return `: DIMM_A1 12` for the DIMMs with errors; '' if the kernel does not report them."""
    found = []
    for name in host.snapshot.names(controller):
        counts = [host.number(f"{controller}/{name}/dimm_{kind}_count") or 0 for kind in ("ue", "ce")]
        if sum(counts) > 0:
            label = shortened(host.read(f"{controller}/{name}/dimm_label") or "", 40)
            found.append(f"{label if _LABEL.fullmatch(label) else name} {sum(counts)}")
    return f": {', '.join(found[:4])}" if found else ""
