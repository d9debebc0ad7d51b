"""Copies cells that a launch with fewer hosts measured into the run that they were measured for.

A run keeps its ranks. When a host fails, the launch without that host numbers its ranks anew and writes a separate run;
this module copies its cells to the same rows, the same rounds and the ranks of the same hosts.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.store.checksums import ROOT, remove_checksums, write_checksums
from fablint.store.facts.stored_facts import write_row_facts
from fablint.store.layout import ARRAYS
from fablint.store.metadata import change_attributes
from fablint.store.reading import read_run
from fablint.store.tcp_segments import added_segments
from fablint.store.writing import write_array, write_row

_RENUMBERED = "dst"  # the array that holds ranks


def absorb(path: Path, part: Path, planned: Mapping[str, tuple[str, Sequence[int]]] | None = None) -> None:
    """Move the cells of the run `part` into the run at `path`, and remove `part`.

    A cell that both have is kept as it is at `path`. Rows that only `part` has are added. An interrupted call can be
    repeated: `part` is removed last.

    Parameters
    ----------
    path
        The run.
    part
        A run of some of its hosts.
    planned
        Plan line and cells of each round of added rows, by name, where the part measured only some of them.

    Raises
    ------
    UsageError
        A host of `part` is not in the run, or a row is not a list of rounds or has other rounds.
    BrokenRunError
        Metadata is damaged.
    """
    run, more = read_run(path), read_run(part)
    places = _places(run, more)
    rows, names, plan = {row.name: row for row in run.rows}, list(run.facts.rows), list(run.facts.plan)
    # The clock of the host that began the part may be behind that of the host that began the run.
    shift_s = max(0.0, (more.facts.launch.started_epoch_s or 0.0) - (run.facts.launch.started_epoch_s or 0.0))
    lines = dict(zip(more.facts.rows, more.facts.plan, strict=False))
    for row in more.rows:
        moved = _renumbered(row, places, run.ranks, shift_s)
        remove_checksums(path, row.name)
        if row.name in rows:
            _merge(path / row.name, rows[row.name], moved, run.hosts)
            continue
        line = lines.get(row.name, row.facts.options)
        if planned and row.name in planned:
            line, cells = planned[row.name]
            schedule = replace(moved.facts.schedule, cells_per_round=list(cells))
            moved = replace(moved, facts=replace(moved.facts, schedule=schedule))
        write_row(path / row.name, moved, run.facts)
        if row.name not in names:
            names.append(row.name)
            plan += [line] if plan else []
    remove_checksums(path, ROOT)
    change_attributes(path, rows=names, plan=plan)
    write_checksums(path, [row.name for row in more.rows])
    shutil.rmtree(part)


def _places(run: Run, part: Run) -> np.ndarray:
    """Rank in `run` of every rank of `part`: the k-th rank of a host is the k-th rank of that host in the run."""
    ranks: Mapping[str, list[int]] = defaultdict(list)
    for rank, host in enumerate(run.rank_host):
        ranks[host].append(rank)
    free = {host: iter(numbers) for host, numbers in ranks.items()}
    places = [next(free[host], None) if host in free else None for host in part.rank_host]
    stranger = next((host for host, place in zip(part.rank_host, places, strict=True) if place is None), None)
    if stranger is not None:
        raise UsageError(f"{part.path}: {stranger} has more ranks than in {run.path}", "it belongs to another run")
    return np.array(places, dtype=np.int32)


def _renumbered(row: Row, places: np.ndarray, ranks: int, shift_s: float) -> Row:
    """The row with the ranks of a run of `ranks` ranks; ranks that are not in `places` have no measurement."""
    if row.layout != "list":
        raise UsageError(f"row {row.name} is not a list of rounds", "only rounds can be moved to another run")
    arrays = {}
    for name, stored in row.arrays.items():
        kind, values = ARRAYS[name], np.asarray(stored[:])
        if "src" not in (kind.list or ()):
            arrays[name] = values
            continue
        if name == _RENUMBERED:
            values = np.where(values < 0, values, places[np.maximum(values, 0)]).astype(values.dtype)
        elif name == "started":
            values = values + shift_s
        whole = np.full((ranks, *values.shape[1:]), kind.fill, dtype=values.dtype)
        whole[places] = values
        arrays[name] = whole
    waits = row.facts.result.cpu_wait_s
    if waits:
        of_run: list[float | None] = [None] * ranks
        for place, wait in zip(places, waits, strict=False):
            of_run[place] = wait
        waits = of_run
    return Row(row.name, replace(row.facts, result=replace(row.facts.result, cpu_wait_s=waits)), arrays)


def _merge(folder: Path, row: Row, more: Row, hosts: Sequence[str]) -> None:
    """Write the cells of `more` that `row` lacks into its files; `count` comes last: a cell without a count is
    missing.
    """
    if row.layout != "list" or row.facts.schedule.rounds != more.facts.schedule.rounds or row.sizes != more.sizes:
        raise UsageError(f"row {row.name} has other rounds or sizes than before", "measure it into a new run")
    fresh = (more.arrays["count"] > 0).all(axis=-1) & ~(np.asarray(row.arrays["count"][:]) > 0).all(axis=-1)
    names = [name for name in row.arrays if "src" in (ARRAYS[name].list or ()) and name in more.arrays]
    for name in sorted(names, key="count".__eq__):
        values = np.asarray(row.arrays[name][:])
        values[fresh] = more.arrays[name][fresh]
        write_array(folder / name, row, values)
    first, second = row.facts.result, more.facts.result
    counted = [each.tcp for each in (first, second) if each.tcp]
    result = replace(
        first,
        measuring_s=(first.measuring_s or 0.0) + (second.measuring_s or 0.0),
        wall_s=(first.wall_s or 0.0) + (second.wall_s or 0.0),
        cpu_wait_s=_added_waits([each.cpu_wait_s for each in (first, second) if each.cpu_wait_s]) or first.cpu_wait_s,
        tcp=added_segments(counted) if counted else None,
    )
    write_row_facts(folder, replace(row.facts, state=_state(row, more), result=result), hosts)


def _added_waits(waits: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Waits of both launches together; the wait of a rank of one launch is that of this launch."""
    added = [[wait for wait in of_rank if wait is not None] for of_rank in zip(*waits, strict=False)]
    return [sum(seconds) if seconds else None for seconds in added]


def _state(row: Row, more: Row) -> Literal["complete", "interrupted"]:
    """State of the merged row: complete if the later launch completed it; failed hosts are recorded in the run."""
    return "complete" if "complete" in (row.facts.state, more.facts.state) else "interrupted"
