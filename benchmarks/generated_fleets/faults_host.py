"""Faults of a host: its memory, CPUs, clock, settings, software, GPUs and log."""

from __future__ import annotations

from generated_fleets.documents import Fleet
from generated_fleets.edits import Change, Document, all_of, counted, device_file, file, logged, put, said
from generated_fleets.machines import Machine

CPU = "/sys/devices/system/cpu"
EDAC = "/sys/devices/system/edac/mc"
CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_GHES = "{{1}}[Hardware Error]: "


def _memory(share: float, *, free: float = 1.0) -> Change:
    """Less memory, on the last NUMA node, or less of it available."""

    def change(fleet: Fleet, index: int, document: Document) -> None:
        text = document["files"]["proc"]["meminfo"]
        total, available = text.split()[1], text.split()[7]
        less = round(int(total) * share)
        text = text.replace(total, str(less), 1).replace(available, str(round(int(available) * share * free)))
        document["files"]["proc"]["meminfo"] = text
        machine = fleet.machine_of(index)
        node = document["files"]["sys"]["devices"]["system"]["node"][f"node{machine.nodes - 1}"]
        own_word = node["meminfo"].split()[3]
        node["meminfo"] = node["meminfo"].replace(own_word, str(max(int(own_word) - int(total) + less, 1)), 1)

    return change


def _dimm(fleet: Fleet, index: int, document: Document) -> None:
    dimms = fleet.machine_of(index).dimms
    _memory((dimms - 1) / dimms)(fleet, index, document)


def _load(fleet: Fleet, index: int, document: Document) -> None:
    """A tenth of the CPUs and more are busy with what an ended job left behind."""
    load = 0.12 * fleet.machine_of(index).cpus
    document["files"]["proc"]["loadavg"] = f"{load:.2f} {load:.2f} {load:.2f} 20/3210 99"


def _cpus(fleet: Fleet, index: int, document: Document) -> None:
    put(document, f"{CPU}/online", f"0-{fleet.machine_of(index).cpus - 3}")


def _smt(fleet: Fleet, index: int, document: Document) -> None:
    put(document, f"{CPU}/online", f"0-{fleet.machine_of(index).cpus // 2 - 1}")
    put(document, f"{CPU}/smt/active", "0")


def _nodes(fleet: Fleet, index: int, document: Document) -> None:
    put(document, "/sys/devices/system/node/online", f"0-{2 * fleet.machine_of(index).nodes - 1}")


def _turbo(fleet: Fleet, index: int, document: Document) -> None:
    intel = fleet.machine_of(index).is_intel
    put(document, f"{CPU}/intel_pstate/no_turbo" if intel else f"{CPU}/cpufreq/boost", "1" if intel else "0")


def _capped(fleet: Fleet, index: int, document: Document) -> None:
    cpus = fleet.machine_of(index).cpus
    document["files"]["sys"]["devices"]["system"]["cpu"]["cpu*"]["cpufreq"]["scaling_max_freq"] = f"{cpus} 2000000"


def _governor(fleet: Fleet, index: int, document: Document) -> None:
    for cpu in range(fleet.machine_of(index).cpus):
        put(document, f"{CPU}/cpu{cpu}/cpufreq/scaling_governor", "powersave")


def _throttled(fleet: Fleet, index: int, document: Document) -> None:
    put(document, f"{CPU}/cpu*/thermal_throttle/core_throttle_count", f"{fleet.machine_of(index).cpus} 37", "later")


def _replaced(path: str, old: str, new: str) -> Change:
    """Another word in a file."""

    def change(_: Fleet, __: int, document: Document) -> None:
        at = document["files"]
        *folders, name = path.strip("/").split("/")
        for folder in folders:
            at = at[folder]
        if old not in at[name]:
            raise ValueError(f"{path} does not hold {old!r}")
        at[name] = at[name].replace(old, new)

    return change


def _kernel(_: Fleet, __: int, document: Document) -> None:
    document["kernel"] = "5.14.0-362.8.1.el9_3.x86_64"
    put(document, "/proc/sys/kernel/osrelease", document["kernel"])


def _module(fleet: Fleet, index: int, document: Document) -> None:
    gpu = "nvidia" if fleet.machine_of(index).has_nvidia else "amdgpu"
    document["files"]["sys"]["module"].pop(gpu)


