# ruff: noqa: UP006, UP031, UP035
"""Host properties that affect message times: clock, frequencies, interrupts, memory, partitions, offloads.

Sent to every host between machine.py and collector.py, under the same rules: standard library only, Python 3.6,
without root, no files are written, nothing is judged. Files that a host has once per CPU or interrupt are tallied: the
path has a `*`, and the text is a line `COUNT VALUE` for each value, as printed by `sort | uniq -c`.
"""

import os
import re
import sys
from collections import Counter
from contextlib import suppress
from typing import Any, Dict, Iterable, Iterator, List, Tuple

from fablint.snapshot.agent.machine import Late, Machine, put

CPUS = "/sys/devices/system/cpu"
DEVICES = "/sys/class/{infiniband,cxi,net}/*/device"
MOST_GIDS = 32  # of a port; tables have 256, and drivers fill them from the beginning
FIRST_LINES = 300  # letters of a NUMA node's meminfo: its size stands first
AMD_GPUS = "/sys/bus/pci/drivers/amdgpu"
AMD_COMMANDS = {
    "amd-smi-list": ["amd-smi", "list", "--json"],
    "amd-smi-static": ["amd-smi", "static", "--json"],
    "amd-smi-firmware": ["amd-smi", "firmware", "--json"],
    "amd-smi-metric": ["amd-smi", "metric", "--ecc", "--ecc-blocks", "--json"],
    "amd-smi-bad-pages": ["amd-smi", "bad-pages", "--json"],
    "rocm-smi": ["rocm-smi", "--showbus", "--showrasinfo", "all", "--showretiredpages"],
}
NVSWITCHES = "/proc/driver/nvidia-nvswitch/devices"

TUNING_FILES = (
    "/sys/devices/system/clocksource/clocksource0/{current,available}_clocksource",
    CPUS + "/intel_pstate/{status,no_turbo,max_perf_pct}",
    CPUS + "/cpufreq/boost",
    CPUS + "/vulnerabilities/*",
    "/sys/class/net/*/mode",  # of IP over InfiniBand
    DEVICES + "/local_cpulist",
    "/sys/module/{nvidia_peermem,nv_peer_mem}/initstate",
    # errors that amdgpu counts since it was loaded, by block: `umc_err_count`; pages of the memory that are bad
    AMD_GPUS + "/[0-9a-f]*/ras/{*_err_count,gpu_vram_bad_pages}",
    # RoCE: traffic class, priorities of the connection manager, congestion notification (the last with MLNX_OFED)
    "/sys/class/infiniband/*/tc/*/traffic_class",
    "/sys/kernel/config/rdma_cm/*/ports/*/default_roce_{mode,tos}",
    "/sys/class/net/*/ecn/{roce_np,roce_rp}/enable/[0-7]",
)
TUNING_COUNTERS = ("/sys/devices/system/edac/mc/mc*/{ce,ue}_count",)
TUNING_FOLDERS = (NVSWITCHES,)
OF_CPUS = ("cpufreq/scaling_max_freq", "cpufreq/cpuinfo_max_freq")
COUNTS_OF_CPUS = ("thermal_throttle/core_throttle_count", "thermal_throttle/package_throttle_count")

