"""Parsers of files of /proc and /etc, and of lists in files of /sys. Similar hosts have the same texts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from fablint.text.sanitise import shortened

_TEXTS = 4096  # texts of which a parser remembers the facts
_MEMORY = re.compile(
    r"^(?:Node \d{1,5} )?(MemTotal|MemAvailable|HugePages_Total|Hugepagesize): +(\d{1,15})(?: kB)?$", re.MULTILINE
)
_CPU_FIELD = re.compile(r"^(model name|microcode|CPU part|cpu|flags)\s*:\s*(\S.*)$", re.MULTILINE)
_CPU_NOISE = re.compile(r"\((?:R|TM|r|tm)\)|\bCPU\b|\bProcessor\b|@ .*|\b\d+-Core\b")
_MEMLOCK = re.compile(r"^Max locked memory +(\w+)", re.MULTILINE)
_OPTION = re.compile(r'([^\s=]+)(?:=("[^"]*"|\S*))?')
_IGNORED = frozenset({"BOOT_IMAGE", "initrd"})  # options that name the kernel
_OF_HOST = re.compile(  # values of a single host: UUIDs, MAC and IP addresses, Cray's xnames
    r"[0-9a-f]{8}-[0-9a-f]{4}-|(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}|\d+\.\d+\.\d+\.\d+|\bx\d+c\d+s\d+b\d+n\d+",
    re.IGNORECASE,
)
_PRETTY = re.compile(r"^PRETTY_NAME=\"?([^\"\n]*)", re.MULTILINE)
_SERVER = re.compile(r"^\s*nameserver\s+(\S+)", re.MULTILINE)
_BOOTED = re.compile(r"(?:^|\s)(?:BOOT_IMAGE|root)=(\S+)")
_ROOT = re.compile(r"^\d+ \d+ (\d+:\d+) \S+ / ", re.MULTILINE)
_LIST = re.compile(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*")
_LOAD = re.compile(r"\d{1,9}\.\d{1,9}")
_SECONDS = re.compile(r"\d{1,10}(?:\.\d{1,9})?")
_CHOSEN = re.compile(r"\[(\w{1,20})\]")


class MemoryInfo(NamedTuple):
    """Figures of /proc/meminfo, or of the `meminfo` of a NUMA node; None: not reported."""

    total: int | None = None  # bytes
    available: int | None = None  # bytes
    huge_pages: int | None = None
    huge_page_kib: int | None = None


@lru_cache(maxsize=_TEXTS)
def memory_info(text: str | None) -> MemoryInfo:
    """Parse /proc/meminfo."""
    numbers = {name: int(figure) for name, figure in _MEMORY.findall(text or "")}
    total, available = (1024 * numbers[name] if name in numbers else None for name in ("MemTotal", "MemAvailable"))
    return MemoryInfo(total, available, numbers.get("HugePages_Total"), numbers.get("Hugepagesize"))


class CpuInfo(NamedTuple):
    """Fields of a CPU in /proc/cpuinfo; '' and no flags: not reported."""

    model: str = ""  # `Intel(R) Xeon(R) Platinum 8480+`, on Arm and Power the part or name
    short_model: str = ""  # `Intel Xeon Platinum 8480+`
    microcode: str = ""
    flags: frozenset[str] = frozenset()


@lru_cache(maxsize=_TEXTS)
def cpu_info(text: str | None) -> CpuInfo:
    """Parse /proc/cpuinfo."""
    fields = _CPU_FIELD.findall(text or "")
    first, last = dict(reversed(fields)), dict(fields)
    model = next((value for name, value in fields if name in ("model name", "CPU part", "cpu")), "")
    name = last.get("model name") or (f"CPU part {last['CPU part']}" if "CPU part" in last else "")
    short_model = shortened(_CPU_NOISE.sub(" ", name), 40)
    flags = frozenset(first.get("flags", "").split())
    return CpuInfo(" ".join(model.split())[:80], short_model, last.get("microcode", ""), flags)


def locked_memory_limit(text: str) -> str:
    """Return the limit of locked memory in /proc/self/limits: bytes, or `unlimited`; '' if it is not reported."""
    match = _MEMLOCK.search(text)
    return match[1] if match else ""


@lru_cache(maxsize=_TEXTS)
def boot_options(text: str) -> Mapping[str, str]:
    """Return the kernel's boot options in /proc/cmdline with their values; all values of a repeated option."""
    result: dict[str, list[str]] = defaultdict(list)
    for name, value in _OPTION.findall(text):
        if name not in _IGNORED:
            result[name].append("=..." if _OF_HOST.search(value) else f"={value}" if value else "")
    return {name: ",".join(values) for name, values in result.items()}


