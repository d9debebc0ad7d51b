"""Facts of several runs and rows as those of one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.model.arrays import Codes
from fablint.model.facts.row_attributes import ResultFacts
from fablint.model.facts.run_attributes import CountersOfHosts, PortCounters, RunFacts, RunState
from fablint.store.tcp_segments import added_segments

OF_RANKS = ("rank_number", "rank_cores", "rank_numa", "rank_nic", "rank_gpu", "rank_gpu_model", "rank_gpu_pci")


def joined_facts(runs: Sequence[Run], ranks: Sequence[Codes], joined_ranks: Sequence[tuple[str, int]]) -> RunFacts:
    """Return the facts of all runs, without rows; the run that began first says the start.

    Parameters
    ----------
    runs
        The runs.
    ranks
        The joined rank of each rank of each run.
    joined_ranks
        Host, and number on its host, of each joined rank.
    """
    _refuse_different_programs(runs)
    facts = [run.facts for run in runs]
    earliest = min((one.launch for one in facts), key=lambda launch: launch.started_epoch_s or math.inf)
    hosts = list(dict.fromkeys(host for host, _ in joined_ranks))
    place = {host: index for index, host in enumerate(hosts)}
    launch = replace(
        earliest,
        machines=_machines(facts, len(hosts)),
        allocations=[[one.hosts[index] for index in dict.fromkeys(one.rank_host)] for one in facts],
        shared_files=all(one.launch.shared_files for one in facts),
    )
    joined = replace(
        facts[0],
        state=joined_state([one.state for one in facts]),
        ranks=len(joined_ranks),
        hosts=hosts,
        rank_host=[place[host] for host, _ in joined_ranks],
        rank_pid=(),
        nics={host: nics for one in reversed(facts) for host, nics in one.nics.items()},
        counters=_joined_counters([one.counters for one in facts]),
        instrument=replace(facts[0].instrument, oversubscribed=any(one.instrument.oversubscribed for one in facts)),
        lost=[
            replace(
                entry,
                rank=None if entry.rank is None else int(of_run[entry.rank]),
                partner=None if entry.partner is None else int(of_run[entry.partner]),
            )
            for of_facts, of_run in zip(facts, ranks, strict=True)
            for entry in of_facts.lost
        ],
        launch=launch,
    )
    of_ranks: Mapping[str, Any] = _of_ranks(facts, ranks, len(joined_ranks))
    return replace(joined, **of_ranks)


def _refuse_different_programs(runs: Sequence[Run]) -> None:
    """Raise UsageError unless all runs were measured with the same MPI library, or all by other means."""
    kinds = [_program(run.facts) for run in runs]
    for run, kind in zip(runs, kinds, strict=True):
        if kind != kinds[0]:
            raise UsageError(
                f"{run.path}: measured with {kind}, and {runs[0].path} with {kinds[0]}",
                "join runs that were measured with the same program",
            )


def _program(facts: RunFacts) -> str:
    if facts.imported is not None:
        return facts.imported.tool
    if facts.simulated is not None:
        return "fablint simulate"
    return facts.launch.mpi.library if facts.launch.mpi is not None else "no MPI"


def joined_state(states: Sequence[RunState]) -> RunState:
    """Return the state of several measurements together: complete if all are."""
    return "measuring" if "measuring" in states else "interrupted" if "interrupted" in states else "complete"


def _machines(facts: Sequence[RunFacts], hosts: int) -> int | None:
    """Return the number of machines; None if it is not known, or if each host is one."""
    fewer = [one.launch.machines for one in facts if (one.launch.machines or len(one.hosts)) < len(one.hosts)]
    numbers = [machines for machines in fewer if machines is not None]
    return min(hosts - 1, max(numbers)) if numbers else None


def _of_ranks(facts: Sequence[RunFacts], ranks: Sequence[Codes], count: int) -> Mapping[str, list[Any]]:
    """Return the lists with a value for each rank, none where a run lacks them."""
    joined: dict[str, list[Any]] = {}
    for name in OF_RANKS:
        lists = [getattr(one, name) for one in facts]
        values: list[Any] = [None] * count
        for of_run, given in zip(reversed(ranks), reversed(lists), strict=True):
            for rank, value in zip(of_run.tolist(), given, strict=False):
                values[rank] = value
        joined[name] = [] if any(value is None for value in values) else values
    return joined


def _joined_counters(counters: Sequence[PortCounters]) -> PortCounters:
    """Return the first counters of each NIC, and these plus what each run counted; none if a run did not count."""
    if any(one.before is None or one.after is None for one in counters):
        return PortCounters()
    before: dict[str, dict[str, dict[str, int]]] = {}
    after: dict[str, dict[str, dict[str, int]]] = {}
    for counted in counters:
        assert counted.before is not None
        assert counted.after is not None
        for host, nics in counted.before.items():
            for nic, values in nics.items():
                for name, value in values.items():
                    end = _count(counted.after, host, nic, name, value)
                    begin = before.setdefault(host, {}).setdefault(nic, {}).setdefault(name, value)
                    total = after.setdefault(host, {}).setdefault(nic, {})
                    total[name] = total.get(name, begin) + end - value
    return PortCounters(before, after)


def _count(counters: CountersOfHosts, host: str, nic: str, name: str, otherwise: int) -> int:
    return counters.get(host, {}).get(nic, {}).get(name, otherwise)


def joined_results(rows: Sequence[Row], ranks: Sequence[Codes], count: int) -> ResultFacts:
    """Return what the measurements of several rows took, and what went wrong in them."""
    results = [row.facts.result for row in rows]
    waits: list[float | None] = [None] * count
    for result, of_run in zip(results, ranks, strict=True):
        for rank, wait in zip(of_run.tolist(), result.cpu_wait_s, strict=False):
            if wait is not None:
                waits[rank] = (waits[rank] or 0.0) + wait
    segments = [result.tcp for result in results if result.tcp]
    return ResultFacts(
        measuring_s=sum(result.measuring_s or 0.0 for result in results),
        wall_s=sum(result.wall_s or 0.0 for result in results),
        cpu_wait_s=waits if any(wait is not None for wait in waits) else (),
        corrupt=[
            replace(entry, src=int(of_run[entry.src]) if entry.src >= 0 else entry.src, dst=int(of_run[entry.dst]))
            for result, of_run in zip(results, ranks, strict=True)
            for entry in result.corrupt
        ],
        counters=_joined_counters([result.counters for result in results]),
        tcp=added_segments(segments) if segments else None,
    )
