"""Selection of the hosts to measure: those of the current job, of a hostfile, or those that the user names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fablint.cluster.hostfile import read_hostfile
from fablint.cluster.schedulers import pbs_job, slurm_job
from fablint.errors import UsageError
from fablint.model import Allocation
from fablint.model.host_name import HostNames, unified
from fablint.model.names import fold
from fablint.system import System

_FOREIGN = {"LSB_JOBID": "LSF", "FLUX_URI": "Flux", "PE_HOSTFILE": "Grid Engine"}


def find_hosts(
    system: System,
    hosts: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    hostfile: Path | None = None,
    *,
    partly: bool = False,
) -> Allocation:
    """Hosts to measure, and the source of the list.

    Inside a job they are its hosts, restricted to a hostfile and to `hosts`; without a job those of the hostfile,
    restricted to `hosts`; without either `hosts` themselves. `exclude` is removed.

    Parameters
    ----------
    hosts, exclude
        Parsed lists (`plan.parse_hosts`), so that brackets have the same meaning everywhere.
    partly
        Whether hosts that are not in the job are reported as absent if others are.

    Raises
    ------
    UsageError
        There is neither a job nor a list; no host remains; `hosts` or `exclude` name other hosts; the job has ended;
        the hostfile cannot be read.
    """
    allocation = current_job(system)
    absent: list[str] = []
    if hostfile is not None:
        listed = Allocation(*_listed(hostfile))
        if allocation is not None and partly:
            absent = _absent(allocation, listed.hosts)
            listed = replace(listed, hosts=tuple(host for host in listed.hosts if host not in absent))
        allocation = _restricted(allocation, listed.hosts, listed.room) if allocation else listed
    if hosts is not None:
        if allocation is not None and allocation.job and partly:
            absent += _absent(allocation, hosts)
            hosts = [host for host in hosts if host not in absent]
        once = dict.fromkeys(unified(hosts).values())
        allocation = _restricted(allocation, hosts) if allocation else Allocation(tuple(once), "--hosts")
    if allocation is None:
        raise UsageError(*_no_hosts_error(system.environ, is_measured=partly))
    if exclude:
        allocation, absent = _without(allocation, exclude, absent)
    if not allocation.hosts:
        raise UsageError(f"no host of {allocation.source} remains", "exclude fewer of them")
    return replace(allocation, absent=tuple(dict.fromkeys(absent)))


def _absent(allocation: Allocation, hosts: Sequence[str]) -> list[str]:
    """Hosts that are not in the allocation; [] if none of `hosts` is."""
    roster = HostNames(allocation.hosts, complete=True)
    strangers = [host for host in hosts if roster.find(host) is None]
    return strangers if len(strangers) < len(hosts) else []


def _without(allocation: Allocation, exclude: Sequence[str], absent: Sequence[str]) -> tuple[Allocation, list[str]]:
    """Allocation without these hosts, and the absent hosts that are not excluded. Raises UsageError for others."""
    absent_roster = HostNames(absent, complete=True)
    out = set(_members(allocation, [name for name in exclude if absent_roster.find(name) is None], "--exclude"))
    gone = {host for name in exclude if (host := absent_roster.find(name)) is not None}
    remaining = tuple(host for host in allocation.hosts if host not in out)
    excluded = (*(host for host in allocation.hosts if host in out), *(host for host in absent if host in gone))
    return replace(allocation, hosts=remaining, excluded=excluded), [host for host in absent if host not in gone]


def unresolvable(system: System, hosts: Sequence[str]) -> list[str]:
    """The `hosts` whose names do not resolve here; resolved in parallel, because a dead name server costs seconds."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=32) as pool:
        return [host for host, resolves in zip(hosts, pool.map(system.resolves, hosts), strict=True) if not resolves]


def current_job(system: System) -> Allocation | None:
    """The Slurm or PBS job that contains this process; None outside of one. Raises UsageError if it has ended."""
    match current_scheduler(system.environ):
        case "slurm":
            return slurm_job.allocation(system)
        case "pbs":
            return pbs_job.allocation(system)
    return None


def current_scheduler(environ: Mapping[str, str]) -> str:
    """`slurm` or `pbs`: the scheduler of the job that contains this process; '' outside of one."""
    if environ.get("SLURM_JOB_ID") and ("SLURM_JOB_NODELIST" in environ or "SLURM_NODELIST" in environ):
        return "slurm"
    return "pbs" if environ.get("PBS_NODEFILE") else ""


def _listed(hostfile: Path) -> tuple[tuple[str, ...], str, str, str, Mapping[str, int]]:
    room = read_hostfile(hostfile)
    if not room:
        raise UsageError(f"{hostfile} names no host", "write one host per line")
    return tuple(room), str(hostfile), "", "", {host: count for host, count in room.items() if count}


def _restricted(allocation: Allocation, hosts: Sequence[str], room: Mapping[str, int] | None = None) -> Allocation:
    """Allocation restricted to these hosts, in the given order."""
    names = _members(allocation, hosts, "--hosts")
    counts = {name: room[host] for name, host in zip(names, hosts, strict=True) if host in room} if room else {}
    return replace(allocation, hosts=tuple(dict.fromkeys(names)), room={**allocation.room, **counts})


def _members(allocation: Allocation, names: Sequence[str], option: str) -> list[str]:
    """Hosts as the allocation spells them."""
    roster = HostNames(allocation.hosts, complete=True)
    members = [roster.find(name) for name in names]
    foreign = [name for name, host in zip(names, members, strict=True) if host is None]
    if foreign:
        raise UsageError(
            f"{option}: {fold(foreign)}: not in {allocation.source}", f"its hosts are {fold(allocation.hosts)}"
        )
    return [host for host in members if host is not None]


def _no_hosts_error(environ: Mapping[str, str], *, is_measured: bool) -> tuple[str, str]:
    """Return problem and remedy; only verbs that measure have --local."""
    foreign = next((name for name in _FOREIGN if environ.get(name)), None)
    if foreign is not None:
        return (
            f"this is an allocation of {_FOREIGN[foreign]} ({foreign}), which fablint does not read",
            "name its hosts with --hosts HOSTS or --hostfile FILE",
        )
    if not is_measured:
        return "no hosts are known: no allocation here", "name hosts with -w HOSTS"
    return "nothing to check: no allocation here", "name hosts with -w HOSTS, or use --local N for this machine"
