"""The stages `cluster`, `snapshot` and `preflight` together: are these hosts fit to be measured?"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fablint import discovery
from fablint.errors import UsageError
from fablint.fitness import Fitness
from fablint.model import Allocation, Topology
from fablint.system import System

if TYPE_CHECKING:
    from fablint.snapshot import Heard, Snapshot

_LONGEST_S = 7 * 86400.0  # older readings of counters are not compared with
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
) -> Looked:
    """Ask every host once, and judge what they say. Hosts that do not answer cost the time of one, once."""
    heard = discovery.ask_hosts(system, allocation, level)
    return Looked(heard, judged(system, heard, topology, keep=keep))


def look_below(system: System, sysroot: Path, level: str, topology: Topology | None = None) -> Looked:
    """Judge the tree of files below a folder as if it were this machine's. Raises UsageError where it is none."""
    from fablint.cluster import everywhere
    from fablint.snapshot import collector, heard

    if not sysroot.is_dir():
        raise UsageError(f"{sysroot}: is no directory", "give the folder that stands for /, with sys and proc in it")
    argv, text = collector(level, sysroot.absolute())
    here = Allocation((os.uname().nodename,), "this machine")
    said = heard(everywhere(system, here, argv, text))
    return Looked(said, judged(system, said, topology, keep=False))


def look_again(system: System, files: Iterable[Path], topology: Topology | None = None) -> Looked:
    """Judge snapshots that were saved. Raises UsageError where a file holds none."""
    from fablint.snapshot import Heard, load_snapshots, snapshot_of

    documents = {str(document.get("host")): document for path in files for document in load_snapshots(path)}
    said = Heard(documents, {host: snapshot_of(document) for host, document in documents.items()})
    return Looked(said, judged(system, said, topology, keep=False))


def judged(system: System, heard: Heard, topology: Topology | None = None, *, keep: bool = True) -> Fitness:
    """All checks. With `keep` counters are compared with those of the last time, and kept for the next."""
    from fablint.preflight import Fleet, Host, judge

    folder = system.home_folder("preflight") if keep else None
    hosts = [Host(one, _before(folder, one)) for one in heard.snapshots.values()]
    fitness = judge(Fleet(hosts, heard.silent, topology))
    if folder:
        _keep(folder, heard.snapshots.values())
    return fitness


# ------------------------------------------------------------------------------------------------ counters kept


def _before(folder: Path | None, snapshot: Snapshot) -> Mapping[str, Any] | None:
    """The reading of the last time, if the host was not booted since."""
    if folder is None:
        return None
    try:
        found = json.loads(gzip.decompress(_file(folder, snapshot.host).read_bytes()))
    except (OSError, EOFError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("boot") != snapshot.read(_BOOT):
        return None
    age = snapshot.time - found["time"] if isinstance(found.get("time"), int | float) else 0.0
    return found if 0 < age < _LONGEST_S else None


def _keep(folder: Path, snapshots: Iterable[Snapshot]) -> None:
    """Keep the last reading of all counters; a full disk costs the comparison, not the result."""
    from fablint.preflight import counters_of

    for snapshot in snapshots:
        moment = snapshot.time + snapshot.window_s
        kept = {"time": moment, "boot": snapshot.read(_BOOT), "counters": counters_of(snapshot)}
        path = _file(folder, snapshot.host)
        with suppress(OSError):
            part = path.with_suffix(f".{os.getpid()}")
            part.write_bytes(gzip.compress(json.dumps(kept).encode(), 1))
            part.replace(path)


def _file(folder: Path, host: str) -> Path:
    """Names of hosts are data: nothing but letters that mean nothing to a file system."""
    return folder / f"{re.sub('[^A-Za-z0-9_-]', '_', host)[:100]}.gz"


def fitness_facts(level: str, fitness: Fitness) -> dict[str, Any]:
    """The result as JSON."""
    from fablint.fitness import findings

    return {
        "format": 1,
        "exit_code": fitness.exit_code,
        "level": level,
        "hosts": list(fitness.hosts),
        "silent": dict(fitness.silent),
        "unfit": dict(fitness.unfit),
        "findings": [one.model_dump(mode="json") for one in findings(fitness)],
        "results": [{**one._asdict(), "outcome": str(one.outcome)} for one in fitness.results],
    }
