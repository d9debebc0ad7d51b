"""The stages `cluster` and `discover` together: the hosts of a request, and the fabric that they report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import PositiveInt

from fablint.errors import StoppedError, UsageError
from fablint.model import Allocation, ComponentRef, Finding, HostState, State
from fablint.model.names import fold
from fablint.system import System
from fablint.text import evidence as seen

if TYPE_CHECKING:
    from fablint.discover import DiscoveredFabric
    from fablint.snapshot import CollectedSnapshots

ANSWER_S = 18.0  # after the time that a snapshot usually takes: a host without an answer is reported then
_LOGIN_S = 10.0  # after the longest time that a snapshot may take
_OUT = ("drained", "down")


@dataclass(frozen=True)
class FabricRequest:
    """Hosts and additional sources, in the words of the user."""

    hosts: str | None = None  # `nid[001-004]`
    exclude: str | None = None
    hostfile: Path | None = None
    files: tuple[str, ...] = ()  # `FILE` or `NAME=FILE`
    blocks: PositiveInt | None = None
    nics: tuple[str, ...] = ()  # NICs of the fabric; none: they are detected


def discover_fabric(system: System, request: FabricRequest) -> tuple[DiscoveredFabric, Allocation | None]:
    """Discover the fabric of the usable hosts of a request.

    Returns
    -------
    DiscoveredFabric
        The fabric; drained and down hosts are excluded and have a finding.
    Allocation or None
        The hosts, None where only files were read.

    Raises
    ------
    UsageError
        There is neither a host nor a file, or one of them is wrong.
    """
    from fablint import discover

    texts = discover.read_files(request.files)
    try:
        allocation, unusable = usable_hosts(system, request)
    except UsageError:
        if request.files and not (request.hosts or request.exclude or request.hostfile):
            if request.nics:
                raise UsageError("--nic requires hosts", "name them with -w or --hostfile") from None
            return discover.discover(system, texts=texts, blocks=request.blocks), None
        raise
    fabric = discover_hosts(system, allocation, request.files, request.blocks, request.nics)
    return replace(fabric, findings=(*unusable, *fabric.findings)), allocation


def discover_hosts(
    system: System,
    allocation: Allocation,
    files: Sequence[str] = (),
    blocks: int | None = None,
    nics: Sequence[str] = (),
) -> DiscoveredFabric:
    """Discover the fabric of an allocation; every host is asked once."""
    from fablint import discover

    texts = discover.read_files(files)
    collected = restrict_to_nics(collect_snapshots(system, allocation), nics)
    return discover.discover(system, collected, texts, allocation.hosts, blocks)


def restrict_to_nics(collected: CollectedSnapshots, names: Sequence[str], *, refuse: bool = True) -> CollectedSnapshots:
    """Return the snapshots with only these NICs as those of the fabric; unchanged where `names` is empty.

    Raises UsageError for a name that no host has, unless `refuse` is False.
    """
    from fablint.snapshot import nics_of, with_nics

    if not names or not collected.snapshots:
        return collected
    nic_names = {nic.name for snapshot in collected.snapshots.values() for nic in nics_of(snapshot)}
    nic_names |= {name.rpartition("-")[0] for name in nic_names}  # an RDMA device with several ports
    missing = [name for name in names if name not in nic_names]
    if missing and refuse:
        raise UsageError(f"--nic {','.join(missing)}: no host has such a NIC", f"they have {fold(nic_names - {''})}")
    return with_nics(collected, names)


def collect_snapshots(system: System, allocation: Allocation, level: str = "quick") -> CollectedSnapshots:
    """Collect snapshots of all hosts of an allocation in parallel; hosts that time out are tried again, with more time.

    `level` is `quick`, `full` or `counters`. A host without an answer is in the result with the reason; nothing is
    raised for it, except StoppedError where the job has ended: then no host is at fault.
    """
    from fablint.cluster import why_job_ended
    from fablint.snapshot.collecting import RETRY_FACTOR

    first = _ask(system, allocation, level)
    if first.silent and (why := why_job_ended(system)):
        raise StoppedError(why, "start again in a new job")
    incomplete = tuple(host for host, snapshot in first.snapshots.items() if snapshot.incomplete)
    if not incomplete:
        return first
    second = _ask(system, replace(allocation, hosts=incomplete), level, RETRY_FACTOR)
    documents, snapshots = {**first.documents, **second.documents}, {**first.snapshots, **second.snapshots}
    return replace(first, documents=documents, snapshots=snapshots)


def _ask(system: System, allocation: Allocation, level: str, times: float = 1.0) -> CollectedSnapshots:
    """Collect snapshots once; `times` multiplies the usual time limits."""
    from fablint import cluster
    from fablint.snapshot import command_to_collect, read_answers
    from fablint.snapshot.collecting import AIMS_S, LIMITS_S

    argv, text = command_to_collect(level, times=times)
    limit_s = max(times * AIMS_S[level] + ANSWER_S, times * LIMITS_S[level] + _LOGIN_S)
    return read_answers(cluster.everywhere(system, allocation, argv, text, limit_s))


def usable_hosts(
    system: System, request: FabricRequest, *, idle_only: bool = False
) -> tuple[Allocation, list[Finding]]:
    """Return the hosts of a request that can be used, and a finding for each drained or down host.

    Parameters
    ----------
    system
        This machine.
    request
        Hosts and exclusions.
    idle_only
        The hosts are to be measured: outside of a job, hosts on which other jobs run are excluded as well, and names
        that do not resolve are refused. Findings then also name the hosts that the user excluded, and the requested
        hosts that the job lacks.

    Raises
    ------
    UsageError
        A name does not resolve, or no host is left.
    """
    from fablint import cluster
    from fablint.plan import parse_hosts

    hosts, exclude = (parse_hosts(text) if text else None for text in (request.hosts, request.exclude))
    allocation = cluster.find_hosts(system, hosts, exclude, request.hostfile, partly=idle_only)
    if idle_only and not allocation.job and (unresolved := cluster.unresolvable(system, allocation.hosts)):
        raise UsageError(f"{fold(unresolved)}: no such host", "give names that resolve, or exclude them")
    useless = (*_OUT, "busy") if idle_only and not allocation.job else _OUT
    states = {one.host: one for one in cluster.host_states(system, (*allocation.hosts, *allocation.absent))}
    out = {host: states[host] for host in allocation.hosts if host in states and states[host].state in useless}
    findings = [_excluded(host, _state_text(one)) for host, one in out.items()]
    left = tuple(host for host in allocation.hosts if host not in out)
    if not left:
        first = next(iter(out.values()))
        raise UsageError(f"no host is left of {len(out)}: {first.host} is {_state_text(first)}", "name others")
    if idle_only:
        findings += [_excluded(host, "by name") for host in allocation.excluded]
        where = f"not of {allocation.source}"
        findings += [_excluded(host, ", ".join([where, *_why_absent(states.get(host))])) for host in allocation.absent]
    room = {host: ranks for host, ranks in allocation.room.items() if host in left}
    return replace(allocation, hosts=left, room=room), findings


def _excluded(host: str, why: str) -> Finding:
    return Finding(state=State.NOT_JUDGED, components=(ComponentRef.of("host", host),), evidence=(seen.excluded(why),))


def _state_text(host_state: HostState) -> str:
    return f"{host_state.state}{f' ({host_state.reason})' if host_state.reason else ''}"


def _why_absent(host_state: HostState | None) -> list[str]:
    """Return the scheduler's state of a host outside the job, where the state is the reason."""
    return [_state_text(host_state)] if host_state is not None and host_state.state in _OUT else []
