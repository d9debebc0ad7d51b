"""Checks of properties that similar hosts share: CPUs, NUMA nodes, load, software versions."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from statistics import median
from typing import Any

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import Check, UniformCheck, Value
from fablint.preflight.checks.host.settings import CPUS
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot.host_snapshot import BOOT, Tree
from fablint.snapshot.memo import once_per_folder
from fablint.text.sanitise import shortened

MODULES = "/sys/module"
LEAST_LIKE = 3  # hosts, for a comparison


class MeasuredCheck(Check):
    """Base of checks that compare a figure of each host with the median of similar hosts."""

    absent = "not visible"

    @abstractmethod
    def figure(self, host: Host) -> float | None:
        """Return the figure of a host; None if it is not visible."""

    @abstractmethod
    def compared(self, host: str, figure: float, usual: float, others: int) -> Result:
        """Return the result for a host; `usual` is the median of `others` similar hosts and the host."""

    def alone(self, host: str, figure: float) -> Result:
        """Return the result for a host with too few similar hosts."""
        return self.skip(host, "", "too few similar hosts to compare with")

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        like: dict[str, dict[str, float]] = defaultdict(dict)
        for host in fleet.hosts:
            figure = self.figure(host)
            if figure is None:
                yield self.skip(host.name, "", self.absent)
            else:
                like[host.kind][host.name] = figure
        for figures in like.values():
            usual = median(figures.values())
            for name, figure in figures.items():
                if len(figures) < LEAST_LIKE:
                    yield self.alone(name, figure)
                else:
                    yield self.compared(name, figure, usual, len(figures) - 1)


class Load(MeasuredCheck):
    id = "host.load"
    what = "the load of the host before the measurement"
    source = "/proc/loadavg, 1 min, per CPU"
    rule = (
        "at most 1 per CPU, or 0.1 if the median of similar hosts is below 0.05; always below one process per "
        "core, even if all similar hosts are busy"
    )
    severity = Severity.WARN
    component = "host"
    remedy = "end processes of earlier jobs"
    absent = "no load average or number of CPUs, or a container, whose load is that of all containers"

    _IDLE, _STALE, _BUSY = 0.05, 0.1, 0.5  # median of idle hosts, limit among idle hosts, median of busy hosts
    _PROCESS = 0.9  # less than a permanently running process is ignored

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        boots = Counter(host.read(BOOT) for host in fleet.hosts)
        self._containers = {host.name for host in fleet.hosts if host.read(BOOT) and boots[host.read(BOOT)] > 1}
        self._cpus = {host.name: cpus_online(host) or 1 for host in fleet.hosts}
        self._busy = {host.name: 0.5 if _has_threads(host) else 1.0 for host in fleet.hosts}
        return super().judge(fleet)

    def figure(self, host: Host) -> float | None:
        if host.name in self._containers:
            return None
        load = re.match(r"\d{1,9}\.\d{1,9}", host.read("/proc/loadavg") or "")
        cpus = cpus_online(host)
        return float(load[0]) / cpus if load and cpus else None

    def compared(self, host: str, figure: float, usual: float, others: int) -> Result:
        most = self._STALE if usual < self._IDLE else 1
        if usual >= self._BUSY:
            if figure < self._busy[host]:
                return self.ok(host, value=figure)
            message = f"all cores are busy, the same as on similar hosts: median {usual:.2f} processes per CPU"
            return self.failure(host, "", message, figure, self._busy[host])
        if figure <= most or figure * self._cpus[host] < self._PROCESS:
            return self.ok(host, value=figure)
        message = f"{figure:.2f} processes per CPU, median of {others + 1} hosts {usual:.2f}"
        return self.failure(host, "", message, figure, usual)

    def alone(self, host: str, figure: float) -> Result:
        if figure < self._busy[host]:
            return super().alone(host, figure)
        return self.failure(host, "", f"{figure:.2f} processes per CPU: all cores are busy", figure, self._busy[host])


def _has_threads(host: Host) -> bool:
    """Tell whether cores have two hardware threads."""
    return host.read(f"{CPUS}/smt/active") == "1"


class Cpus(UniformCheck):
    id = "host.cpus"
    what = "the number of CPUs"
    source = f"{CPUS}/online"
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "host"
    remedy = "check for disabled CPUs or a different BIOS setting"
    words = "{} CPU[s] online"
    numeric = True

    def values(self, host: Host) -> Mapping[str, Any]:
        return {"": cpus_online(host)}


class Smt(UniformCheck):
    id = "host.smt"
    what = "simultaneous multithreading (SMT)"
    source = f"{CPUS}/smt/active"
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "use the same setting in the BIOS or the boot option nosmt"
    words = "SMT {}"

    def values(self, host: Host) -> Mapping[str, Any]:
        return {"": {"1": "on", "0": "off"}.get(host.read(f"{CPUS}/smt/active") or "")}


class NumaNodes(UniformCheck):
    id = "host.numa.nodes"
    what = "the number of NUMA nodes"
    source = "/sys/devices/system/node/online"
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "use the same setting in the BIOS (NPS, sub-NUMA clustering)"
    words = "{} NUMA node[s]"
    numeric = True

    def values(self, host: Host) -> Mapping[str, Any]:
        return {"": count_listed(host.read("/sys/devices/system/node/online"))}


class KernelRelease(UniformCheck):
    id = "host.kernel"
    what = "the version of the kernel"
    source = "uname"
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "boot the same image on all hosts"
    words = "kernel {}"

    def values(self, host: Host) -> Mapping[str, Any]:
        return {"": _version(host.snapshot.kernel or host.read("/proc/sys/kernel/osrelease"))}


class OperatingSystem(UniformCheck):
    id = "host.os"
    what = "the operating system"
    source = "/etc/os-release"
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "install the same image on all hosts"
    words = "{}"
    absent = "no PRETTY_NAME in /etc/os-release"

    _NAME = re.compile(r"^PRETTY_NAME=\"?([^\"\n]*)", re.MULTILINE)

    def values(self, host: Host) -> Mapping[str, Any]:
        match = self._NAME.search(host.read("/etc/os-release") or "")
        return {"": _version(match[1]) if match else None}


class Bios(UniformCheck):
    id = "host.bios"
    what = "the version of the BIOS"
    source = "/sys/devices/virtual/dmi/id/bios_version"
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "install the same BIOS on all hosts"
    words = "BIOS {}"

    def values(self, host: Host) -> Mapping[str, Any]:
        return {"": _version(host.read("/sys/devices/virtual/dmi/id/bios_version"))}


class Driver(UniformCheck):
    id = "host.driver"
    what = "the driver and driver version of every NIC of the fabric"
    source = "ethtool -i"
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "install the same driver on all hosts"
    words = "driver {}"
    absent = "ethtool -i does not report it"

    def values(self, host: Host) -> Mapping[str, Any]:
        drivers = {nic: [facts.get("driver"), facts.get("version")] for nic, facts in _driver_facts(host).items()}
        return {nic: _version(" ".join(filter(None, words))) if words[0] else None for nic, words in drivers.items()}


class NicFirmware(UniformCheck):
    id = "host.nic.fw"
    what = "the firmware of every NIC of the fabric"
    source = "ethtool -i"
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "nic"
    remedy = "install the same firmware on all hosts"
    words = "firmware {}"
    absent = "ethtool -i does not report it"

    def values(self, host: Host) -> Mapping[str, Any]:
        versions = {nic: facts.get("firmware-version") for nic, facts in _driver_facts(host).items()}
        return {nic: None if firmware in (None, "N/A") else _version(firmware) for nic, firmware in versions.items()}


class Modules(UniformCheck):
    id = "host.module"
    what = "kernel modules of NICs, GPUs and MPI libraries"
    source = f"{MODULES}/*/version"
    rule = "loaded in the same version as on most similar hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "install the same driver on all hosts; check the kernel log for why it was not loaded"
    words = "{}"
    absent = "no such module is loaded"
    named = True

    _NOT = "not loaded"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        self._somewhere = sorted({name for host in fleet.hosts for name in _modules(host)})
        return super().judge(fleet)

    def values(self, host: Host) -> Mapping[str, Any]:
        loaded = _modules(host)
        return {name: loaded.get(name, self._NOT) for name in self._somewhere if host.snapshot.folder("/sys")}

    def site_values(self, host: Host) -> Mapping[str, Value]:
        return _modules(host)

    def lacking(self, host: Host, expected: Collection[str]) -> Mapping[str, Value]:
        return dict.fromkeys(expected, self._NOT) if host.snapshot.folder("/sys") else {}


class Mpi(UniformCheck):
    id = "host.mpi"
    what = "the version of the first mpiexec in PATH"
    source = "mpiexec --version"
    rule = "the same on all hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "load the same modules on every host; check PATH in non-login shells"
    words = "{}"
    absent = "mpiexec was not found, or does not report its version"

    def values(self, host: Host) -> Mapping[str, Any]:
        """Return the first line; after Hydra's heading also the line with the version."""
        output = host.command("mpiexec")
        lines = [line.strip() for line in output.text.splitlines() if line.strip()] if output.status == 0 else []
        if lines and not re.search(r"\d", lines[0]):
            lines = [f"{lines[0]} {line}" for line in lines if line.startswith("Version:")][:1]
        return {"": _version(lines[0]) if lines else None}


