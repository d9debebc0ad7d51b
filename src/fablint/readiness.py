"""The stages `cluster`, `snapshot` and `preflight` together: are these hosts fit to be measured?"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fablint import discovery
from fablint.errors import UsageError
from fablint.fitness import Fitness
from fablint.model import Allocation, Topology
from fablint.names import plain
from fablint.system import System

if TYPE_CHECKING:
    from fablint.snapshot import Heard, Snapshot

_LONGEST_S = 7 * 86400.0  # older readings of counters are not compared with
_FABRIC_TOOLS = ("ibnetdiscover", "ibqueryerrors", "sminfo", "fmn-show-status", "fmn-update-compute-hsn-health")
_NID = re.compile(r"nid0*(\d{1,7})", re.IGNORECASE)  # a host that is called by its place on Slingshot
FABRIC = "+fabric"  # beside the names of hosts, the fabric's
_BOOT = "/proc/sys/kernel/random/boot_id"


@dataclass(frozen=True)
class Looked:
    """What hosts said, and what is made of it."""

    heard: Heard
    fitness: Fitness


def look_at(
    system: System,
    allocation: Allocation,
    level: str = "quick",
    topology: Topology | None = None,
    *,
    keep: bool = True,
    ping: bool = True,
) -> Looked:
    """Ask every host once, and judge what they say. Hosts that do not answer cost the time of one, once.

    With `ping` those that answer then ping each other.
    """
    heard = discovery.ask_hosts(system, allocation, level)
    if ping:
        heard = reach(system, allocation, heard, level)
    if level == "full":
        heard = replace(heard, documents={**heard.documents, **ask_fabric(system, allocation.hosts)})
    return Looked(heard, judged(system, heard, topology, keep=keep))


def reach(system: System, allocation: Allocation, heard: Heard, level: str) -> Heard:
    """Let the hosts that gave snapshots ping each other; the same snapshots, with what came of it in them."""
    from fablint.cluster import everywhere
    from fablint.preflight import Host, offsets, table
    from fablint.snapshot.pinging import LIMITS_S, pinger, with_reach

    rows = table([Host(one) for one in heard.snapshots.values()])
    if len(rows) < 2:
        return heard
    argv, text = pinger(rows, offsets(len(rows), level), level)
    some = replace(allocation, hosts=tuple(row["host"] for row in rows))
    return with_reach(heard, everywhere(system, some, argv, text, LIMITS_S[level] + discovery.ANSWER_S))


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
    answers = everywhere(system, here, argv, text, LIMITS_S["fabric"] + discovery.ANSWER_S)
    document = heard(answers).documents.get(here.hosts[0])
    return {FABRIC: document} if document else {}


def look_below(system: System, sysroot: Path, level: str, topology: Topology | None = None) -> Looked:
    """Judge the tree of files below a folder as if it were this machine's. Raises UsageError where it is none."""
    from fablint.cluster import everywhere
    from fablint.snapshot import command_to_collect, heard

    if not sysroot.is_dir():
        raise UsageError(f"{sysroot}: is no directory", "give the folder that stands for /, with sys and proc in it")
    argv, text = command_to_collect(level, sysroot.absolute())
    here = Allocation((os.uname().nodename,), "this machine")
    name = _named_below(sysroot)
    said = heard(replace(one, host=name or one.host) for one in everywhere(system, here, argv, text))
    return Looked(said, judged(system, said, topology, keep=False))


def _named_below(sysroot: Path) -> str:
    """The name of the host that a tree of files was taken from; empty where it has none."""
    try:
        text = (sysroot / "etc" / "hostname").read_text(errors="replace")
    except OSError:
        return ""
    return plain(text.partition("\n")[0])


def look_again(system: System, files: Iterable[Path], topology: Topology | None = None) -> Looked:
    """Judge snapshots that were saved. Raises UsageError where a file holds none."""
    from fablint.snapshot import Heard, load_snapshots, snapshot_of

    documents = {_name(document): document for path in files for document in load_snapshots(path)}
    said = Heard(documents, {host: snapshot_of(document) for host, document in documents.items() if host != FABRIC})
    return Looked(said, judged(system, said, topology, keep=False))


def judged(system: System, heard: Heard, topology: Topology | None = None, *, keep: bool = True) -> Fitness:
    """All checks. With `keep` counters are compared with those of the last time, and kept for the next."""
    from fablint.preflight import Fleet, Host, judge
    from fablint.snapshot import snapshot_of

    folder = system.home_folder("preflight") if keep else None
    hosts = [Host(one, _before(folder, one)) for one in heard.snapshots.values()]
    fabric = snapshot_of(heard.documents[FABRIC]) if FABRIC in heard.documents else None
    earlier = _stored(_file(folder, FABRIC)) if folder and fabric else None
    fitness = judge(Fleet(hosts, heard.silent, topology, fabric, snapshot_of(earlier) if earlier else None))
    if folder:
        _keep(folder, heard.snapshots.values())
    if folder and fabric:
        _store(_file(folder, FABRIC), heard.documents[FABRIC])
    return fitness


def _name(document: Mapping[str, Any]) -> str:
    """Whose snapshot it is."""
    return FABRIC if document.get("level") == "fabric" else str(document.get("host"))


# ------------------------------------------------------------------------------------------------ counters kept


def _before(folder: Path | None, snapshot: Snapshot) -> Mapping[str, Any] | None:
    """The reading of the last time, if the host was not booted since."""
    if folder is None:
        return None
    found = _stored(_file(folder, snapshot.host))
    if found is None or found.get("identity") != _identity(snapshot):
        return None
    age = snapshot.time - found["time"] if isinstance(found.get("time"), int | float) else 0.0
    return found if 0 < age < _LONGEST_S else None


def _keep(folder: Path, snapshots: Iterable[Snapshot]) -> None:
    """Keep the last reading of all counters; a full disk costs the comparison, not the result."""
    from fablint.preflight import counters_of

    for snapshot in snapshots:
        moment = snapshot.time + snapshot.window_s
        kept = {"time": moment, "identity": _identity(snapshot), "counters": counters_of(snapshot)}
        _store(_file(folder, snapshot.host), kept)


def _identity(snapshot: Snapshot) -> str:
    """The same machine since the same boot: hosts of two clusters may share a name."""
    nics = [snapshot.read(f"/sys/class/net/{name}/address") or "" for name in snapshot.names("/sys/class/net")]
    return " ".join([snapshot.read(_BOOT) or "", *sorted(nics)])


def _store(path: Path, kept: Mapping[str, Any]) -> None:
    with suppress(OSError):
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(gzip.compress(json.dumps(kept).encode(), 1))
        part.replace(path)


def _stored(path: Path) -> Mapping[str, Any] | None:
    try:
        found = json.loads(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _file(folder: Path, host: str) -> Path:
    """Names of hosts are data: nothing but letters that mean nothing to a file system."""
    return folder / f"{re.sub('[^A-Za-z0-9_-]', '_', host)[:100]}.gz"