_FLAGS = frozenset({"tsc", "rdtscp", "constant_tsc", "nonstop_tsc", "tsc_reliable", "hypervisor"})
_LISTS = re.compile(r"^(flags|Features|bugs|vmx flags)(\s*):(.*)$", re.MULTILINE)
_SECRET = re.compile(
    r"([\w.-]*(?:token|secret|passw|pwd|passphrase|credential|private|(?<![a-z])key(?![a-z]))[\w.-]*)"
    r"=(?!REMOVED)(\"[^\"]*\"|\S+)",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(://|\biscsi:)[^/\s@]+@")  # of a URL, or of dracut's netroot=iscsi:
_OF_LINKS = re.compile(
    "pause|pfc|xoff|symbol_err|fcs_err|crc_err|align_err|illegal_bytes|fec_uncorrectable|discard|out_of_buffer|"
    "timeout|wd_expired|reset_fail|no_completion|allowance_exceeded",
    re.IGNORECASE,
)
_KEPT = {"ethtool-S": _OF_LINKS, "ethtool-S-later": _OF_LINKS}  # lines, of outputs of a thousand


def tuning_commands(level: str, machine: Machine, nics: List[str]) -> Iterator[Tuple[str, List[str]]]:
    """Yield name and argv of the programs to run."""
    if level in ("fabric", "counters"):
        return
    if machine.names(NVSWITCHES + "/*"):
        yield "fabricmanager", ["systemctl", "is-active", "nvidia-fabricmanager"]
    over_rdma = roce_nics(machine, nics)
    for gateway in default_gateway(machine):
        yield "ping-gateway/" + gateway, ["ping", "-n", "-c", "2", "-i", "0.2", "-W", "1", gateway]
    for nic in nics:
        yield "ethtool/" + nic, ["ethtool", nic]
    for nic in over_rdma:
        for part in ("pfc", "ets", "app", "apptrust"):
            yield "dcb-%s/%s" % (part, nic), ["dcb", "-j", part, "show", "dev", nic]
    if level != "full":
        return
    yield from slow_tuning_commands(machine, nics, over_rdma)


def slow_tuning_commands(machine: Machine, nics: List[str], over_rdma: List[str]) -> Iterator[Tuple[str, List[str]]]:
    """Yield programs that take seconds or print much."""
    for nic in over_rdma:
        yield "mlnx_qos/" + nic, ["mlnx_qos", "-i", nic]
    for nic in nics:
        for option in ("k", "g", "c"):
            yield "ethtool-%s/%s" % (option, nic), ["ethtool", "-" + option, nic]
        yield "ethtool-S/" + nic, ["ethtool", "-S", nic]
        yield "ethtool-S-later/" + nic, ["sh", "-c", 'sleep 4; exec ethtool -S "$0"', nic]  # how much do they grow?
    yield "nvidia-smi-q", ["nvidia-smi", "-q", "-x"]
    if machine.names(AMD_GPUS + "/[0-9a-f]*"):
        yield from AMD_COMMANDS.items()


def default_gateway(machine: Machine) -> List[str]:
    """Return the IPv4 address of the gateway of the default route with the lowest metric, if there is one."""
    table = machine.read("/proc/net/route")
    rows = [line.split() for line in table.splitlines()[1:]] if isinstance(table, str) else []
    result = []
    for row in rows:  # interface, destination, gateway, flags, references, uses, metric, mask, ...
        if len(row) > 7 and row[1] == row[7] == "00000000" and row[2] != "00000000":
            with suppress(ValueError):
                octets = int(row[2], 16).to_bytes(4, sys.byteorder)
                result.append((int(row[6]), ".".join(map(str, octets))))
    return [min(result)[1]] if result else []


def roce_nics(machine: Machine, nics: List[str]) -> List[str]:
    """Return the Ethernet interfaces of RDMA devices."""
    over_rdma = set(machine.names("/sys/class/infiniband/*/device/net/*"))
    return [nic for nic in nics if nic in over_rdma and machine.read("/sys/class/net/%s/type" % nic) == "1"]


def fill_tuning(machine: Machine, files: Dict[str, Any]) -> None:
    """Read files into `files`. Raises Late."""
    put(files, "/proc/cmdline", text_without_secrets(machine.read("/proc/cmdline")))
    put(files, "/proc/cpuinfo", first_cpu(machine.read("/proc/cpuinfo")))
    put(files, "/proc/self/status", cpus_allowed(machine.read("/proc/self/status")))
    machine.fill(files, TUNING_FILES)
    fill_cpus(machine, files, OF_CPUS)
    for path in machine.find("/sys/devices/system/node/node[0-9]*/meminfo"):
        put(files, path, machine.read(path, FIRST_LINES))
    for path in machine.find("/sys/class/infiniband/*/ports/*/gids"):
        fill_port(machine, files, path[: -len("/gids")])
    fill_interrupts(machine, files)
    fill_dimms(machine, files)


def fill_tuning_counters(machine: Machine, counters: Dict[str, Any]) -> None:
    """Read counters into `counters`. Raises Late."""
    machine.fill(counters, TUNING_COUNTERS)
    put(counters, "/proc/stat", first_line(machine.read("/proc/stat", FIRST_LINES)))
    fill_cpus(machine, counters, COUNTS_OF_CPUS)


def fill_cpus(machine: Machine, tree: Dict[str, Any], names: Iterable[str]) -> None:
    """Tally files of CPUs. Raises Late."""
    for name in names:
        counted = tally(machine, machine.find(CPUS + "/cpu[0-9]*/" + name))
        if counted:
            put(tree, CPUS + "/cpu*/" + name, counted)


def fill_port(machine: Machine, files: Dict[str, Any], port: str) -> None:
    """Read addresses and partitions of an RDMA port, without empty entries. Raises Late."""
    for index in range(MOST_GIDS):
        address = machine.read("%s/gids/%d" % (port, index))
        if isinstance(address, str) and address.strip("0:"):
            put(files, "%s/gids/%d" % (port, index), address)
            kind = "%s/gid_attrs/types/%d" % (port, index)
            put(files, kind, machine.read(kind))
    keys = tally(machine, machine.find(port + "/pkeys/*"), but=("0x0000",))
    if keys:
        put(files, port + "/pkeys/*", keys)


def fill_interrupts(machine: Machine, files: Dict[str, Any]) -> None:
    """Tally the CPUs that serve the interrupts of each device: `DEVICE/msi_irqs/*`. Raises Late."""
    tallies: Dict[str, str] = {}  # an RDMA device and its network interface are one PCI device
    for folder in machine.find(DEVICES + "/msi_irqs"):
        real = os.path.realpath(machine.root + folder)
        if real not in tallies:
            tallies[real] = tally(machine, (served_by(machine, one) for one in machine.names(folder + "/*")))
        if tallies[real]:
            put(files, folder + "/*", tallies[real])


def served_by(machine: Machine, interrupt: str) -> str:
    """Return the file with the CPU of an interrupt; old kernels have the permitted CPUs only."""
    path = "/proc/irq/%s/effective_affinity_list" % interrupt
    text = machine.read(path)
    return path if isinstance(text, str) and text else "/proc/irq/%s/smp_affinity_list" % interrupt


def fill_dimms(machine: Machine, files: Dict[str, Any]) -> None:
    """Read the DIMMs of memory controllers with errors. Raises Late."""
    for controller in machine.names("/sys/devices/system/edac/mc/mc[0-9]*"):
        at = "/sys/devices/system/edac/mc/" + controller
        if any(str(machine.read(at + "/" + count)).strip("0") for count in ("ce_count", "ue_count")):
            machine.fill(files, [at + "/dimm*/{dimm_ce_count,dimm_ue_count,dimm_label}"])


def tally(machine: Machine, paths: Iterable[str], but: Iterable[str] = ()) -> str:
    """Return a line `COUNT VALUE` for each value of these files; unreadable files are ignored. Raises Late."""
    counts: Dict[str, int] = Counter()
    for path in paths:
        machine.doing = "reading " + path
        if machine.left() <= 0:
            raise Late
        text = machine.read(path)
        if isinstance(text, str) and text and text not in but:
            counts[text] += 1
    return "\n".join("%d %s" % (count, value) for value, count in sorted(counts.items()))


def first_cpu(text: Any) -> Any:
    """Return the section of /proc/cpuinfo on the first CPU, with relevant flags only."""
    if not isinstance(text, str):
        return text

    def wanted(line: Any) -> str:
        return "%s%s: %s" % (line.group(1), line.group(2), " ".join(w for w in line.group(3).split() if w in _FLAGS))

    return _LISTS.sub(wanted, text.partition("\n\n")[0])


def first_line(text: Any) -> Any:
    """Return the first line of a text: in /proc/stat the sum of all CPUs."""
    return text.partition("\n")[0] if isinstance(text, str) else text


def cpus_allowed(text: Any) -> Any:
    """Return the line of /proc/self/status with the CPUs that this process may use."""
    lines = text.splitlines() if isinstance(text, str) else ()
    return next((line for line in lines if line.startswith("Cpus_allowed_list:")), text)


def text_without_secrets(text: Any) -> Any:
    """Remove credentials from a boot command or a log: tokens, passwords, keys."""
    if not isinstance(text, str):
        return text
    return _LOGIN.sub(r"\1REMOVED@", _SECRET.sub(r"\1=REMOVED", text))


def kept_of(name: str, answer: Dict[str, Any]) -> Dict[str, Any]:
    """Reduce the output of a program to the relevant lines."""
    wanted = _KEPT.get(name.partition("/")[0])
    if wanted is None or "output" not in answer:
        return answer
    lines = [line for line in answer["output"].splitlines() if wanted.search(line)]
    return dict(answer, output="\n".join(lines))
