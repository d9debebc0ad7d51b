"""The stages `cluster`, `snapshot` and `preflight` together: are these hosts fit to be measured?"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fablint.errors import IncompleteError, UsageError
from fablint.model import Allocation, Answer, Topology
from fablint.model.names import plain, plural
from fablint.model.preflight_results import Fitness
from fablint.system import PRIVATE_FOLDER, System, no_collection
from fablint.workflows import fabric_discovery

if TYPE_CHECKING:
    from fablint.preflight.site.expectations import Site
    from fablint.preflight.site.learning import Learned
    from fablint.snapshot import CollectedSnapshots

_FABRIC_TOOLS = ("ibnetdiscover", "ibqueryerrors", "sminfo", "fmn-show-status", "fmn-update-compute-hsn-health")
_HSN = re.compile(r"hsn\d{1,3}")
_MOST_NICS = 16
_NID = re.compile(r"nid0*(\d{1,7})", re.IGNORECASE)  # a host name with its number on Slingshot
MANY = 1000  # hosts, judged by several processes: their start takes as long as judging 100 hosts
FABRIC = "+fabric"  # name of the fabric's own document among those of the hosts


@dataclass(frozen=True)
class SiteDeclaration:
    """What a site declares of its hosts: which switch each is connected to, and the expectations of its site file."""

    topology: Topology | None = None
    site: Site | None = None


@dataclass(frozen=True)
class PreflightResult:
    """Snapshots of hosts, and the results of all checks on them."""

    collected: CollectedSnapshots
    fitness: Fitness


def preflight_hosts(
    system: System,
    allocation: Allocation,
    level: str = "quick",
    declared: SiteDeclaration | None = None,
    *,
    keep: bool = True,
    ping: bool = True,
    nics: Sequence[str] = (),
) -> PreflightResult:
    """Take a snapshot of every host and judge all of them.

    Parameters
    ----------
    system
        This machine.
    allocation
        The hosts.
    level
        quick or full.
    declared
        What the site declares.
    keep
        Compare counters with earlier readings, and keep these for the next time.
    ping
        Let the hosts that answer ping each other.
    nics
        NICs of the fabric; none: they are detected.

    Raises
    ------
    UsageError
        No host has a NIC of that name.
    """
    collected = fabric_discovery.collect_snapshots(system, allocation, level)
    collected = fabric_discovery.restrict_to_nics(
        collected, nics, refuse=ping
    )  # a NIC may fail while hosts are measured
    if ping:
        collected = ping_each_other(system, allocation, collected, level)
    if level == "full":
        fabric = query_fabric(system, allocation.hosts, _slingshot_nics(collected))
        collected = replace(collected, documents={**collected.documents, **fabric})
    return PreflightResult(collected, judge_snapshots(system, collected, declared, keep=keep))


def ping_each_other(
    system: System, allocation: Allocation, collected: CollectedSnapshots, level: str
) -> CollectedSnapshots:
    """Let the hosts with a snapshot ping each other; return the snapshots with the answers added.

    After a loss the ends with losses ping their partners a second time: only losses of that pass are judged.
    """
    from fablint.preflight import FIRST, SECOND, Host, lossy_pairs, offsets, repeats, table
    from fablint.snapshot.pinging import pinger, with_reach

    rows = table([Host(one) for one in collected.snapshots.values()])
    if len(rows) < 2:
        return collected
    steps = offsets(len(rows), level)
    program = pinger(rows, steps, repeats(len(rows), level, FIRST), level)
    hosts = tuple(row["host"] for row in rows)
    reached = with_reach(collected, _ping_answers(system, replace(allocation, hosts=hosts), program, level))
    lossy = lossy_pairs([Host(one) for one in reached.snapshots.values()])
    if not lossy.hosts:
        return reached
    program = pinger(rows, steps, repeats(len(rows), level, SECOND), level, lossy.ends)
    answers = _ping_answers(system, replace(allocation, hosts=lossy.hosts), program, level)
    return with_reach(reached, answers, second=True)


def _ping_answers(
    system: System, allocation: Allocation, program: tuple[Sequence[str], str], level: str
) -> Sequence[Answer]:
    from fablint.cluster import everywhere
    from fablint.snapshot.pinging import LIMITS_S, PAUSE_S

    return everywhere(system, allocation, *program, LIMITS_S[level] + PAUSE_S + fabric_discovery.ANSWER_S)


def _slingshot_nics(collected: CollectedSnapshots) -> Sequence[str]:
    """Return the names of the Slingshot NICs of all hosts; the usual first name if no host reports any."""
    from fablint.snapshot.host_snapshot import NET

    names = {nic for one in collected.snapshots.values() for nic in one.names(NET) if _HSN.fullmatch(nic)}
    return sorted(names, key=lambda name: (len(name), name))[:_MOST_NICS] or ["hsn0"]


def query_fabric(
    system: System, hosts: Iterable[str], nics: Sequence[str] = ("hsn0",)
) -> Mapping[str, Mapping[str, Any]]:
    """Collect the output of the fabric's own tools as the document `FABRIC`; none where no tool is installed here.

    The fabric manager is queried about the Slingshot NICs `nics` of hosts that are named by their NID.
    """
    from fablint.cluster import everywhere
    from fablint.snapshot import command_to_collect, read_answers
    from fablint.snapshot.collecting import LIMITS_S

    if not any(map(system.which, _FABRIC_TOOLS)):
        return {}
    nids = [int(match[1]) for match in map(_NID.fullmatch, hosts) if match]
    argv, text = command_to_collect("fabric", managed=f"{min(nids)}-{max(nids)}:{','.join(nics)}" if nids else "")
    here = Allocation((os.uname().nodename,), "this machine")
    answers = everywhere(system, here, argv, text, LIMITS_S["fabric"] + fabric_discovery.ANSWER_S)
    document = read_answers(answers).documents.get(here.hosts[0])
    return {FABRIC: document} if document else {}


def preflight_tree(
    system: System,
    sysroot: Path,
    level: str,
    declared: SiteDeclaration | None = None,
    nics: Sequence[str] = (),
) -> PreflightResult:
    """Judge the tree of files below a folder in place of /. Raises UsageError where it is not a folder."""
    from fablint.cluster import everywhere
    from fablint.snapshot import command_to_collect, read_answers
    from fablint.snapshot.collecting import unpack

    if not sysroot.is_dir():
        raise UsageError(f"{sysroot}: is not a directory", "give the folder that stands for /, with sys and proc in it")
    argv, text = command_to_collect(level, sysroot.absolute())
    here = Allocation((os.uname().nodename,), "this machine")
    (answer,) = everywhere(system, here, argv, text)
    name = plain((unpack(answer.output) or {}).get("host", ""))  # of etc/hostname, as the collector reads it
    snapshots = read_answers([replace(answer, host=name or answer.host)])
    snapshots = fabric_discovery.restrict_to_nics(snapshots, nics)
    return PreflightResult(snapshots, judge_snapshots(system, snapshots, declared, keep=False))


def preflight_saved(
    system: System,
    files: Iterable[Path],
    declared: SiteDeclaration | None = None,
    nics: Sequence[str] = (),
) -> PreflightResult:
    """Judge saved snapshots. Raises UsageError where a file holds none."""
    from fablint.snapshot import CollectedSnapshots, load_snapshots, snapshot_of

    documents = {_name(document): document for path in files for document in load_snapshots(path)}
    with no_collection():
        snapshots_by_host = {host: snapshot_of(document) for host, document in documents.items() if host != FABRIC}
    snapshots = CollectedSnapshots(documents, snapshots_by_host)
    snapshots = fabric_discovery.restrict_to_nics(snapshots, nics)
    return PreflightResult(snapshots, judge_snapshots(system, snapshots, declared, keep=False))


def judge_snapshots(
    system: System, collected: CollectedSnapshots, declared: SiteDeclaration | None = None, *, keep: bool = True
) -> Fitness:
    """Apply all checks. With `keep` counters are compared with earlier readings, and kept for the next time."""
    from fablint.preflight import Fleet, Host, judge
    from fablint.snapshot import snapshot_of
    from fablint.workflows.counter_history import CounterHistory

    readings = CounterHistory(system.home_folder("preflight", PRIVATE_FOLDER) if keep else None)
    hosts = [Host(one, readings.before(one), partial(readings.older, one)) for one in collected.snapshots.values()]
    fabric = collected.documents.get(FABRIC)
    now = snapshot_of(fabric) if fabric else None
    earlier_documents = [readings.document(FABRIC), *readings.documents_before(FABRIC, now.time)] if now else []
    declared = declared or SiteDeclaration()
    fleet = Fleet(
        hosts, collected.silent, declared.topology, now, [snapshot_of(one) for one in earlier_documents if one]
    )
    each = system.forked_map if len(hosts) >= MANY else map
    fitness = judge(fleet, site=declared.site, each=each)
    readings.keep(collected.snapshots.values())
    if fabric:
        counts = {name: said for name, said in fabric.get("commands", {}).items() if name == "ibqueryerrors"}
        readings.keep_document(FABRIC, {"fablint_snapshot": 1, "time": fabric.get("time"), "commands": counts})
    return fitness


def learn_site(system: System, collected: CollectedSnapshots, level: str) -> Learned:
    """Return a site file with the values of these hosts. Raises IncompleteError where no snapshot is complete."""
    from fablint.preflight import CHECKS, Fleet, Host
    from fablint.preflight.site.learning import learn

    fleet = Fleet([Host(one) for one in collected.snapshots.values()], collected.silent)
    if not fleet.classes:
        raise IncompleteError("no host gave a complete snapshot", "there is nothing to learn; see above why")
    count = sum(len(one.hosts) for one in fleet.classes)
    remark = f"Learned on {system.now():%Y-%m-%d} from {plural(count, 'host')} at level {level}."
    return learn(fleet, remark, CHECKS)


def _name(document: Mapping[str, Any]) -> str:
    """Return the name of the host of a document, or `FABRIC`."""
    return FABRIC if document.get("level") == "fabric" else str(document.get("host"))
