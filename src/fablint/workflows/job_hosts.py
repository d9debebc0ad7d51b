"""Hosts that a launch needs, compared with those of the job that we are in, and with those where its ranks were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fablint.errors import IncompleteError, UsageError
from fablint.model import Allocation, Run, Slots
from fablint.model.host_name import HostName, HostNames
from fablint.model.names import fold
from fablint.system import System, is_here

_SHOWN = 4  # hosts in the example of a PBS request, which cannot be folded


def slots_of_job(system: System, slots: Sequence[Slots]) -> tuple[Slots, ...]:
    """Return the slots with the names that the job has for its hosts; unchanged outside of a job.

    Slurm refuses a node by its domain name, and hosts may call themselves by it. Slots of this machine alone are
    never refused: their ranks are started here.

    Raises
    ------
    UsageError
        The job lacks some of the hosts, or has ended.
    """
    from fablint.cluster import current_job

    job = current_job(system)
    if job is None:
        return tuple(slots)
    roster = HostNames(job.hosts, complete=True)
    absent = [slot.host for slot in slots if roster.find(slot.host) is None]
    if absent and not all(is_here(slot.host) for slot in slots):
        raise _absent(job, absent, [slot.host for slot in slots])
    return tuple(replace(slot, host=roster.find(slot.host) or HostName(slot.host).short) for slot in slots)


def refuse_misplaced(run: Run, slots: Sequence[Slots]) -> None:
    """Raise IncompleteError where a launcher placed a rank on another host than `slots` says."""
    requested = [slot.host for slot in slots for _ in range(slot.ranks)]
    names = HostNames(requested, complete=True)
    for rank, (host, actual) in enumerate(zip(requested, run.rank_host, strict=False)):
        if not HostName(host).is_same(HostName(actual)) and names.find(actual) != host:
            raise IncompleteError(
                f"rank {rank} ran on {actual} and not on {host}: the launcher did not follow the list of hosts",
                "write hosts as they call themselves, and start from where all can be reached",
            )


def _absent(job: Allocation, absent: Sequence[str], needed: Sequence[str]) -> UsageError:
    count = len(set(absent))
    return UsageError(
        f"{fold(absent)} {'is' if count == 1 else 'are'} not in {job.source}, whose hosts are {fold(job.hosts)}",
        f"nothing was launched; start it in a job that has {fold(needed)}, such as {_request(job.scheduler, needed)}",
    )


def _request(scheduler: str, hosts: Sequence[str]) -> str:
    """Return the command that requests an interactive job with these hosts."""
    if scheduler != "pbs":
        return f"salloc --nodelist='{fold(hosts)}'"
    names = list(dict.fromkeys(hosts))
    more = "+..." if len(names) > _SHOWN else ""
    return f"qsub -I -l select={'+'.join(f'1:host={name}' for name in names[:_SHOWN])}{more}"
