"""The stages `cluster` and `discover` together: which hosts there are, asked what they know of the fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import UsageError
from fablint.model import Allocation, Finding, HostState, State
from fablint.system import System
from fablint.text.names import fold

if TYPE_CHECKING:
    from fablint.discover import Discovered
    from fablint.snapshot import Heard

ANSWER_S = 18.0  # beside the time that a snapshot should take: then a host that does not answer is reported
_LOGIN_S = 10.0  # beside the time that it may take
_OUT = ("drained", "down")


@dataclass(frozen=True)
class FabricRequest:
    """Which hosts, and what is known besides: as the user gave them."""

    hosts: str | None = None  # `nid[001-004]`
    exclude: str | None = None
    hostfile: Path | None = None
    files: tuple[str, ...] = ()  # `FILE` or `NAME=FILE`
    blocks: int | None = None
    nics: tuple[str, ...] = ()  # those of the fabric; none: it is found out


def discover_fabric(system: System, request: FabricRequest) -> tuple[Discovered, Allocation | None]:
    """The fabric of the hosts that can be used, and which these are; None where only files were read.

    Drained and down hosts are left out and named by a finding. Raises UsageError where there is neither a host nor
    a file, or where one of them is wrong.
    """
    from fablint import discover

    texts = discover.read_files(request.files)
    try:
        allocation, left_out = usable_hosts(system, request)
    except UsageError:
        if request.files and not (request.hosts or request.exclude or request.hostfile):
            if request.nics:
                raise UsageError("--nic: on which hosts?", "name them with -w or --hostfile") from None
            return discover.discover(system, texts=texts, blocks=request.blocks), None
        raise
    found = discover_hosts(system, allocation, request.files, request.blocks, request.nics)
    return replace(found, findings=(*left_out, *found.findings)), allocation


def discover_hosts(
    system: System,
    allocation: Allocation,
    files: Sequence[str] = (),
    blocks: int | None = None,
    nics: Sequence[str] = (),
) -> Discovered:
    """The fabric of an allocation: every host is asked once."""
    from fablint import discover

    texts = discover.read_files(files)
    heard = of_nics(ask_hosts(system, allocation), nics)
    return discover.discover(system, heard, texts, allocation.hosts, blocks)


def of_nics(heard: Heard, names: Sequence[str], *, refuse: bool = True) -> Heard:
    """Snapshots whose NICs of the fabric are those with these names, where there are any names.

    With `refuse` raises UsageError for a name that no host has.
    """
    from fablint.snapshot import nics_of, with_nics

    if not names or not heard.snapshots:
        return heard
    known = {nic.name for snapshot in heard.snapshots.values() for nic in nics_of(snapshot)}
    known |= {name.rpartition("-")[0] for name in known}  # an RDMA device with several ports
    missing = [name for name in names if name not in known]
    if missing and refuse:
        raise UsageError(f"--nic {','.join(missing)}: no host has such a NIC", f"they have {fold(known - {''})}")
    return with_nics(heard, names)


def ask_hosts(system: System, allocation: Allocation, level: str = "quick") -> Heard:
    """Snapshots of all hosts, taken at once. Hosts whose time ran out are asked once more, with more time."""
    from fablint.snapshot.collecting import MORE

    first = _ask(system, allocation, level)
    late = tuple(host for host, one in first.snapshots.items() if one.incomplete)
    if not late:
        return first
    again = _ask(system, replace(allocation, hosts=late), level, MORE)
    documents, snapshots = {**first.documents, **again.documents}, {**first.snapshots, **again.snapshots}
    return replace(first, documents=documents, snapshots=snapshots)


def _ask(system: System, allocation: Allocation, level: str, times: float = 1.0) -> Heard:
    """Snapshots of hosts that may take so many times as long as usual."""
    from fablint import cluster
    from fablint.snapshot import command_to_collect, heard
    from fablint.snapshot.collecting import AIMS_S, LIMITS_S

    argv, text = command_to_collect(level, times=times)
    limit_s = max(times * AIMS_S[level] + ANSWER_S, times * LIMITS_S[level] + _LOGIN_S)
    return heard(cluster.everywhere(system, allocation, argv, text, limit_s))


def usable_hosts(
    system: System, request: FabricRequest, *, idle_only: bool = False
) -> tuple[Allocation, list[Finding]]:
    """The hosts to ask, and findings for those that the scheduler has taken out.

    With `idle_only`, to be measured: where they are not those of a job, those on which other jobs run are left out as
    well, and names that do not resolve are refused; findings name also who was excluded, and who was asked for and is
    not of the job. Raises UsageError for these, and where none is left.
    """
    from fablint import cluster
    from fablint.plan import parse_hosts

    hosts, exclude = (parse_hosts(text) if text else None for text in (request.hosts, request.exclude))
    allocation = cluster.find_hosts(system, hosts, exclude, request.hostfile, partly=idle_only)
    if idle_only and not allocation.job and (strangers := cluster.unresolvable(system, allocation.hosts)):
        raise UsageError(f"{fold(strangers)}: no such host", "give names that resolve, or leave them out")
    useless = (*_OUT, "busy") if idle_only and not allocation.job else _OUT
    states = {one.host: one for one in cluster.host_states(system, (*allocation.hosts, *allocation.absent))}
    out = {host: states[host] for host in allocation.hosts if host in states and states[host].state in useless}
    findings = [_left_out(host, _state_text(one)) for host, one in out.items()]
    left = tuple(host for host in allocation.hosts if host not in out)
    if not left:
        first = next(iter(out.values()))
        raise UsageError(f"no host is left of {len(out)}: {first.host} is {_state_text(first)}", "name others")
    if idle_only:
        findings += [_left_out(host, "excluded by name") for host in allocation.excluded]
        where = f"not of {allocation.source}"
        findings += [_left_out(host, ", ".join([where, *_why_absent(states.get(host))])) for host in allocation.absent]
    room = {host: ranks for host, ranks in allocation.room.items() if host in left}
    return replace(allocation, hosts=left, room=room), findings


def _left_out(host: str, why: str) -> Finding:
    return Finding(state=State.NOT_JUDGED, component="host", name=host, evidence=f"left out: {why}")


def _state_text(one: HostState) -> str:
    return f"{one.state}{f' ({one.reason})' if one.reason else ''}"


def _why_absent(one: HostState | None) -> list[str]:
    """What the scheduler says of a host that is not of the job, if that is a reason."""
    return [_state_text(one)] if one is not None and one.state in _OUT else []