def _gpu(fleet: Fleet, index: int, document: Document) -> None:
    """A GPU fell off the bus."""
    kind = fleet.machine_of(index).gpu_class
    bus = document["files"]["sys"]["bus"]["pci"]["devices"]
    lost = next(address for address, one in bus.items() if one["class"] == kind)
    bus.pop(lost)
    document["files"]["proc"].get("driver", {}).get("nvidia", {}).get("gpus", {}).pop(lost, None)


def _slow(key: str, share: float) -> Change:
    def change(_: Fleet, __: int, document: Document) -> None:
        item = document["commands"]["probe"]
        before, after = item["output"].split(f'"{key}": {{"rate": ')
        rate, rest = after.split(",", 1)
        item["output"] = f'{before}"{key}": {{"rate": {float(rate) * share:.0f},{rest}'

    return change


def _ahead(seconds: float) -> Change:
    def change(_: Fleet, __: int, document: Document) -> None:
        document["time"] += seconds

    return change


def _shared_memory(_: Fleet, __: int, document: Document) -> None:
    document["shared_memory"]["free"] = document["shared_memory"]["size"] // 50


def _name_elsewhere(fleet: Fleet, index: int, document: Document) -> None:
    """Its own name leads to the address of another host."""
    other = list(fleet.document_of(0)["names"]["of"])
    document["names"]["to"][fleet.name(index)] = other


def _same_id(fleet: Fleet, _: int, document: Document) -> None:
    put(document, "/etc/machine-id", fleet.document_of(0)["files"]["etc"]["machine-id"])


def _same_name(fleet: Fleet, _: int, document: Document) -> None:
    put(document, "/proc/sys/kernel/hostname", fleet.name(0))


def _clock(_: Fleet, __: int, document: Document) -> None:
    """The time daemon says that it is synchronised, to a source that is 35 ms off."""
    fields = document["commands"]["chronyc"]["output"].split(",")
    document["commands"]["chronyc"]["output"] = ",".join([*fields[:4], "0.035120000", *fields[5:]])


def _gpus(machine: Machine) -> bool:
    return machine.gpus > 0


def _nvidia(machine: Machine) -> bool:
    return machine.has_nvidia


def _intel(machine: Machine) -> bool:
    return machine.is_intel


def _rdma(machine: Machine) -> bool:
    return machine.link != "ethernet"


