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
from fablint.model import Allocation, Topology
from fablint.model.preflight_results import Fitness
from fablint.system import PRIVATE_FOLDER, System
from fablint.text.names import plain, plural
from fablint.workflows import fabric_discovery

if TYPE_CHECKING:
    from fablint.preflight.site.expectations import Site
    from fablint.preflight.site.learning import Learned
    from fablint.snapshot import Heard

_FABRIC_TOOLS = ("ibnetdiscover", "ibqueryerrors", "sminfo", "fmn-show-status", "fmn-update-compute-hsn-health")
_NID = re.compile(r"nid0*(\d{1,7})", re.IGNORECASE)  # a host that is called by its place on Slingshot
MANY = 1000  # hosts, which are judged by several processes: to start them takes as long as to judge a hundred
FABRIC = "+fabric"  # beside the names of hosts, the fabric's


@dataclass(frozen=True)
class Declared:
    """What the site says of its hosts: which switch each is connected to, and what its site file expects."""

    topology: Topology | None = None
    site: Site | None = None


@dataclass(frozen=True)
class Looked:
    """What hosts said, and what is made of it."""

    heard: Heard
    fitness: Fitness


def look_at(
    system: System,
    allocation: Allocation,
    level: str = "quick",
    declared: Declared | None = None,
    *,
    keep: bool = True,
    ping: bool = True,
    nics: Sequence[str] = (),
) -> Looked:
    """Ask every host once, and judge what they say. Hosts that do not answer cost the time of one, once.

    With `ping` those that answer then ping each other. `nics` are those that the user says are the fabric's; none: it
    is found out. Raises UsageError where no host has such a NIC.
    """
    asked = fabric_discovery.ask_hosts(system, allocation, level)
    heard = fabric_discovery.of_nics(asked, nics, refuse=ping)  # a NIC may fail while hosts are measured
    if ping:
        heard = reach(system, allocation, heard, level)
    if level == "full":
        heard = replace(heard, documents={**heard.documents, **ask_fabric(system, allocation.hosts)})
    return Looked(heard, judged(system, heard, declared, keep=keep))


def reach(system: System, allocation: Allocation, heard: Heard, level: str) -> Heard:
    """Let the hosts that gave snapshots ping each other; the same snapshots, with what came of it in them."""
    from fablint.cluster import everywhere
    from fablint.preflight import Host, offsets, repeats, table
    from fablint.snapshot.pinging import LIMITS_S, pinger, with_reach

    rows = table([Host(one) for one in heard.snapshots.values()])
    if len(rows) < 2:
        return heard
    argv, text = pinger(rows, offsets(len(rows), level), repeats(len(rows), level), level)
    some = replace(allocation, hosts=tuple(row["host"] for row in rows))
    return with_reach(heard, everywhere(system, some, argv, text, LIMITS_S[level] + fabric_discovery.ANSWER_S))


def ask_fabric(system: System, hosts: Iterable[str]) -> Mapping[str, Mapping[str, Any]]:
    """What the fabric's own tools say, by `FABRIC`; nothing where none of them is installed on this machine."""
    from fablint.cluster import everywhere
    from fablint.snapshot import command_to_collect, heard
    from fablint.snapshot.collecting import LIMITS_S

    if not any(map(system.which, _FABRIC_TOOLS)):
        return {}
    nids = [int(match[1]) for match in map(_NID.fullmatch, hosts) if match]
    argv, text = command_to_collect("fabric", nids=f"{min(nids)}-{max(nids)}" if nids else "")
    here = Allocation((os.uname().nodename,), "this machine")
    answers = everywhere(system, here, argv, text, LIMITS_S["fabric"] + fabric_discovery.ANSWER_S)
    document = heard(answers).documents.get(here.hosts[0])
    return {FABRIC: document} if document else {}


def look_below(
    system: System,
    sysroot: Path,
    level: str,
    declared: Declared | None = None,
    nics: Sequence[str] = (),
) -> Looked:
    """Judge the tree of files below a folder as if it were this machine's. Raises UsageError where it is none."""
    from fablint.cluster import everywhere
    from fablint.snapshot import command_to_collect, heard

    if not sysroot.is_dir():
        raise UsageError(f"{sysroot}: is no directory", "give the folder that stands for /, with sys and proc in it")
    argv, text = command_to_collect(level, sysroot.absolute())
    here = Allocation((os.uname().nodename,), "this machine")
    name = _named_below(sysroot)
    said = heard(replace(one, host=name or one.host) for one in everywhere(system, here, argv, text))
    said = fabric_discovery.of_nics(said, nics)
    return Looked(said, judged(system, said, declared, keep=False))


def _named_below(sysroot: Path) -> str:
    """The name of the host that a tree of files was taken from; empty where it has none."""
    try:
        text = (sysroot / "etc" / "hostname").read_text(errors="replace")
    except OSError:
        return ""
    return plain(text.partition("\n")[0])


def look_again(
    system: System,
    files: Iterable[Path],
    declared: Declared | None = None,
    nics: Sequence[str] = (),
) -> Looked:
    """Judge snapshots that were saved. Raises UsageError where a file holds none."""
    from fablint.snapshot import Heard, load_snapshots, snapshot_of

    documents = {_name(document): document for path in files for document in load_snapshots(path)}
    said = Heard(documents, {host: snapshot_of(document) for host, document in documents.items() if host != FABRIC})
    said = fabric_discovery.of_nics(said, nics)
    return Looked(said, judged(system, said, declared, keep=False))


def judged(system: System, heard: Heard, declared: Declared | None = None, *, keep: bool = True) -> Fitness:
    """All checks. With `keep` counters are compared with those of the last time, and kept for the next."""
    from fablint.preflight import Fleet, Host, judge
    from fablint.snapshot import snapshot_of
    from fablint.workflows.counter_history import Readings

    readings = Readings(system.home_folder("preflight", PRIVATE_FOLDER) if keep else None)
    hosts = [Host(one, readings.before(one), partial(readings.older, one)) for one in heard.snapshots.values()]
    fabric = heard.documents.get(FABRIC)
    now = snapshot_of(fabric) if fabric else None
    known = [readings.document(FABRIC), *readings.documents_before(FABRIC, now.time)] if now else []
    declared = declared or Declared()
    fleet = Fleet(hosts, heard.silent, declared.topology, now, [snapshot_of(one) for one in known if one])
    each = system.forked_map if len(hosts) >= MANY else map
    fitness = judge(fleet, site=declared.site, each=each)
    readings.keep(heard.snapshots.values())
    if fabric:
        counts = {name: said for name, said in fabric.get("commands", {}).items() if name == "ibqueryerrors"}
        readings.keep_document(FABRIC, {"fablint_snapshot": 1, "time": fabric.get("time"), "commands": counts})
    return fitness


def learned(system: System, heard: Heard, level: str) -> Learned:
    """A site file that says what these hosts have. Raises IncompleteError where none gave a whole snapshot."""
    from fablint.preflight import Fleet, Host
    from fablint.preflight.site.learning import learn

    fleet = Fleet([Host(one) for one in heard.snapshots.values()], heard.silent)
    if not fleet.classes:
        raise IncompleteError("no host gave a whole snapshot", "there is nothing to learn; see above why")
    count = sum(len(one.hosts) for one in fleet.classes)
    return learn(fleet, f"Learned on {system.now():%Y-%m-%d} from {plural(count, 'host')} at level {level}.")


def _name(document: Mapping[str, Any]) -> str:
    """Whose snapshot it is."""
    return FABRIC if document.get("level") == "fabric" else str(document.get("host"))
