"""Checks of memory: size, available memory, shares of NUMA nodes, errors."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check, Judge, SiteValues, Value
from fablint.preflight.class_values import Agreement, is_clear
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.preflight.judges import among_peers, limit
from fablint.preflight.judges.outputs import LEAST_SIMILAR, TOO_FEW
from fablint.snapshot.host_snapshot import text_in
from fablint.snapshot.parsers.kernel_log import DAY_S
from fablint.snapshot.parsers.proc_files import memory_info
from fablint.text.sanitise import shortened
from fablint.text.units import share_text

GIB = 1 << 30
EDAC = "/sys/devices/system/edac/mc"
NODES = "/sys/devices/system/node"
# One DIMM of 64 is 1.56 % of the memory. The memory reserved by firmware and kernel differs by at most about 1 %.
MIN_SHARE = 0.986


_HALF = 0.55
_MEMORY_KIND_SHARE, _MEMORY_KIND_LEAST = 0.2, 3  # share and number of hosts with one size that are a kind, not faults
_MEMORY_CLEAR, _MEMORY_OTHERS = 0.8, 4  # similar hosts with the usual size, for a failure


def _gib(host: Host) -> float | None:
    return host.memory.total / GIB if host.memory.total else None


def _typical_memory(values: Sequence[Value]) -> Value:
    """Return the median if a clear majority is near it; else None."""
    sizes = [value for value in values if isinstance(value, float)]
    usual = median(sizes)
    near = sum(MIN_SHARE * usual <= size <= usual / MIN_SHARE for size in sizes)
    return round(usual, 1) if near == len(sizes) or is_clear(near, len(sizes)) else None


def _is_met_memory(value: Value, expected: Value) -> bool:
    return isinstance(value, float) and isinstance(expected, int | float) and value >= MIN_SHARE * expected


def _is_half(_: Host, value: Value, expected: Value) -> bool:
    return isinstance(value, float) and isinstance(expected, int | float) and value <= _HALF * expected


def _compared_sizes(check: Check, _: str, like: Sequence[tuple[Host, float]]) -> Iterator[Result]:
    sizes = sorted(size for _, size in like)
    usual = median(sizes)
    for host, size in like:
        if len(sizes) == 2 and sizes[0] < MIN_SHARE * sizes[1]:
            agreed = Agreement.of([f"{one:.1f} GiB" for _, one in like])
            yield check.warning(host.name, "", agreed.kinds("{}", [(one.name, f"{gib:.1f} GiB") for one, gib in like]))
        elif len(sizes) < LEAST_SIMILAR:
            yield check.skip(host.name, "", TOO_FEW)
        else:
            yield _judged_memory(check, host.name, size, sizes, usual)


def _judged_memory(check: Check, host: str, size: float, sizes: list[float], usual: float) -> Result:
    """Return the result for a size; `sizes` is the sorted sizes of similar hosts."""
    if size >= MIN_SHARE * usual:
        return check.ok(host, value=size, unit="GiB")
    same, most = (
        bisect_right(sizes, item / MIN_SHARE) - bisect_left(sizes, MIN_SHARE * item) for item in (size, usual)
    )
    if same >= max(_MEMORY_KIND_LEAST, _MEMORY_KIND_SHARE * len(sizes)):
        why = f"{size:.1f} GiB, the same as {same - 1} other hosts; median {usual:.1f}: hosts of several kinds"
        return check.skip(host, "", why)
    message = f"{size:.1f} GiB, median of {len(sizes)} hosts {usual:.1f}"
    is_clear = most >= _MEMORY_CLEAR * len(sizes) and most >= _MEMORY_OTHERS
    say = check.failure if size <= _HALF * usual and is_clear else check.warning
    return say(host, "", message, size, usual)


MEMORY = Check(
    id="host.memory",
    what="the size of the memory",
    source="/proc/meminfo, MemTotal",
    rule=(
        "at most 1.4 % below the median of similar hosts, or two hosts below each other (one DIMM of 64 is 1.56 %); "
        "half of it is a failure"
    ),
    severity=Severity.FAIL,
    component="host",
    remedy="look for a DIMM that failed or was mapped out: host.numa.memory says on which NUMA node",
    judge=among_peers(
        lambda _, host: {"": size} if (size := _gib(host)) is not None else {},
        _compared_sizes,
        "no MemTotal in /proc/meminfo",
        site=SiteValues(
            lambda _, host: {"": _gib(host)},
            lambda _, value: f"{value:.1f} GiB",
            numeric=True,
            is_met=_is_met_memory,
            is_severe=_is_half,
            typical=_typical_memory,
        ),
    ),
)


_LEAST, _IDLE = 0.8, 0.5


def _available_share(_: Check, host: Host) -> Mapping[str, Result | float]:
    available, total = host.memory.available, host.memory.total
    return {} if available is None or not total else {"": available / total}


def _compared_shares(check: Check, _: str, like: Sequence[tuple[Host, float]]) -> Iterator[Result]:
    usual = median(share for _, share in like)
    for host, share in like:
        if len(like) < LEAST_SIMILAR:
            yield check.skip(host.name, "", TOO_FEW)
        elif usual < _IDLE:
            yield check.skip(host.name, "", f"similar hosts are not idle: median {share_text(usual)} available")
        elif share >= _LEAST * usual:
            yield check.ok(host.name, value=share)
        else:
            message = f"{share_text(share)} of the memory available, median of {len(like)} hosts {share_text(usual)}"
            yield check.failure(host.name, "", message, share, usual)


AVAILABLE_MEMORY = Check(
    id="host.memory.free",
    what="the available share of the memory",
    source="/proc/meminfo, MemAvailable of MemTotal",
    rule="at least 80 % of the median of similar hosts, if these are idle",
    component="host",
    remedy="remove processes, files in /dev/shm and huge pages of earlier jobs",
    judge=among_peers(_available_share, _compared_shares, "no MemAvailable in /proc/meminfo"),
)


def _numa_memory(check: Check, fleet: Fleet) -> Iterator[Result]:
    like: dict[tuple[str, int, str], dict[str, float]] = defaultdict(dict)
    for host in fleet.hosts:
        sizes = _nodes(host)
        total = sum(sizes.values())
        if len(sizes) < 2 or not total:
            yield check.skip(host.name, "", "one NUMA node" if sizes else "memory of NUMA nodes is not visible")
        for node, size in sizes.items() if len(sizes) > 1 and total else ():
            like[host.kind, len(sizes), node][host.name] = size / total
    for (_, _, node), shares in like.items():
        usual = median(shares.values())
        for name, share in shares.items():
            yield _judged_numa_memory(check, name, node, share, usual, len(shares))


def _judged_numa_memory(check: Check, host: str, node: str, share: float, usual: float, count: int) -> Result:
    if count < LEAST_SIMILAR:
        return check.skip(host, node, TOO_FEW)
    if share >= MIN_SHARE * usual:
        return check.ok(host, node, value=share)
    message = f"{share_text(share)} of the host's memory, median of {count} hosts {share_text(usual)}"
    return check.failure(host, node, message, share, usual)


NUMA_MEMORY = Check(
    id="host.numa.memory",
    what="the share of the memory of each NUMA node",
    source=f"{NODES}/node*/meminfo, MemTotal",
    rule="at most 1.4 % below the median of this node on similar hosts",
    component="host",
    remedy="look for a DIMM that failed or was mapped out at this socket",
    judge=Judge(_numa_memory),
)


def _nodes(host: Host) -> Mapping[str, int]:
    """Return the memory of each NUMA node."""
    sizes = {name: memory_info(host.read(f"{NODES}/{name}/meminfo")).total for name in host.snapshot.names(NODES)}
    return {name: size for name, size in sizes.items() if size is not None}


_MEMORY_ERRORS_MOST_NOW, _MEMORY_ERRORS_MOST_A_DAY = 10, 100


def _memory_errors(check: Check, host: Host) -> Iterable[Result]:
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
            yield check.failure(
                host.name, controller, f"{bad} uncorrected errors since the driver was loaded{where}", bad, 0
            )
        elif now and now.growth >= _MEMORY_ERRORS_MOST_NOW:
            yield check.warning(host.name, controller, f"corrected errors: {now}{where}", now.growth, 0)
        elif corrected and corrected / days > _MEMORY_ERRORS_MOST_A_DAY:
            message = f"{corrected:,} corrected errors since boot, {corrected / days:,.0f} a day{where}"
            yield check.warning(host.name, controller, message, corrected, 0)
        else:
            yield check.ok(host.name, controller, value=corrected)


MEMORY_ERRORS = Check(
    id="host.edac",
    what="errors counted by memory controllers",
    source=f"{EDAC}/mc*/ue_count, ce_count; dimm*/dimm_label",
    rule="no uncorrected error; corrected errors below 10 during the snapshot and 100 per day since boot",
    severity=Severity.FAIL,
    component="host",
    remedy="replace the named DIMM",
    judge=limit(_memory_errors, "memory errors are not counted (no EDAC)"),
)


def _count(text: str | None) -> int | None:
    """Parse a count; None if it is not a number."""
    return int(text) if text and text.isdecimal() and len(text) <= 18 else None


def _dimms(host: Host, controller: str) -> str:
    """Return `: DIMM_A1 12` for the DIMMs with errors; '' if the kernel does not report them."""
    dimms = []
    for name in host.snapshot.names(controller):
        counts = [host.number(f"{controller}/{name}/dimm_{kind}_count") or 0 for kind in ("ue", "ce")]
        if sum(counts) > 0:
            label = shortened(host.read(f"{controller}/{name}/dimm_label") or "", 40)
            dimms.append(f"{label if _is_label(label) else name} {sum(counts)}")
    return f": {', '.join(dimms[:4])}" if dimms else ""


def _is_label(text: str) -> bool:
    """Tell whether a text is the label of a DIMM, not an address or a separator."""
    return (text[:1].isalnum() or text[:1] == "_") and all(one.isalnum() or one in "_ #/.-" for one in text)
