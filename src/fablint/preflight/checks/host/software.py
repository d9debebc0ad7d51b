"""Checks of properties that similar hosts share: CPUs, NUMA nodes, load, software versions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from fablint.model.preflight_results import Result
from fablint.preflight.check import Check, Judge, SiteValues
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import CPUS, Host
from fablint.preflight.judges import uniform
from fablint.preflight.judges.outputs import LEAST_SIMILAR, TOO_FEW
from fablint.preflight.judges.uniform import ValueComparison
from fablint.snapshot.host_snapshot import BOOT, Tree
from fablint.snapshot.memo import once_per_folder
from fablint.snapshot.parsers.ethtool import driver_facts
from fablint.snapshot.parsers.proc_files import count_listed, load_average, system_name
from fablint.text.sanitise import shortened

MODULES = "/sys/module"


_LOAD_IDLE, _LOAD_STALE, _LOAD_BUSY = 0.05, 0.1, 0.5  # median of idle hosts, limit among these, median of busy hosts
_PROCESS = 0.9  # less than a permanently running process is ignored


def _load(check: Check, fleet: Fleet) -> Iterator[Result]:
    boots = Counter(host.read(BOOT) for host in fleet.hosts)
    like: dict[str, list[tuple[Host, float]]] = defaultdict(list)
    for host in fleet.hosts:
        in_container = host.read(BOOT) and boots[host.read(BOOT)] > 1
        load, cpus = load_average(host.read("/proc/loadavg")), host.cpus_online
        if in_container or load is None or not cpus:
            why = "no load average or number of CPUs, or a container, whose load is that of all containers"
            yield check.skip(host.name, "", why)
        else:
            like[host.kind].append((host, load / cpus))
    for loads in like.values():
        usual = median(load for _, load in loads)
        for host, load in loads:
            yield _judged_load(check, host, load, usual, len(loads))


def _judged_load(check: Check, host: Host, load: float, usual: float, hosts: int) -> Result:
    """Return the result for the load per CPU of a host; `usual` is the median of the similar hosts."""
    busy = 0.5 if _has_threads(host) else 1.0
    if hosts < LEAST_SIMILAR:
        if load < busy:
            return check.skip(host.name, "", TOO_FEW)
        return check.failure(host.name, "", f"{load:.2f} processes per CPU: all cores are busy", load, busy)
    most = _LOAD_STALE if usual < _LOAD_IDLE else 1
    if usual >= _LOAD_BUSY:
        if load < busy:
            return check.ok(host.name, value=load)
        message = f"all cores are busy, the same as on similar hosts: median {usual:.2f} processes per CPU"
        return check.failure(host.name, "", message, load, busy)
    if load <= most or load * (host.cpus_online or 1) < _PROCESS:
        return check.ok(host.name, value=load)
    message = f"{load:.2f} processes per CPU, median of {hosts} hosts {usual:.2f}"
    return check.failure(host.name, "", message, load, usual)


LOAD = Check(
    id="host.load",
    what="the load of the host before the measurement",
    source="/proc/loadavg, 1 min, per CPU",
    rule=(
        "at most 1 per CPU, or 0.1 if the median of similar hosts is below 0.05; always below one process per "
        "core, even if all similar hosts are busy"
    ),
    component="host",
    remedy="end processes of earlier jobs",
    judge=Judge(_load),
)


def _has_threads(host: Host) -> bool:
    """Tell whether cores have two hardware threads."""
    return host.read(f"{CPUS}/smt/active") == "1"


CPU_COUNT = Check(
    id="host.cpus",
    what="the number of CPUs",
    source=f"{CPUS}/online",
    component="host",
    remedy="check for disabled CPUs or a different BIOS setting",
    judge=uniform(lambda host: {"": host.cpus_online}, "{} CPU[s] online", numeric=True),
)


SMT = Check(
    id="host.smt",
    what="simultaneous multithreading (SMT)",
    source=f"{CPUS}/smt/active",
    remedy="use the same setting in the BIOS or the boot option nosmt",
    judge=uniform(lambda host: {"": {"1": "on", "0": "off"}.get(host.read(f"{CPUS}/smt/active") or "")}, "SMT {}"),
)


NUMA_NODES = Check(
    id="host.numa.nodes",
    what="the number of NUMA nodes",
    source="/sys/devices/system/node/online",
    remedy="use the same setting in the BIOS (NPS, sub-NUMA clustering)",
    judge=uniform(
        lambda host: {"": count_listed(host.read("/sys/devices/system/node/online"))}, "{} NUMA node[s]", numeric=True
    ),
)


KERNEL_RELEASE = Check(
    id="host.kernel",
    what="the version of the kernel",
    source="uname",
    remedy="boot the same image on all hosts",
    judge=uniform(
        lambda host: {"": _version(host.snapshot.kernel or host.read("/proc/sys/kernel/osrelease"))}, "kernel {}"
    ),
)


OPERATING_SYSTEM = Check(
    id="host.os",
    what="the operating system",
    source="/etc/os-release",
    remedy="install the same image on all hosts",
    judge=uniform(
        lambda host: {"": _version(system_name(host.read("/etc/os-release")))},
        "{}",
        absent="no PRETTY_NAME in /etc/os-release",
    ),
)


BIOS = Check(
    id="host.bios",
    what="the version of the BIOS",
    source="/sys/devices/virtual/dmi/id/bios_version",
    remedy="install the same BIOS on all hosts",
    judge=uniform(lambda host: {"": _version(host.read("/sys/devices/virtual/dmi/id/bios_version"))}, "BIOS {}"),
)


def _driver(host: Host) -> Mapping[str, Any]:
    drivers = {nic: [facts.get("driver"), facts.get("version")] for nic, facts in _driver_facts(host).items()}
    return {nic: _version(" ".join(filter(None, words))) if words[0] else None for nic, words in drivers.items()}


DRIVER = Check(
    id="host.driver",
    what="the driver and driver version of every NIC of the fabric",
    source="ethtool -i",
    remedy="install the same driver on all hosts",
    judge=uniform(_driver, "driver {}", absent="ethtool -i does not report it"),
)


def _nic_firmware(host: Host) -> Mapping[str, Any]:
    versions = {nic: facts.get("firmware-version") for nic, facts in _driver_facts(host).items()}
    return {nic: None if firmware in (None, "N/A") else _version(firmware) for nic, firmware in versions.items()}


NIC_FIRMWARE = Check(
    id="host.nic.fw",
    what="the firmware of every NIC of the fabric",
    source="ethtool -i",
    component="nic",
    remedy="install the same firmware on all hosts",
    judge=uniform(_nic_firmware, "firmware {}", absent="ethtool -i does not report it"),
)


_NOT = "not loaded"


def _kernel_modules(check: Check, fleet: Fleet) -> Iterator[Result]:
    loaded_somewhere = sorted({name for host in fleet.hosts for name in _modules(host)})

    def versions(host: Host) -> Mapping[str, str]:
        loaded = _modules(host)
        return {name: loaded.get(name, _NOT) for name in loaded_somewhere if host.snapshot.folder("/sys")}

    return ValueComparison("{}", "no such module is loaded").results(versions, check, fleet)


KERNEL_MODULES = Check(
    id="host.module",
    what="kernel modules of NICs, GPUs and MPI libraries",
    source=f"{MODULES}/*/version",
    rule="loaded in the same version as on most similar hosts",
    remedy="install the same driver on all hosts; check the kernel log for why it was not loaded",
    judge=Judge(
        _kernel_modules,
        site=SiteValues(
            lambda _, host: _modules(host),
            named=True,
            missing=lambda host: _NOT if host.snapshot.folder("/sys") else "",
        ),
    ),
)


def _mpi(host: Host) -> Mapping[str, Any]:
    """Return the first line; after Hydra's heading also the line with the version."""
    output = host.command("mpiexec")
    lines = [line.strip() for line in output.text.splitlines() if line.strip()] if output.status == 0 else []
    if lines and not any(letter.isdecimal() for letter in lines[0]):
        lines = [f"{lines[0]} {line}" for line in lines if line.startswith("Version:")][:1]
    return {"": _version(lines[0]) if lines else None}


MPI = Check(
    id="host.mpi",
    what="the version of the first mpiexec in PATH",
    source="mpiexec --version",
    rule="the same on all hosts",
    remedy="load the same modules on every host; check PATH in non-login shells",
    judge=uniform(_mpi, "{}", absent="mpiexec was not found, or does not report its version"),
)


def _modules(host: Host) -> Mapping[str, str]:
    """Return the versions of loaded modules; modules of the kernel itself have no version."""
    return _versions(host.snapshot.folder(MODULES))


@once_per_folder
def _versions(folder: Tree) -> Mapping[str, str]:
    result = {name: one.get("version") for name, one in folder.items() if isinstance(one, dict)}
    return {name: shortened(version, 60) for name, version in result.items() if isinstance(version, str)}


def _driver_facts(host: Host) -> Mapping[str, Mapping[str, str]]:
    """Parse `ethtool -i` of the fabric's NICs."""
    outputs = {nic.name: host.command(f"ethtool-i/{nic.name}") for nic in host.interfaces}
    return {nic: driver_facts(one.text) for nic, one in outputs.items() if one.status == 0}


def _version(text: str | None) -> str | None:
    return shortened(text, 60) or None if text else None
