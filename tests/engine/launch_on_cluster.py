"""Runs on a node of a virtual cluster: launches a row on given hosts, prints how that ended as one JSON line.

    launch_on_cluster.py LAUNCHER HOST:RANKS,... OUTPUT ROW [ENGINE OPTION ...]

LAUNCHER is what the program is called (`srun`, `mpiexec`), or `all` for all there are, srun first; `without-mpi-ssh`,
`without-mpi-srun`: that program and an engine without MPI.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fablint.measure import (
    EngineOptions,
    build_engine,
    failure_text,
    find_launchers,
    find_rendezvous,
    name_deaths,
    name_host,
    run_on_first,
)
from fablint.measure.progress import NoProgress
from fablint.model import Slots
from fablint.model.facts.run_attributes import RunFacts
from fablint.store import read_run
from fablint.system import System
from fablint.workflows.benchmark import read_plan

WITHOUT_MPI = "without-mpi-"
MOST_STALLS = 2  # after the first one


@dataclass
class Notes(NoProgress):
    """Keeps what the user would read."""

    texts: list[str]

    def note(self, text: str, event: str = "note", **values: object) -> None:
        self.texts.append(text)


def main(launcher: str, places: str, output: str, row: str, *options: str) -> None:
    system, notes, path = System(), Notes([]), Path(output)
    without_mpi = launcher.startswith(WITHOUT_MPI)
    engine = build_engine(system, notes, with_mpi=not without_mpi)
    if without_mpi:
        launcher = launcher.removeprefix(WITHOUT_MPI)
        known = find_rendezvous(system, launcher).launchers[:1]
    else:
        known = find_launchers(system, engine.mpicxx, engine.libraries).launchers
    launchers = [one for one in reversed(known) if launcher in ("all", one.path.name.partition(".")[0])]
    slots = tuple(Slots(host, int(ranks)) for host, _, ranks in (place.partition(":") for place in places.split(",")))
    plan = replace(read_plan(row, sum(slot.ranks for slot in slots), "row"), slots=slots)
    for attempt in range(5):
        outcome = run_on_first(system, notes, launchers, engine, plan, path, options=EngineOptions(options))
        # Slurm's PMIx and Debian's Open MPI crash or stall at the start now and then, with any program. A stall takes a
        # minute.
        stalled = outcome.error.startswith("the ranks did not start")
        if launcher != "srun" or (path / "zarr.json").exists() or (stalled and attempt >= MOST_STALLS):
            break
    run = read_run(path) if (path / "zarr.json").exists() else None
    facts = run.facts if run else RunFacts()
    named = [name_host(one, facts) for one in outcome.failed] + (name_deaths(outcome.deaths, facts) if run else [])
    said = {
        "launchers": [one.path.name for one in known],
        "status": outcome.status,
        "error": failure_text(named, run.rank_host) if run and outcome.failed else outcome.error,
        "hosts": run.rank_host if run else [],
        "state": run.state if run else None,
        "lost": [one.host for one in named],
        "reported": [asdict(name_host(one, facts)) for one in outcome.reported],
        "stopped_by": outcome.stopped_by,
        "apart": outcome.is_disconnected,
        "notes": notes.texts,
    }
    print(json.dumps(said))


main(*sys.argv[1:])
