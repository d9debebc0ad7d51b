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

import numpy as np

from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.store.checksums import ROOT, remove_checksums, write_checksums
from fablint.store.layout import ARRAYS
from fablint.store.metadata import group_node, read_root, replace_node
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
    rows, root = {row.name: row for row in run.rows}, read_root(path)
    attributes = root["attributes"]
    # The clock of the host that began the part may be behind that of the host that began the run.
    shift_s = max(0.0, float(more.attributes["started_epoch_s"]) - float(run.attributes["started_epoch_s"]))
    lines = dict(zip(more.attributes["rows"], more.attributes.get("plan", []), strict=False))
    for row in more.rows:
        moved = _renumbered(row, places, run.ranks, shift_s)
        remove_checksums(path, row.name)
        if row.name in rows:
            _merge(path / row.name, rows[row.name], moved)
            continue
        line = lines.get(row.name, str(row.attributes["options"]))
        if planned and row.name in planned:
            line, cells = planned[row.name]
            moved = replace(moved, attributes={**moved.attributes, "cells_per_round": list(cells)})
        write_row(path / row.name, moved, run.ranks)
        if row.name not in attributes["rows"]:
            attributes["rows"].append(row.name)
            attributes.get("plan", []).append(line)
    remove_checksums(path, ROOT)
    replace_node(path, root)
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
    attributes = dict(row.attributes)
    if waits := attributes.get("cpu_wait_s"):
        of_run: list[float | None] = [None] * ranks
        for place, wait in zip(places, waits, strict=False):
            of_run[place] = wait
        attributes["cpu_wait_s"] = of_run
    return Row(row.name, attributes, arrays)


def _merge(folder: Path, row: Row, more: Row) -> None:
    """Write the cells of `more` that `row` lacks into its files; `count` comes last: a cell without a count is
    missing.
    """
    if row.layout != "list" or row.attributes["rounds"] != more.attributes["rounds"] or row.sizes != more.sizes:
        raise UsageError(f"row {row.name} has other rounds or sizes than before", "measure it into a new run")
    fresh = (more.arrays["count"] > 0).all(axis=-1) & ~(np.asarray(row.arrays["count"][:]) > 0).all(axis=-1)
    names = [name for name in row.arrays if "src" in (ARRAYS[name].list or ()) and name in more.arrays]
    for name in sorted(names, key="count".__eq__):
        values = np.asarray(row.arrays[name][:])
        values[fresh] = more.arrays[name][fresh]
        write_array(folder / name, row, values)
    attributes = {**row.attributes, "state": _state(row, more)}
    for clock in ("measuring_s", "wall_s"):
        attributes[clock] = float(row.attributes.get(clock, 0.0)) + float(more.attributes.get(clock, 0.0))
    attributes |= _added_waits(row, more)
    counted = [each.attributes["tcp"] for each in (row, more) if each.attributes.get("tcp")]
    if counted:
        attributes["tcp"] = added_segments(counted)
    replace_node(folder, group_node(attributes))


def _added_waits(row: Row, more: Row) -> dict[str, list[float | None]]:
    """Attribute `cpu_wait_s` of both launches together; the wait of a rank of one launch is that of this launch."""
    waits = [each.attributes["cpu_wait_s"] for each in (row, more) if each.attributes.get("cpu_wait_s")]
    added = [[wait for wait in of_rank if wait is not None] for of_rank in zip(*waits, strict=False)]
    return {"cpu_wait_s": [sum(known) if known else None for known in added]} if added else {}


def _state(row: Row, more: Row) -> str:
    """State of the merged row: complete if the later launch completed it; failed hosts are recorded in the run."""
    states: Sequence[str] = (str(row.attributes["state"]), str(more.attributes["state"]))
    return "complete" if "complete" in states else "interrupted"