def cpus_online(host: Host) -> int | None:
    """Return the number of CPUs online; None if unknown."""
    return count_listed(host.read(f"{CPUS}/online"))


def count_listed(text: str | None) -> int | None:
    """Count the numbers in a list such as `0-3,8`; None for other texts."""
    if not text or not re.fullmatch(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*", text):
        return None
    ranges = [part.split("-") for part in text.split(",")]
    return sum(max(int(ends[-1]) - int(ends[0]) + 1, 0) for ends in ranges)


def _modules(host: Host) -> Mapping[str, str]:
    """Return the versions of loaded modules; modules of the kernel itself have no version."""
    return _versions(host.snapshot.folder(MODULES))


@once_per_folder
def _versions(folder: Tree) -> Mapping[str, str]:
    found = {name: one.get("version") for name, one in folder.items() if isinstance(one, dict)}
    return {name: shortened(version, 60) for name, version in found.items() if isinstance(version, str)}


def _driver_facts(host: Host) -> Mapping[str, Mapping[str, str]]:
    """Parse `ethtool -i` of the fabric's NICs."""
    outputs = {nic.name: host.command(f"ethtool-i/{nic.name}") for nic in host.interfaces}
    return {
        nic: {key: value.strip() for key, _, value in (line.partition(":") for line in one.text.splitlines())}
        for nic, one in outputs.items()
        if one.status == 0
    }


def _version(text: str | None) -> str | None:
    return shortened(text, 60) or None if text else None
