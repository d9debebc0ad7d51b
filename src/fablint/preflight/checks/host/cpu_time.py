"""Checks of the CPUs that a job gets: time that the hypervisor took, CPUs that the collector may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fablint.model.preflight_results import Result
from fablint.preflight.check import Check
from fablint.preflight.host import Host
from fablint.preflight.judges import limit, uniform
from fablint.snapshot.parsers.proc_files import allowed_cpus, cpu_times
from fablint.text.units import share_text

_STAT = "/proc/stat"
_MOST_STOLEN = 0.01  # of the time


def _steal(check: Check, host: Host) -> Iterator[Result]:
    first, last = (cpu_times(text) for text in host.snapshot.readings(_STAT))
    if first is None or last is None or last.total <= first.total:
        yield check.skip(host.name, "", "/proc/stat was not read twice")
        return
    now = (last.stolen - first.stolen) / (last.total - first.total)
    ever = last.stolen / last.total
    if now > _MOST_STOLEN:
        message = f"the hypervisor takes {share_text(now)} of the time of the CPUs"
        yield check.failure(host.name, "", message, now, _MOST_STOLEN)
    elif ever > _MOST_STOLEN:
        message = f"the hypervisor took {share_text(ever)} of the time of the CPUs since boot"
        yield check.failure(host.name, "", message, ever, _MOST_STOLEN)
    else:
        yield check.ok(host.name, value=ever)


CPU_STEAL = Check(
    id="host.steal",
    what="time of the CPUs of a virtual machine that the hypervisor gave to others",
    source=_STAT,
    rule=f"at most {share_text(_MOST_STOLEN)}, during the snapshot and since boot",
    component="host",
    remedy="use dedicated hosts or pinned CPUs; look for other virtual machines on the physical host",
    judge=limit(_steal),
)


def _allowed(host: Host) -> Mapping[str, Any]:
    allowed = allowed_cpus(host.read("/proc/self/status"))
    return {"": allowed} if allowed and host.cpus_online else {}


CPU_SET = Check(
    id="host.cpuset",
    what="the CPUs that the collector, and so a job in its place, may use",
    source="/proc/self/status, Cpus_allowed_list",
    rule="not fewer than on most similar hosts",
    component="host",
    remedy="look at the cpuset of the job, the container or the login session (systemctl set-property AllowedCPUs)",
    judge=uniform(_allowed, "{} CPU[s] usable", absent="the kernel does not report it", below=True, numeric=True),
)
