"""Files that say what changes how long messages take: clock, frequencies, interrupts, memory, partitions.

Formats are those of the kernel's documentation: Documentation/ABI/testing/sysfs-devices-system-cpu,
sysfs-class-infiniband, sysfs-devices-edac, admin-guide/pm/{intel_pstate,cpufreq}.rst, admin-guide/hw-vuln. Files of
CPUs and interrupts are tallied, `COUNT VALUE` a line, as the collector's documentation says.
"""

from __future__ import annotations

from generated_fleets.machines import Machine

CPUS = "/sys/devices/system/cpu"
EDAC = "/sys/devices/system/edac/mc"
QUEUES = 16  # of a NIC, each with its interrupt
_CONTROLLERS = 8  # of memory; a socket has several
_FLAWS = {
    "gather_data_sampling": "Not affected",
    "itlb_multihit": "Not affected",
    "l1tf": "Not affected",
    "mds": "Not affected",
    "meltdown": "Not affected",
    "mmio_stale_data": "Not affected",
    "retbleed": "Not affected",
    "spec_rstack_overflow": "Not affected",
    "spec_store_bypass": "Mitigation: Speculative Store Bypass disabled via prctl",
    "spectre_v1": "Mitigation: usercopy/swapgs barriers and __user pointer sanitization",
    "spectre_v2": "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; RSB filling; PBRSB-eIBRS: SW sequence",
    "srbds": "Not affected",
    "tsx_async_abort": "Not affected",
}


def tuning_of(machine: Machine) -> dict[str, str]:
    """Files that are read once."""
    clock = "/sys/devices/system/clocksource/clocksource0"
    result = {f"{clock}/current_clocksource": "tsc", f"{clock}/available_clocksource": "tsc hpet acpi_pm"}
    result |= {f"{CPUS}/vulnerabilities/{name}": text for name, text in _FLAWS.items()}
    result |= _frequencies(machine)
    for node in range(machine.nodes):
        at = f"/sys/devices/system/node/node{node}/meminfo"
        result[at] = f"Node {node} MemTotal:       @{{NODE{node}}} kB\nNode {node} MemFree:        @{{C{node}}} kB"
    for index, rail in enumerate(machine.rails):
        near = cpus_of(machine, index * machine.nodes // len(machine.rails))
        served = "\n".join(f"1 {cpu}" for cpu in sorted(map(str, near[:QUEUES])))
        folders = [f"/sys/class/net/{rail.interface}/device"]
        if rail.device:
            kind = "cxi" if machine.link == "slingshot" else "infiniband"
            folders.append(f"/sys/class/{kind}/{rail.device}/device")
        for folder in folders:
            result |= {f"{folder}/local_cpulist": f"{near[0]}-{near[-1]}", f"{folder}/msi_irqs/*": served}
        if machine.is_rdma:
            result |= _port(machine, f"/sys/class/infiniband/{rail.device}/ports/1", index)
        if machine.link == "infiniband":
            result[f"/sys/class/net/{rail.interface}/mode"] = "datagram"
    if machine.has_nvidia and machine.is_rdma:
        result["/sys/module/nvidia_peermem/initstate"] = "live"
    return result


def tuning_counters_of(machine: Machine) -> dict[str, str]:
    """Counters, which are read twice: DIMMs have few errors, CPUs are seldom too hot."""
    tuning_counters = {}
    for controller in range(_CONTROLLERS):
        tuning_counters |= {f"{EDAC}/mc{controller}/ce_count": "@{CE}" if controller == 0 else "0"}
        tuning_counters |= {f"{EDAC}/mc{controller}/ue_count": "0"}
    if machine.is_intel:
        at = f"{CPUS}/cpu*/thermal_throttle"
        tuning_counters[f"{at}/core_throttle_count"] = f"{machine.cpus} 0"
        tuning_counters[f"{at}/package_throttle_count"] = f"{machine.cpus} 0"
    return tuning_counters


def cpus_of(machine: Machine, node: int) -> range:
    """The CPUs of a NUMA node."""
    each = machine.cpus // machine.nodes
    return range(node * each, (node + 1) * each)


def _frequencies(machine: Machine) -> dict[str, str]:
    fastest = 3_800_000 if machine.is_intel else 3_529_052  # kHz
    at = f"{CPUS}/cpu*/cpufreq"
    result = {f"{at}/{name}_max_freq": f"{machine.cpus} {fastest}" for name in ("scaling", "cpuinfo")}
    if machine.is_intel:
        files = {"status": "active", "no_turbo": "0", "max_perf_pct": "100"}
        return result | {f"{CPUS}/intel_pstate/{name}": text for name, text in files.items()}
    return result | {f"{CPUS}/cpufreq/boost": "1"}


def _port(machine: Machine, port: str, index: int) -> dict[str, str]:
    """Partitions, and addresses with their types: of RoCE those of the link and of IPv4, in both versions."""
    if machine.link == "infiniband":
        guid = f"fe80:0000:0000:0000:@{{GUID{index}}}"
        return {
            f"{port}/pkeys/*": "1 0x7fff\n1 0xffff",
            f"{port}/gids/0": guid,
            f"{port}/gid_attrs/types/0": "IB/RoCE v1",
        }
    link, internet = f"fe80:0000:0000:0000:@{{GUID{index}}}", f"0000:0000:0000:0000:0000:ffff:@{{HEX{index}}}"
    result = {f"{port}/pkeys/*": "1 0xffff"}
    for number, address in enumerate((link, link, internet, internet)):
        result[f"{port}/gids/{number}"] = address
        result[f"{port}/gid_attrs/types/{number}"] = "RoCE v2" if number % 2 else "IB/RoCE v1"
    return result
