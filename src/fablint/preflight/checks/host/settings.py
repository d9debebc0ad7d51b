"""Checks of host settings that slow down messages or let them fail."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import HostCheck, UniformCheck, Value
from fablint.preflight.host import CXI, INFINIBAND, Host
from fablint.snapshot.host_snapshot import Tree
from fablint.snapshot.memo import once_per_folder
from fablint.text.sanitise import shortened

CPUS = "/sys/devices/system/cpu"
GIB = 1 << 30
MIB = 1 << 20


class Memlock(HostCheck):
    id = "host.memlock"
    what = "the limit of locked memory for programs of the launcher"
    source = "/proc/self/limits"
    rule = "unlimited or at least 1 GiB; RDMA fails with 64 MiB or less"
    severity = Severity.FAIL
    component = "config"
    remedy = "set memlock unlimited in limits.conf and LimitMEMLOCK=infinity for the launcher's daemon"
    absent = "no RDMA device"

    _LINE = re.compile(r"^Max locked memory +(\w+)", re.MULTILINE)
    _TOO_LITTLE, _ENOUGH = 64 * MIB, GIB

    def look(self, host: Host) -> Iterable[Result]:
        if not rdma_devices(host):
            return
        text = host.read("/proc/self/limits")
        match = self._LINE.search(text or "")
        if text is None:
            yield self.skip(host.name, "", "no /proc/self/limits")
        elif match is None or not (match[1] == "unlimited" or match[1].isdecimal()):
            yield self.error(host.name, "", "no limit of locked memory in /proc/self/limits")
        elif match[1] == "unlimited" or len(match[1]) > 18 or int(match[1]) >= self._ENOUGH:
            yield self.ok(host.name)
        elif host.snapshot.root:
            yield self.skip(host.name, "", "read as root, which has no limit")
        else:
            limit = int(match[1])
            say = self.failure if limit <= self._TOO_LITTLE else self.warning
            yield say(host.name, "", f"limit of locked memory {limit / MIB:g} MiB", limit, "unlimited")


class SharedMemory(HostCheck):
    id = "host.shm"
    what = "the shared memory file system /dev/shm"
    source = "statvfs of /dev/shm"
    rule = "at least 256 MiB or a tenth of the memory, less than 90 % used"
    severity = Severity.WARN
    component = "host"
    remedy = "remove files of ended jobs from /dev/shm; mount it with a larger size"
    absent = "no /dev/shm"

    def look(self, host: Host) -> Iterable[Result]:
        size, free = (host.snapshot.shared_memory.get(key) for key in ("size", "free"))
        if not size or free is None or size < 0:
            return
        memory = memory_of(host)
        required = min(256 * MIB, memory // 10) if memory else 256 * MIB  # NCCL fails with the 64 MiB of containers
        used = 1 - free / size
        if size < required:
            yield self.failure(host.name, "", f"only {size / MIB:.0f} MiB", size, required)
        elif used > 0.9:
            yield self.failure(host.name, "", f"{used:.0%} of {size / GIB:.1f} GiB used", used, 0.9)
        else:
            yield self.ok(host.name)


class Hugepages(UniformCheck):
    id = "host.hugepages"
    what = "the number of reserved huge pages"
    source = "/proc/meminfo, HugePages_Total and Hugepagesize"
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "set vm.nr_hugepages to the same value on all hosts"
    words = "huge pages {}"
    absent = "no huge pages in /proc/meminfo"

    _LINES = re.compile(r"^HugePages_Total: +(\d{1,12})$.*^Hugepagesize: +(\d{1,12}) kB", re.MULTILINE | re.DOTALL)

    def values(self, host: Host) -> Mapping[str, Any]:
        match = self._LINES.search(host.read("/proc/meminfo") or "")
        return {"": f"{match[1]} of {match[2]} kB"} if match else {}


class Governor(HostCheck):
    id = "host.governor"
    what = "the frequency governor of the CPUs"
    source = f"{CPUS}/cpu*/cpufreq/scaling_governor"
    rule = "`performance` on every CPU"
    severity = Severity.WARN
    component = "config"
    remedy = "cpupower frequency-set -g performance"
    absent = "no frequency scaling (cpufreq)"
    expects = True

    def site_values(self, host: Host) -> Mapping[str, Value]:
        return {"": ", ".join(sorted({shortened(one, 20) for one in _governors(host.snapshot.folder(CPUS))})) or None}

    def worded(self, target: str, value: Value) -> str:
        return f"governor {value}"

    def look(self, host: Host) -> Iterable[Result]:
        known = _governors(host.snapshot.folder(CPUS))
        others = {name: count for name, count in known.items() if name != "performance"}
        if others:
            found = ", ".join(f"{shortened(name, 20)} on {count}" for name, count in sorted(others.items()))
            yield self.failure(host.name, "", f"{found} of {known.total()} CPUs", found, "performance")
        elif known:
            yield self.ok(host.name)


@once_per_folder
def _governors(folder: Tree) -> Counter[str]:
    """Count the CPUs of each governor."""
    cpus = [cpu.get("cpufreq") for cpu in folder.values() if isinstance(cpu, dict)]
    chosen = [frequency.get("scaling_governor") for frequency in cpus if isinstance(frequency, dict)]
    return Counter(governor for governor in chosen if governor and isinstance(governor, str))


class IdleStates(HostCheck):
    id = "host.cstates"
    what = "the enabled idle states of the CPUs"
    source = f"{CPUS}/cpu0/cpuidle/state*/latency, disable"
    rule = "no state with an exit latency above 50 us"
    severity = Severity.WARN
    component = "config"
    remedy = "disable deep states: cpupower idle-set -D 50, or a tuned profile for latency"
    absent = "no idle states (cpuidle)"

    expects = True
    numeric = True

    _AT = f"{CPUS}/cpu0/cpuidle"
    _MOST_US = 50

    def site_values(self, host: Host) -> Mapping[str, Value]:
        """Return the exit latency of the deepest enabled state in microseconds."""
        return {"": max(known.values()) if (known := self._enabled(host)) else None}

    def is_met(self, value: Value, expected: Value) -> bool:
        return isinstance(value, int) and isinstance(expected, int | float) and value <= expected

    def worded(self, target: str, value: Value) -> str:
        return f"exit latency {value} us"

    def _latencies(self, host: Host) -> Mapping[str, int]:
        states = host.snapshot.names(self._AT)
        found = {state: host.number(f"{self._AT}/{state}/latency") for state in states}
        return {state: latency for state, latency in found.items() if latency is not None}

    def _enabled(self, host: Host) -> Mapping[str, int]:
        known = self._latencies(host)
        return {state: known[state] for state in known if host.number(f"{self._AT}/{state}/disable") == 0}

    def look(self, host: Host) -> Iterable[Result]:
        known = self._latencies(host)
        deep = [
            (latency, shortened(host.read(f"{self._AT}/{state}/name") or state, 20))
            for state, latency in self._enabled(host).items()
            if latency > self._MOST_US
        ]
        if deep:
            states = ", ".join(f"{name} ({latency} us)" for latency, name in sorted(deep))
            yield self.failure(host.name, "", f"deep states enabled: {states}", max(deep)[0], self._MOST_US)
        elif known:
            yield self.ok(host.name)


class Iommu(HostCheck):
    id = "host.iommu"
    what = "IOMMU translation of RDMA devices"
    source = "/sys/class/DEVICE/device/iommu_group, /sys/kernel/iommu_groups/*/type"
    rule = "no IOMMU, or pass-through (identity)"
    severity = Severity.WARN
    component = "config"
    remedy = "boot with iommu=pt"
    absent = "no RDMA device"
    expects = True

    _NONE = "none"  # no group, hence no translation

    def site_values(self, host: Host) -> Mapping[str, Value]:
        return {device: self._kind(host, at) for device, at in rdma_devices(host).items()}

    def worded(self, target: str, value: Value) -> str:
        return f"IOMMU: {value}"

    def _kind(self, host: Host, at: str) -> str | None:
        """Return the type of the IOMMU group of a device; None if it is not visible."""
        group = host.snapshot.link(f"{at}/device/iommu_group")
        if not group:
            return self._NONE if host.snapshot.link(f"{at}/device") else None
        return shortened(host.read(f"/sys/kernel/iommu_groups/{group}/type") or "", 20) or None

    def look(self, host: Host) -> Iterable[Result]:
        for device, at in rdma_devices(host).items():
            kind = self._kind(host, at)
            if kind is None:
                yield self.skip(host.name, device, "its IOMMU group cannot be read")
            elif kind in (self._NONE, "identity"):
                yield self.ok(host.name, device)
            else:
                yield self.failure(host.name, device, f"translated: {kind}", kind, "identity")


class HugepagesOnDemand(UniformCheck):
    id = "host.thp"
    what = "transparent huge pages"
    source = "/sys/kernel/mm/transparent_hugepage/enabled"
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "use the same setting on all hosts"
    words = "transparent huge pages: {}"

    _CHOSEN = re.compile(r"\[(\w{1,20})\]")

    def values(self, host: Host) -> Mapping[str, Any]:
        match = self._CHOSEN.search(host.read("/sys/kernel/mm/transparent_hugepage/enabled") or "")
        return {"": match[1]} if match else {}


class NumaBalancing(UniformCheck):
    id = "host.numa.balancing"
    what = "automatic NUMA balancing"
    source = "/proc/sys/kernel/numa_balancing"
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "set kernel.numa_balancing to the same value on all hosts; 0 disturbs measurements least"
    words = "numa_balancing {}"
    numeric = True

    def values(self, host: Host) -> Mapping[str, Any]:
        return {"": host.number("/proc/sys/kernel/numa_balancing")}


class ClockSync(HostCheck):
    id = "host.time"
    what = "clock synchronisation"
    source = "chronyc tracking, else timedatectl"
    rule = "synchronised, with an offset below 1 ms"
    severity = Severity.WARN
    component = "config"
    remedy = "start chronyd and check its sources (chronyc sources)"

    _OFFSET, _LEAP, _FIELDS = 4, 13, 14  # of `chronyc -c tracking`
    _MOST_S = 1e-3

    def look(self, host: Host) -> Iterable[Result]:
        chrony, systemd = host.command("chronyc"), host.command("timedatectl")
        if chrony.status == 0:
            yield self._tracking(host, chrony.text)
        elif systemd.status == 0:
            synchronised = re.search(r"^NTPSynchronized=(yes|no)$", systemd.text, re.MULTILINE)
            if synchronised is None:
                yield self.error(host.name, "", "timedatectl does not report NTPSynchronized")
            elif synchronised[1] == "no":
                yield self.failure(host.name, "", "clock not synchronised")
            else:
                yield self.ok(host.name)
        else:
            why = f"chronyc: {chrony.error or 'failed'}; timedatectl: {systemd.error or 'failed'}"
            yield self.skip(host.name, "", shortened(why, 160))

    def _tracking(self, host: Host, text: str) -> Result:
        fields = text.strip().split(",")
        try:
            offset = abs(float(fields[self._OFFSET]))
            leap = fields[self._LEAP]
        except (ValueError, IndexError):
            return self.error(host.name, "", f"chronyc: {shortened(text) or 'no output'}")
        if leap == "Not synchronised":
            return self.failure(host.name, "", "clock not synchronised")
        if not offset < self._MOST_S:
            return self.failure(host.name, "", f"clock off by {1000 * offset:.3g} ms", offset, self._MOST_S)
        return self.ok(host.name, value=offset, unit="s")


class AccessControl(HostCheck):
    id = "host.acs"
    what = "Access Control Services (ACS) of PCIe bridges between GPUs and NICs"
    source = "lspci -vvv, ACSCtl of the bridges above GPUs and NICs"
    rule = "off on hosts with GPUs, so that GPUs and NICs communicate directly"
    severity = Severity.WARN
    component = "config"
    root = True
    remedy = "disable ACS on these bridges (BIOS, or setpci at boot)"

    _HEAD = re.compile(r"^((?:[0-9a-f]{4,8}:)?)([0-9a-f]{2}):[0-9a-f]{2}\.[0-7] (?P<kind>[^:\n]{1,80}): ", re.MULTILINE)
    _BUSES = re.compile(r"secondary=([0-9a-f]{2}), subordinate=([0-9a-f]{2})")
    _GPU = ("3D controller", "Processing accelerators", "VGA compatible controller", "Display controller")
    _NIC = ("Infiniband controller", "Ethernet controller", "Network controller")

    def look(self, host: Host) -> Iterable[Result]:
        output = host.command("lspci")
        if output.status != 0:
            return [self.skip(host.name, "", f"lspci: {shortened(output.error) or 'failed'}")]
        if not host.snapshot.root:
            return [self.skip(host.name, "", "lspci shows it to root only")]
        devices = [
            (head[1], int(head[2], 16), head["kind"], part)
            for part in re.split(r"\n\s*\n", output.text)
            if (head := self._HEAD.search(part))
        ]
        if not any(kind.startswith(self._GPU) and not kind.startswith("VGA") for _, _, kind, _ in devices):
            return [self.skip(host.name, "", "no GPU")]
        ends = {(domain, bus) for domain, bus, kind, _ in devices if kind.startswith(self._GPU + self._NIC)}
        on = [part.split(" ", 1)[0].strip() for domain, _, _, part in devices if self._redirects(domain, part, ends)]
        if not on:
            return [self.ok(host.name)]
        more = f" and {len(on) - 4} more" if len(on) > 4 else ""
        return [self.failure(host.name, "", f"ACS on: bridge {', '.join(on[:4])}{more}", len(on), 0)]

    def _redirects(self, domain: str, part: str, ends: set[tuple[str, int]]) -> bool:
        """Tell whether a bridge above one of these buses redirects peer-to-peer traffic to the root complex."""
        buses = self._BUSES.search(part)
        control = re.search(r"ACSCtl:(.*)", part)
        if buses is None or control is None or "+" not in control[1]:
            return False
        below = range(int(buses[1], 16), int(buses[2], 16) + 1)
        return any((domain, bus) in ends for bus in below)


def rdma_devices(host: Host) -> dict[str, str]:
    """Return the folders of RDMA devices by name."""
    found = {device: f"{INFINIBAND}/{device}" for device in host.snapshot.names(INFINIBAND)}
    return {**found, **{device: f"{CXI}/{device}" for device in host.cxi}}


def memory_of(host: Host) -> int | None:
    """Return the kernel's memory in bytes; None if unknown."""
    match = re.match(r"MemTotal: +(\d{1,15}) kB", host.read("/proc/meminfo") or "")
    return 1024 * int(match[1]) if match and int(match[1]) else None