def boot_images(text: str | None) -> Sequence[str]:
    """Return the boot image and the root device in /proc/cmdline."""
    return _BOOTED.findall(text or "")


def system_name(text: str | None) -> str:
    """Return the name of the operating system in /etc/os-release; '' if it has none."""
    match = _PRETTY.search(text or "")
    return match[1] if match else ""


def name_servers(text: str | None) -> Sequence[str]:
    """Return the name servers in /etc/resolv.conf, without duplicates."""
    return list(dict.fromkeys(_SERVER.findall(text or "")))


def root_device(text: str | None) -> str:
    """Return the number `8:2` of the device of the root file system in /proc/self/mountinfo; '' if it has none."""
    match = _ROOT.search(text or "")
    return match[1] if match else ""


def load_average(text: str | None) -> float | None:
    """Return the load of the last minute in /proc/loadavg; None if it cannot be parsed."""
    match = _LOAD.match(text or "")
    return float(match[0]) if match else None


def uptime_s(text: str | None) -> float | None:
    """Return the seconds since the boot in /proc/uptime; None if it cannot be parsed."""
    match = _SECONDS.fullmatch((text or "").partition(" ")[0])
    return float(match[0]) if match else None


def chosen_of(text: str | None) -> str:
    """Return the chosen word of a list such as `always [madvise] never`; '' if there is none."""
    match = _CHOSEN.search(text or "")
    return match[1] if match else ""


def count_listed(text: str | None) -> int | None:
    """Count the numbers in a list such as `0-3,8`; None for other texts."""
    if not text or not _LIST.fullmatch(text):
        return None
    ranges = [part.split("-") for part in text.split(",")]
    return sum(max(int(ends[-1]) - int(ends[0]) + 1, 0) for ends in ranges)


def table_overflows(text: str | None) -> str | None:
    """Return the sum of `table_fulls` over all CPUs in /proc/net/stat/arp_cache: a hexadecimal row per CPU."""
    head, _, rows = (text or "").partition("\n")
    names, words = head.split(), rows.split()
    if "table_fulls" not in names or len(words) % len(names):
        return None
    try:
        return str(sum(int(word, 16) for word in words[names.index("table_fulls") :: len(names)]))
    except ValueError:
        return None


def reverse_path_drops(text: str | None) -> str | None:
    """Return IPReversePathFilter in /proc/net/netstat, of lines of names and values that begin with `TcpExt:`."""
    lines = [line.split() for line in (text or "").splitlines() if line.startswith("TcpExt:")]
    return dict(zip(*lines[:2], strict=False)).get("IPReversePathFilter") if len(lines) > 1 else None


class CpuTimes(NamedTuple):
    """Times of all CPUs since the boot, in ticks."""

    total: int
    stolen: int  # by the hypervisor


_STOLEN = 7  # place of the stolen time; guest times, which follow, are in those of users


@lru_cache(maxsize=4096)
def cpu_times(text: str | None) -> CpuTimes | None:
    """Parse the first line of /proc/stat: `cpu  10132153 290696 3084719 46828483 16683 0 25195 0 175628 0`."""
    name, *ticks = (text or "").split()[: _STOLEN + 2] or [""]
    if name != "cpu" or len(ticks) <= _STOLEN or not all(tick.isdecimal() and len(tick) < 20 for tick in ticks):
        return None
    return CpuTimes(sum(map(int, ticks)), int(ticks[_STOLEN]))


def allowed_cpus(text: str | None) -> int | None:
    """Return the number of CPUs in `Cpus_allowed_list:\t0-15`; None if it cannot be parsed."""
    return count_listed((text or "").removeprefix("Cpus_allowed_list:").strip())
