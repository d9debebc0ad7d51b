# ruff: noqa: UP006, UP031, UP035
"""Probe of memory copy and computation rates on all cores that this process may use, for about one second.

Sent to every host between machine.py and collector.py, under the same rules. Throttled hosts and hosts with a missing
memory channel or a wrong BIOS setting are slow without an error counter. The probe uses libc's memcpy and SHA-256 of a
block in the cache: every host has both, and both release Python's lock, so that one thread per core runs concurrently.
A BLAS would differ between hosts.
"""

import hashlib
import json
import os
import platform
import re
import threading
import time
from contextlib import suppress
from typing import Any, Callable, Dict, List, Tuple

from fablint.snapshot.agent.machine import Machine, begin, wait_for

PROBE = "probe"  # the name of its answer among those of programs
DURATION_S = 0.5  # of either half
SLICES = 5  # of it, which are compared with one another
COPIED = 16 << 20  # bytes of one copy of a core: with its source more than the caches have for a core
HASHED = 1 << 16  # bytes of which a hash is computed
SHARE = 8  # of the memory that is available at most one part in so many is used
LEAST_S = 5.0  # that must be left: threads are started, memory is filled
Work = Callable[[], Any]
Spans = List[Tuple[float, float]]  # when each piece of work began and ended, in seconds


def add_probe(machine: Machine, answers: Dict[str, Any]) -> None:
    """Measure the speed of this host and store the result as output of the program PROBE in `answers`.

    With a root directory the output is read from a file. Without time, and after an error, the entry has an `error`.
    """
    if machine.root:
        answers[PROBE] = machine.ask(PROBE, [], 0.0)
    elif machine.left() < LEAST_S:
        answers[PROBE] = {"error": "no time was left for it"}
    else:
        try:
            answers[PROBE] = {"output": json.dumps(probe(machine), sort_keys=True), "status": 0}
        except (OSError, MemoryError, RuntimeError, ValueError) as error:
            answers[PROBE] = {"error": str(error) or type(error).__name__}


def probe(machine: Machine) -> Dict[str, Any]:
    """Measure the rates in bytes/s. Raises OSError, MemoryError, RuntimeError, ValueError."""
    cpus = cores(machine)
    if len(cpus) * 2 * COPIED > free_memory(machine) // SHARE:
        raise MemoryError("too little free memory for a measurement")
    copier = libc_copy()
    begun, busy, used = time.monotonic(), busy_seconds(machine), own_seconds()
    copies = run(machine, cpus if copier else cpus[:1], lambda: copying(copier))
    hashes = run(machine, cpus, hashing)
    passed = time.monotonic() - begun
    others = (busy_seconds(machine) - busy) - (own_seconds() - used)
    return {
        "cores": len(cpus),
        "with": "%s, Python %s" % ("memcpy" if copier else "memoryview", platform.python_version()),
        "copy": rates(copies, 2 * COPIED),  # read and written, as STREAM counts them
        "hash": rates(hashes, HASHED),
        "others": round(max(others / passed, 0.0), 3),  # CPUs used by other programs
        "seconds": round(passed, 3),
    }


# ------------------------------------------------------------------------------------------------ the work


def libc_copy() -> Any:
    """Return libc's memcpy, which releases Python's lock; None without ctypes."""
    try:
        import ctypes

        function = ctypes.CDLL(None).memcpy
        function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        function.restype = ctypes.c_void_p
    except (ImportError, OSError, AttributeError):
        return None
    return function


def copying(copier: Any) -> Work:
    """Return a function that copies a block; the memory is allocated on the calling core."""
    source, target = bytearray(b"\1") * COPIED, bytearray(b"\2") * COPIED
    if copier is None:
        view = memoryview(target)

        def copy_view() -> None:
            view[:] = source

        return copy_view
    import ctypes

    here, there = ((ctypes.c_char * COPIED).from_buffer(one) for one in (source, target))
    addresses = ctypes.addressof(there), ctypes.addressof(here)

    def copy(_kept: Any = (here, there)) -> None:
        copier(addresses[0], addresses[1], COPIED)

    return copy


def hashing() -> Work:
    """Return a unit of work for one CPU: the SHA-256 of a block in the cache."""
    block, digest = b"\1" * HASHED, hashlib.sha256()
    return lambda: digest.update(block)


