"""Which hosts may be measured: those of the job that we are in, of a hostfile, or those that the user names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fablint.cluster.host_names import Roster
from fablint.cluster.hostfile import read_hostfile
from fablint.cluster.schedulers import pbs_job, slurm_job
from fablint.errors import UsageError
from fablint.model import Allocation
from fablint.system import System
from fablint.text.names import fold

_FOREIGN = {"LSB_JOBID": "LSF", "FLUX_URI": "Flux", "PE_HOSTFILE": "Grid Engine"}


def find_hosts(
    system: System,
    hosts: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    hostfile: Path | None = None,
    *,
    partly: bool = False,
) -> Allocation:
    """The hosts that may be measured, and how that is known.

    They are those of the job that we are in, narrowed to a hostfile and to `hosts`; without a job those of the
    hostfile, narrowed to `hosts`; without either `hosts` themselves. `exclude` is taken away. Lists of hosts come
    parsed (`plan.parse_hosts`), so that a list in brackets means the same everywhere. With `partly` hosts that are
    not of the job are named as absent where others are.

    Raises:
        UsageError: there is neither; nothing is left; `hosts` or `exclude` name others; a job that has ended; a
            hostfile that cannot be read.
    """
    allocation = current_job(system)
    absent: list[str] = []
    if hostfile is not None:
        listed = Allocation(*_listed(hostfile))
        if allocation is not None and partly:
            absent = _absent(allocation, listed.hosts)
            listed = replace(listed, hosts=tuple(host for host in listed.hosts if host not in absent))
        allocation = _narrowed(allocation, listed.hosts, listed.room) if allocation else listed
    if hosts is not None:
        if allocation is not None and allocation.job and partly:
            absent += _absent(allocation, hosts)
            hosts = [host for host in hosts if host not in absent]
        allocation = _narrowed(allocation, hosts) if allocation else Allocation(tuple(hosts), "--hosts")
    if allocation is None:
        raise UsageError(*_nothing(system.environ))
    if exclude:
        allocation, absent = _without(allocation, exclude, absent)
    if not allocation.hosts:
        raise UsageError(f"no host is left of {allocation.source}", "exclude fewer of them")
    return replace(allocation, absent=tuple(dict.fromkeys(absent)))


def _absent(allocation: Allocation, hosts: Sequence[str]) -> list[str]:
    """Hosts that the allocation does not have, where it has one of them."""
    roster = Roster(allocation.hosts)
    strangers = [host for host in hosts if roster.find(host) is None]
    return strangers if len(strangers) < len(hosts) else []


def _without(allocation: Allocation, exclude: Sequence[str], absent: Sequence[str]) -> tuple[Allocation, list[str]]:
    """The allocation without these hosts, and who is absent without being excluded. UsageError for others."""
    known = Roster(absent)
    out = set(_members(allocation, [name for name in exclude if known.find(name) is None], "--exclude"))
    gone = {host for name in exclude if (host := known.find(name)) is not None}
    left = tuple(host for host in allocation.hosts if host not in out)
    excluded = (*(host for host in allocation.hosts if host in out), *(host for host in absent if host in gone))
    return replace(allocation, hosts=left, excluded=excluded), [host for host in absent if host not in gone]


def unresolvable(system: System, hosts: Sequence[str]) -> list[str]:
    """Those of `hosts` whose names do not resolve here; asked at once: a dead name server costs its time once."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=32) as pool:
        return [host for host, resolves in zip(hosts, pool.map(system.resolves, hosts), strict=True) if not resolves]


def current_job(system: System) -> Allocation | None:
    """The job of Slurm or PBS that we are in; None outside of one. Raises UsageError where it has ended."""
    environ = system.environ
    if environ.get("SLURM_JOB_ID") and ("SLURM_JOB_NODELIST" in environ or "SLURM_NODELIST" in environ):
        return slurm_job.allocation(system)
    if environ.get("PBS_NODEFILE"):
        return pbs_job.allocation(system)
    return None


def _listed(hostfile: Path) -> tuple[tuple[str, ...], str, str, str, Mapping[str, int]]:
    room = read_hostfile(hostfile)
    if not room:
        raise UsageError(f"{hostfile} names no host", "write one host per line")
    return tuple(room), str(hostfile), "", "", {host: count for host, count in room.items() if count}


def _narrowed(allocation: Allocation, hosts: Sequence[str], room: Mapping[str, int] | None = None) -> Allocation:
    """The allocation with these of its hosts, in the order given."""
    names = _members(allocation, hosts, "--hosts")
    counts = {name: room[host] for name, host in zip(names, hosts, strict=True) if host in room} if room else {}
    return replace(allocation, hosts=tuple(dict.fromkeys(names)), room={**allocation.room, **counts})


def _members(allocation: Allocation, names: Sequence[str], option: str) -> list[str]:
    """The hosts as the allocation writes them."""
    roster = Roster(allocation.hosts)
    found = [roster.find(name) for name in names]
    foreign = [name for name, host in zip(names, found, strict=True) if host is None]
    if foreign:
        raise UsageError(
            f"{option}: {fold(foreign)}: not of {allocation.source}", f"its hosts are {fold(allocation.hosts)}"
        )
    return [host for host in found if host is not None]


def _nothing(environ: Mapping[str, str]) -> tuple[str, str]:
    foreign = next((name for name in _FOREIGN if environ.get(name)), None)
    if foreign is not None:
        return (
            f"this is an allocation of {_FOREIGN[foreign]} ({foreign}), which fablint does not read",
            "name its hosts with --hosts LIST or --hostfile FILE",
        )
    return "nothing to check: no allocation here", "name hosts with -w LIST, or use --local N for this machine"
