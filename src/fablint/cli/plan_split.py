"""`fablint plan --split`: a plan, a hostfile and a job script for each of several allocations."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fablint.cli.session import Session
from fablint.errors import UsageError

if TYPE_CHECKING:
    from fablint.plan.check.plan_input import PlanInput
    from fablint.plan.check.stages import Stage
    from fablint.plan.schedule.split_hosts import SplitAllocation


@dataclass(frozen=True)
class SplitRequest:
    """The options."""

    count: int
    overlap: int
    output: Path | None


def plan_split(
    session: Session, request: PlanInput, split: SplitRequest, written: Callable[[Stage, Path], Stage]
) -> None:
    """Print the allocations that measure the hosts of a request in parts, and write their files.

    Parameters
    ----------
    session
        The call.
    request
        All hosts, and what is measured.
    split
        Number and overlap of the allocations.
    written
        Function that writes a stage into a plan file and returns it with the names of its rounds files.
    """
    from fablint.plan.schedule.split_hosts import split_hosts

    if request.full:
        raise UsageError("--full and --split contradict each other", "pairs of hosts in two allocations have no job")
    ranks = {slot.host: slot.ranks for slot in request.slots}
    if not ranks:
        raise UsageError("--split requires hosts", "name them with -w, or give --topology")
    allocations = split_hosts(list(ranks), request.topology, split.count, split.overlap, request.seed)
    lines, facts = [], []
    for number, allocation in enumerate(allocations, 1):
        stage = _stage(request, allocation, ranks)
        files: dict[str, str] = {}
        if split.output is not None:
            plan_file = split.output.with_name(f"{split.output.stem}-{number}{split.output.suffix}")
            stage = written(stage, plan_file)
            files = _written_files(session, stage, allocation, plan_file)
        rounds = max(row.rounds for row in stage.plan.rows)
        lines.append(
            f"{number:>3}  {len(allocation.hosts):>6} hosts, {len(allocation.guests)} of allocation"
            f" {number % split.count + 1}  {rounds:>4} rounds {stage.plan.predicted_s:>7.1f} s  {files.get('plan', '')}"
        )
        facts.append(
            {
                "hosts": list(allocation.hosts),
                "guests": list(allocation.guests),
                "ranks": stage.plan.ranks,
                "rounds": rounds,
                "predicted_s": stage.plan.predicted_s,
                **files,
            }
        )
    if split.output is not None:
        runs = " ".join(str(Path(str(entry["plan"])).with_suffix(".run")) for entry in facts)
        lines += [
            "",
            "Measure each in a job of its own:",
            *(f"  {entry.get('submission', entry['command'])}" for entry in facts),
        ]
        lines += ["Then join them:", f"  fablint analyse {runs}"]
    session.result("\n".join(lines), {"allocations": facts})


def _stage(request: PlanInput, allocation: SplitAllocation, ranks: dict[str, int]) -> Stage:
    """Return what an allocation measures, with rounds in which the hosts of two allocations meet each other."""
    from fablint.model import Slots
    from fablint.plan.check.stages import FIRST, FOLDER, first_stage

    slots = tuple(Slots(host, ranks[host]) for host in allocation.hosts)
    request = replace(request, slots=slots, ranks=sum(slot.ranks for slot in slots))
    placement = request.placement()
    stage = first_stage(request, placement)
    if not stage.rounds:
        raise UsageError(f"{len(slots)} hosts have no time for rounds", "give a longer --budget, or a smaller --split")
    name = f"{FOLDER}/{FIRST}.txt"
    if name not in stage.rounds:
        return stage  # all pairs
    from fablint.plan.schedule.split_hosts import with_ties

    return replace(stage, rounds={name: with_ties(stage.rounds[name], placement, allocation.ties)})


def _written_files(session: Session, stage: Stage, allocation: SplitAllocation, plan_file: Path) -> dict[str, Any]:
    """Write the hostfile beside a plan, and the script of a job where there is a scheduler; return their names."""
    from fablint import cluster
    from fablint.cli.written_files import write_file

    hostfile, run = plan_file.with_suffix(".hosts"), plan_file.with_suffix(".run")
    write_file(hostfile, "".join(f"{slot.host} slots={slot.ranks}\n" for slot in stage.plan.slots))
    words = ("measure", "--hostfile", str(hostfile), str(plan_file), "-o", str(run))
    files = {"plan": str(plan_file), "hostfile": str(hostfile), "command": " ".join(("fablint", *words))}
    try:
        scheduler = cluster.find_scheduler(session.machine())
    except UsageError:
        return files  # of a machine without one: its hosts are measured by the command
    job = cluster.JobRequest(
        (sys.executable, "-P", "-m", "fablint.cli", *words),
        Path.cwd(),
        run=run,
        hosts=allocation.hosts,
        ranks=stage.plan.most_ranks_per_host,
    )
    script = plan_file.with_suffix(".job")
    write_file(script, scheduler.script(job))
    return {**files, "job": str(script), "submission": " ".join(scheduler.submission(script))}