def run(machine: Machine, cpus: List[int], prepare: Callable[[], Work]) -> Dict[int, Spans]:
    """Run the work on each of these CPUs concurrently. Raises RuntimeError."""
    spans: Dict[int, Spans] = {}
    ready = threading.Barrier(len(cpus))
    limit_s = max(machine.left() - LEAST_S / 5, 0.1)

    def on(cpu: int) -> None:
        intervals: Spans = []
        try:
            os.sched_setaffinity(0, {cpu})  # of this thread
            work = prepare()
            work()
            ready.wait(limit_s)
        except (OSError, MemoryError, threading.BrokenBarrierError):
            ready.abort()
            return
        before = time.monotonic()
        end = before + DURATION_S
        while before < end:
            work()
            after = time.monotonic()
            intervals.append((before, after))
            before = after
        spans[cpu] = intervals

    wait_for([begin(on, cpu) for cpu in cpus], time.monotonic() + limit_s)
    if len(spans) < len(cpus):
        raise RuntimeError("it did not run on all of %d cores" % len(cpus))
    return dict(spans)


def rates(spans: Dict[int, Spans], amount: int) -> Dict[str, Any]:
    """Return the total rate, the spread of time slices, and the slowest core relative to the median core.

    Raises
    ------
    RuntimeError
        The cores did not run at the same time.
    """
    begin_s = max(intervals[0][0] for intervals in spans.values())
    end_s = min(intervals[-1][1] for intervals in spans.values())
    length = (end_s - begin_s) / SLICES
    if length <= 0:
        raise RuntimeError("cores did not run at the same time")
    slices = [0.0] * SLICES
    for span in spans.values():
        for before, after in span:
            for index in range(SLICES):
                start = begin_s + index * length
                shared = min(after, start + length) - max(before, start)
                if shared > 0:
                    slices[index] += amount * shared / (after - before) / length
    rate_of_cpu = {
        cpu: len(intervals) * amount / (intervals[-1][1] - intervals[0][0]) for cpu, intervals in spans.items()
    }
    slowest = min(rate_of_cpu, key=lambda cpu: rate_of_cpu[cpu])
    return {
        "rate": round(middle(slices)),
        "spread": round((max(slices) - min(slices)) / middle(slices), 4),
        "slowest": slowest,
        "share": round(rate_of_cpu[slowest] / middle(list(rate_of_cpu.values())), 4),
    }


def middle(values: List[float]) -> float:
    """Return the upper median of a list that is not empty."""
    return sorted(values)[len(values) // 2]


# ------------------------------------------------------------------------------------------------ the host


def cores(machine: Machine) -> List[int]:
    """Return one CPU of each core that this process may use."""
    result: Dict[str, int] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        path = "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list" % cpu
        siblings = machine.read(path)
        result.setdefault(siblings if isinstance(siblings, str) else str(cpu), cpu)
    return sorted(result.values())


def free_memory(machine: Machine) -> int:
    """Return the usable memory in bytes: available to the kernel, and within the limits of the job."""
    available = re.search(r"^MemAvailable: +(\d+) kB", str(machine.read("/proc/meminfo")), re.MULTILINE)
    limits = [int(available.group(1)) * 1024] if available else [0]
    for line in str(machine.read("/proc/self/cgroup")).splitlines():
        _, _, rest = line.partition(":")
        kinds, _, group = rest.partition(":")
        if kinds in ("", "memory"):
            root, name = ("/memory", "memory.limit_in_bytes") if kinds else ("", "memory.max")
            limits += group_limits(machine, "/sys/fs/cgroup" + root, group, name)
    return min(limits)


def group_limits(machine: Machine, root: str, group: str, name: str) -> List[int]:
    """Return the limits of a control group and its parents."""
    result = []
    parts = [part for part in group.split("/") if part]
    for count in range(len(parts) + 1):
        text = machine.read("/".join([root, *parts[:count], name]))
        with suppress(TypeError, ValueError):  # `max`, or no such file
            result.append(int(text))
    return result


def busy_seconds(machine: Machine) -> float:
    """Return the busy CPU time of the host in seconds, including steal time.

    Raises
    ------
    ValueError
        /proc/stat cannot be read.
    """
    words = str(machine.read("/proc/stat")).partition("\n")[0].split()
    if len(words) < 9 or words[0] != "cpu":
        raise ValueError("/proc/stat cannot be read")
    user, nice, system, _, _, irq, softirq, steal = map(int, words[1:9])
    return (user + nice + system + irq + softirq + steal) / float(os.sysconf("SC_CLK_TCK"))


def own_seconds() -> float:
    """Return the CPU time of this process in seconds."""
    used = os.times()
    return used.user + used.system
