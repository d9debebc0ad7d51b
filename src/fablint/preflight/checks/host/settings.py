"""Checks of host settings that slow down messages or let them fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check, SiteValues, Value
from fablint.preflight.host import CPUS, Host
from fablint.preflight.judges import limit, uniform
from fablint.snapshot.host_snapshot import Tree
from fablint.snapshot.memo import once_per_folder
from fablint.snapshot.parsers.lspci import pci_functions
from fablint.snapshot.parsers.proc_files import chosen_of, locked_memory_limit
from fablint.text.sanitise import shortened
from fablint.text.units import share_text

GIB = 1 << 30
MIB = 1 << 20


_MEMLOCK_TOO_LITTLE, _MEMLOCK_ENOUGH = 64 * MIB, GIB


def _memlock(check: Check, host: Host) -> Iterable[Result]:
    if not host.rdma_devices:
        return
    text = host.read("/proc/self/limits")
    allowed = locked_memory_limit(text or "")
    if text is None:
        yield check.skip(host.name, "", "no /proc/self/limits")
    elif allowed != "unlimited" and not allowed.isdecimal():
        yield check.error(host.name, "", "no limit of locked memory in /proc/self/limits")
    elif allowed == "unlimited" or len(allowed) > 18 or int(allowed) >= _MEMLOCK_ENOUGH:
        yield check.ok(host.name)
    elif host.snapshot.root:
        yield check.skip(host.name, "", "read as root, which has no limit")
    else:
        octets = int(allowed)
        say = check.failure if octets <= _MEMLOCK_TOO_LITTLE else check.warning
        yield say(host.name, "", f"limit of locked memory {octets / MIB:g} MiB", octets, "unlimited")


MEMLOCK = Check(
    id="host.memlock",
    what="the limit of locked memory for programs of the launcher",
    source="/proc/self/limits",
    rule="unlimited or at least 1 GiB; RDMA fails with 64 MiB or less",
    severity=Severity.FAIL,
    remedy="set memlock unlimited in limits.conf and LimitMEMLOCK=infinity for the launcher's daemon",
    judge=limit(_memlock, "no RDMA device"),
)


def _shared_memory(check: Check, host: Host) -> Iterable[Result]:
    size, free = (host.snapshot.shared_memory.get(key) for key in ("size", "free"))
    if not size or free is None or size < 0:
        return
    memory = host.memory.total
    required = min(256 * MIB, memory // 10) if memory else 256 * MIB  # NCCL fails with the 64 MiB of containers
    used = 1 - free / size
    if size < required:
        yield check.failure(host.name, "", f"only {size / MIB:.0f} MiB", size, required)
    elif used > 0.9:
        yield check.failure(host.name, "", f"{share_text(used)} of {size / GIB:.1f} GiB used", used, 0.9)
    else:
        yield check.ok(host.name)


SHARED_MEMORY = Check(
    id="host.shm",
    what="the shared memory file system /dev/shm",
    source="statvfs of /dev/shm",
    rule="at least 256 MiB or a tenth of the memory, less than 90 % used",
    component="host",
    remedy="remove files of ended jobs from /dev/shm; mount it with a larger size",
    judge=limit(_shared_memory, "no /dev/shm"),
)


def _hugepages(host: Host) -> Mapping[str, Any]:
    count, size = host.memory.huge_pages, host.memory.huge_page_kib
    return {} if count is None or size is None else {"": f"{count} of {size} kB"}


HUGEPAGES = Check(
    id="host.hugepages",
    what="the number of reserved huge pages",
    source="/proc/meminfo, HugePages_Total and Hugepagesize",
    remedy="set vm.nr_hugepages to the same value on all hosts",
    judge=uniform(_hugepages, "huge pages {}", absent="no huge pages in /proc/meminfo"),
)


def _governor_values(host: Host) -> Mapping[str, Value]:
    return {"": ", ".join(sorted({shortened(one, 20) for one in _governors(host.snapshot.folder(CPUS))})) or None}


def _worded_governor(target: str, value: Value) -> str:
    return f"governor {value}"


def _governor(check: Check, host: Host) -> Iterable[Result]:
    governors = _governors(host.snapshot.folder(CPUS))
    others = {name: count for name, count in governors.items() if name != "performance"}
    if others:
        result = ", ".join(f"{shortened(name, 20)} on {count}" for name, count in sorted(others.items()))
        yield check.failure(host.name, "", f"{result} of {governors.total()} CPUs", result, "performance")
    elif governors:
        yield check.ok(host.name)


GOVERNOR = Check(
    id="host.governor",
    what="the frequency governor of the CPUs",
    source=f"{CPUS}/cpu*/cpufreq/scaling_governor",
    rule="`performance` on every CPU",
    remedy="cpupower frequency-set -g performance",
    judge=limit(
        _governor,
        "no frequency scaling (cpufreq)",
        site=SiteValues(lambda _, host: _governor_values(host), _worded_governor),
    ),
)


@once_per_folder
def _governors(folder: Tree) -> Counter[str]:
    """Count the CPUs of each governor."""
    cpus = [cpu.get("cpufreq") for cpu in folder.values() if isinstance(cpu, dict)]
    chosen = [frequency.get("scaling_governor") for frequency in cpus if isinstance(frequency, dict)]
    return Counter(governor for governor in chosen if governor and isinstance(governor, str))


_AT = f"{CPUS}/cpu0/cpuidle"
_MOST_US = 50


def _idle_states_values(host: Host) -> Mapping[str, Value]:
    """Return the exit latency of the deepest enabled state in microseconds."""
    return {"": max(latencies.values()) if (latencies := _enabled(host)) else None}


def _is_met_idle_states(value: Value, expected: Value) -> bool:
    return isinstance(value, int) and isinstance(expected, int | float) and value <= expected


def _worded_idle_states(target: str, value: Value) -> str:
    return f"exit latency {value} us"


def _latencies(host: Host) -> Mapping[str, int]:
    states = host.snapshot.names(_AT)
    numbers = {state: host.number(f"{_AT}/{state}/latency") for state in states}
    return {state: latency for state, latency in numbers.items() if latency is not None}


def _enabled(host: Host) -> Mapping[str, int]:
    latencies = _latencies(host)
    return {state: latencies[state] for state in latencies if host.number(f"{_AT}/{state}/disable") == 0}


def _idle_states(check: Check, host: Host) -> Iterable[Result]:
    latencies = _latencies(host)
    deep = [
        (latency, shortened(host.read(f"{_AT}/{state}/name") or state, 20))
        for state, latency in _enabled(host).items()
        if latency > _MOST_US
    ]
    if deep:
        states = ", ".join(f"{name} ({latency} us)" for latency, name in sorted(deep))
        yield check.failure(host.name, "", f"deep states enabled: {states}", max(deep)[0], _MOST_US)
    elif latencies:
        yield check.ok(host.name)


IDLE_STATES = Check(
    id="host.cstates",
    what="the enabled idle states of the CPUs",
    source=f"{CPUS}/cpu0/cpuidle/state*/latency, disable",
    rule="no state with an exit latency above 50 us",
    remedy="disable deep states: cpupower idle-set -D 50, or a tuned profile for latency",
    judge=limit(
        _idle_states,
        "no idle states (cpuidle)",
        site=SiteValues(
            lambda _, host: _idle_states_values(host), _worded_idle_states, numeric=True, is_met=_is_met_idle_states
        ),
    ),
)


_NONE = "none"  # no group, hence no translation


def _iommu_values(host: Host) -> Mapping[str, Value]:
    return {device: _kind(host, at) for device, at in host.rdma_devices.items()}


def _worded_iommu(target: str, value: Value) -> str:
    return f"IOMMU: {value}"


def _kind(host: Host, at: str) -> str | None:
    """Return the type of the IOMMU group of a device; None if it is not visible."""
    group = host.snapshot.link(f"{at}/device/iommu_group")
    if not group:
        return _NONE if host.snapshot.link(f"{at}/device") else None
    return shortened(host.read(f"/sys/kernel/iommu_groups/{group}/type") or "", 20) or None


def _iommu(check: Check, host: Host) -> Iterable[Result]:
    for device, at in host.rdma_devices.items():
        kind = _kind(host, at)
        if kind is None:
            yield check.skip(host.name, device, "its IOMMU group cannot be read")
        elif kind in (_NONE, "identity"):
            yield check.ok(host.name, device)
        else:
            yield check.failure(host.name, device, f"translated: {kind}", kind, "identity")


IOMMU = Check(
    id="host.iommu",
    what="IOMMU translation of RDMA devices",
    source="/sys/class/DEVICE/device/iommu_group, /sys/kernel/iommu_groups/*/type",
    rule="no IOMMU, or pass-through (identity)",
    remedy="boot with iommu=pt",
    judge=limit(_iommu, "no RDMA device", site=SiteValues(lambda _, host: _iommu_values(host), _worded_iommu)),
)


def _hugepages_on_demand(host: Host) -> Mapping[str, Any]:
    chosen = chosen_of(host.read("/sys/kernel/mm/transparent_hugepage/enabled"))
    return {"": chosen} if chosen else {}


HUGEPAGES_ON_DEMAND = Check(
    id="host.thp",
    what="transparent huge pages",
    source="/sys/kernel/mm/transparent_hugepage/enabled",
    remedy="use the same setting on all hosts",
    judge=uniform(_hugepages_on_demand, "transparent huge pages: {}"),
)


NUMA_BALANCING = Check(
    id="host.numa.balancing",
    what="automatic NUMA balancing",
    source="/proc/sys/kernel/numa_balancing",
    remedy="set kernel.numa_balancing to the same value on all hosts; 0 disturbs measurements least",
    judge=uniform(lambda host: {"": host.number("/proc/sys/kernel/numa_balancing")}, "numa_balancing {}", numeric=True),
)


_OFFSET, _LEAP = 4, 13  # fields of `chronyc -c tracking`
_MOST_S = 1e-3


def _clock_sync(check: Check, host: Host) -> Iterable[Result]:
    chrony, systemd = host.command("chronyc"), host.command("timedatectl")
    if chrony.status == 0:
        yield _tracking(check, host, chrony.text)
    elif systemd.status == 0:
        lines = systemd.text.split("\n")
        if "NTPSynchronized=yes" in lines:
            yield check.ok(host.name)
        elif "NTPSynchronized=no" in lines:
            yield check.failure(host.name, "", "clock not synchronised")
        else:
            yield check.error(host.name, "", "timedatectl does not report NTPSynchronized")
    else:
        why = f"chronyc: {chrony.error or 'failed'}; timedatectl: {systemd.error or 'failed'}"
        yield check.skip(host.name, "", shortened(why, 160))


def _tracking(check: Check, host: Host, text: str) -> Result:
    fields = text.strip().split(",")
    try:
        offset = abs(float(fields[_OFFSET]))
        leap = fields[_LEAP]
    except (ValueError, IndexError):
        return check.error(host.name, "", f"chronyc: {shortened(text) or 'no output'}")
    if leap == "Not synchronised":
        return check.failure(host.name, "", "clock not synchronised")
    if not offset < _MOST_S:
        return check.failure(host.name, "", f"clock off by {1000 * offset:.3g} ms", offset, _MOST_S)
    return check.ok(host.name, value=offset, unit="s")


CLOCK_SYNC = Check(
    id="host.time",
    what="clock synchronisation",
    source="chronyc tracking, else timedatectl",
    rule="synchronised, with an offset below 1 ms",
    remedy="start chronyd and check its sources (chronyc sources)",
    judge=limit(_clock_sync),
)


_GPU = ("3D controller", "Processing accelerators", "VGA compatible controller", "Display controller")
_NIC = ("Infiniband controller", "Ethernet controller", "Network controller")


def _access_control(check: Check, host: Host) -> Iterable[Result]:
    output = host.command("lspci")
    if output.status != 0:
        return [check.skip(host.name, "", f"lspci: {shortened(output.error) or 'failed'}")]
    if not host.snapshot.root:
        return [check.skip(host.name, "", "lspci shows it to root only")]
    functions = pci_functions(output.text)
    if not any(one.kind.startswith(_GPU) and not one.kind.startswith("VGA") for one in functions):
        return [check.skip(host.name, "", "no GPU")]
    ends = {(one.domain, one.bus) for one in functions if one.kind.startswith(_GPU + _NIC)}
    on = [
        function.name
        for function in functions  # bridges above GPUs and NICs that send their traffic to the root complex
        if function.kind and function.has_acs and any((function.domain, bus) in ends for bus in function.buses)
    ]
    if not on:
        return [check.ok(host.name)]
    more = f" and {len(on) - 4} more" if len(on) > 4 else ""
    return [check.failure(host.name, "", f"ACS on: bridge {', '.join(on[:4])}{more}", len(on), 0)]


ACCESS_CONTROL = Check(
    id="host.acs",
    what="Access Control Services (ACS) of PCIe bridges between GPUs and NICs",
    source="lspci -vvv, ACSCtl of the bridges above GPUs and NICs",
    rule="off on hosts with GPUs, so that GPUs and NICs communicate directly",
    root=True,
    remedy="disable ACS on these bridges (BIOS, or setpci at boot)",
    judge=limit(_access_control),
)