SMI = "nvidia-smi-q"
HOST_FAULTS = (
    ("memory", "one DIMM is mapped out", _dimm),
    ("half-memory", "half of the memory is gone", _memory(0.5)),
    ("free-memory", "a third of the memory is taken by what a job left behind", _memory(1.0, free=0.66)),
    ("edac-now", "corrected memory errors while it is looked at", counted(f"{EDAC}/mc0/ce_count", 40)),
    ("edac-uncorrected", "an uncorrected memory error", counted(f"{EDAC}/mc1/ue_count", 1)),
    ("load", "processes of an ended job run", _load),
    ("cpus", "two CPUs are offline", _cpus),
    ("smt", "hardware threads are off", _smt),
    ("nodes", "another number of NUMA nodes", _nodes),
    ("turbo", "turbo or boost is off", _turbo),
    ("cap", "frequencies are capped at 2 GHz", _capped),
    ("governor", "governor powersave", _governor),
    ("throttle", "CPUs throttle while it is looked at", _throttled, _intel),
    ("cstates", "a deep idle state is enabled", file(f"{CPU}/cpu0/cpuidle/state2/latency", "133")),
    ("clocksource", "clock source hpet", file(CLOCK, "hpet")),
    ("tsc", "no nonstop_tsc", _replaced("/proc/cpuinfo", " nonstop_tsc", "")),
    ("microcode", "older microcode", _replaced("/proc/cpuinfo", "microcode\t: 0x", "microcode\t: 0x1")),
    ("mitigations", "mitigations are off", file(f"{CPU}/vulnerabilities/spectre_v2", "Vulnerable; IBPB: disabled")),
    ("cmdline", "another boot option", _replaced("/proc/cmdline", "quiet", "quiet isolcpus=2-9")),
    ("irq", "all interrupts of a NIC on one CPU", device_file("msi_irqs/*", "16 0")),
    ("balancing", "NUMA balancing is on", file("/proc/sys/kernel/numa_balancing", "1")),
    ("iommu", "memory accesses are translated", file("/sys/kernel/iommu_groups/0/type", "DMA-FQ"), _rdma),
    (
        "memlock",
        "64 KiB may be locked",
        _replaced("/proc/self/limits", "locked memory         unlimited", "locked memory         65536    "),
        _rdma,
    ),
    ("shm", "/dev/shm is full", _shared_memory),
    (
        "hugepages",
        "huge pages are set aside",
        _replaced("/proc/meminfo", "HugePages_Total:       0", "HugePages_Total:    4096"),
    ),
    (
        "thp",
        "transparent huge pages always",
        file("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never"),
    ),
    ("kernel", "another kernel", _kernel),
    ("os", "another release", _replaced("/etc/os-release", "9.4 (Blue", "9.3 (Blue")),
    ("bios", "an older BIOS", file("/sys/devices/virtual/dmi/id/bios_version", "0.9")),
    ("module", "the driver of the GPUs is not loaded", _module, _gpus),
    ("mpi", "another MPI library", said("mpiexec", "4.1.6", "4.1.1")),
    ("clock", "the clock is 35 ms off", _clock),
    ("unsynchronised", "the clock is not synchronised", said("chronyc", "Normal", "Not synchronised")),
    ("ahead", "the clock is 5 min ahead", _ahead(300.0)),
    ("same-id", "the machine id of another host", _same_id),
    ("same-name", "it calls itself as another host", _same_name),
    ("own-name", "its own name leads to another host", _name_elsewhere),
    ("slow-memory", "it copies memory at 80 %", _slow("copy", 0.8)),
    ("slow-cpu", "it computes at 85 %", _slow("hash", 0.85)),
    ("gpu", "a GPU fell off the bus", _gpu, _gpus),
    (
        "gpu-row",
        "remapping of a row of a GPU failed",
        said(SMI, "<remapped_row_failure>No", "<remapped_row_failure>Yes"),
        _nvidia,
    ),
    ("gpu-hot", "a GPU is too hot", said(SMI, "hw_thermal_slowdown>Not Active", "hw_thermal_slowdown>Active"), _nvidia),
    ("gpu-power", "a lower power limit of a GPU", said(SMI, "700.00 W", "500.00 W"), _nvidia),
    ("gpu-mig", "a GPU is divided", said(SMI, "<current_mig>Disabled", "<current_mig>Enabled"), _nvidia),
    ("gpu-fabric", "a GPU has not joined its fabric", said(SMI, "<state>Completed", "<state>In Progress"), _nvidia),
    ("fabricmanager", "nvidia-fabricmanager has failed", said("fabricmanager", "active", "failed"), _nvidia),
    ("peermem", "nvidia_peermem is not loaded", file("/sys/module/nvidia_peermem/initstate", ""), _nvidia),
    (
        "nvlink",
        "an NVLink is inactive",
        said("nvidia-smi-nvlink", "Link 3: 26.562 GB/s", "Link 3: <inactive>"),
        _nvidia,
    ),
    (
        "log-mce",
        "an uncorrected machine check",
        logged("mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 9: bea0000000000108"),
    ),
    (
        "log-hw",
        "a fatal error that the firmware reported",
        all_of([logged(f"{_GHES}event severity: fatal", f"{_GHES}  section_type: memory error")]),
    ),
    (
        "log-edac",
        "an uncorrected memory error in the log",
        logged("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1)"),
    ),
    (
        "log-aer",
        "a fatal PCI Express error in the log",
        logged("pcieport 0000:16:01.0: AER: Uncorrected (Fatal) error received: 0000:17:00.0"),
    ),
    (
        "log-xid",
        "Xid 79: a GPU fell off the bus",
        logged("NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, GPU has fallen off the bus."),
        _nvidia,
    ),
    ("log-lockup", "a soft lockup", logged("watchdog: BUG: soft lockup - CPU#7 stuck for 26s! [kworker/7:1:88]")),
    ("log-stalled", "a task that stalls", logged("INFO: task ptlrpcd_00_01:2712 blocked for more than 120 seconds.")),
    (
        "log-hot",
        "CPUs that were too hot, in the log",
        logged("mce: CPU12: Core temperature above threshold, cpu clock throttled (total events = 7)"),
        _intel,
    ),
    (
        "log-tsc",
        "the TSC was given up",
        logged("clocksource: timekeeping watchdog on CPU3: Marking clocksource 'tsc' as unstable"),
    ),
)
