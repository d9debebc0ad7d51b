"""Imported files -> `model.Run`, in the layout of docs/reference/run-format.md.

Bodies of several files with the same measurement become one row: pairs of each file are added, pairs that occur in
several files become repeats.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.model.arrays import Ints
from fablint.model.facts.json_objects import facts_of
from fablint.model.facts.row_attributes import RowFacts
from fablint.model.facts.run_attributes import ExcludedLine, Import, LaunchFacts, RunFacts
from fablint.model.host_name import unified
from fablint.store.importing.cells import EVERYBODY, Body, Cells, Imported, RankName, needed, times_before
from fablint.version import __version__

SMALL = 1 << 22  # cells of an array that is allocated even if sparse: 16 MiB a statistic
SPARSE = 8  # a larger array with more than this many cells for each measured cell becomes a list of matchings
LARGEST = 1 << 30  # cells of such a list: 4 GiB a statistic


def run_of(names: Sequence[str], files: Sequence[Imported], command: Sequence[str] = ()) -> Run:
    """Run that the files form together; `names` are the names of the files.

    Raises
    ------
    UsageError
        The files are of different tools, or hold no figures.
    """
    _refuse_different(names, files)
    files = _of_one_spelling(files)
    rank_names = _in_order(dict.fromkeys(rank_name for imported in files for rank_name in imported.rank_names))
    index = {rank_name: rank for rank, rank_name in enumerate(rank_names)}
    groups: dict[tuple[Any, ...], list[Body]] = {}
    for imported in files:
        place = np.array([index[rank_name] for rank_name in imported.rank_names], np.int64)
        for body in imported.bodies:
            if len(body.cells) and (body.damage or body.cells.measured.any()):
                groups.setdefault(body.row_key, []).append(_placed(body, place))
    if not groups:
        raise UsageError(f"{names[0]}: it has no usable figure", _first_reason(files[0]))
    hosts = {name: code for code, name in enumerate(dict.fromkeys(rank_name.host for rank_name in rank_names))}
    rank_host = np.array([hosts[rank_name.host] for rank_name in rank_names], np.int64)
    rows, used_names = [], set[str]()
    for bodies in groups.values():
        name = _free_name(bodies[0].name, used_names)
        rows.append(_row(name, bodies, rank_host))
        used_names.add(name)
    origin = _origin(names, files)
    is_whole = not origin.missing and all(row.facts.state == "complete" for row in rows)
    facts = RunFacts(
        state="complete" if is_whole else "interrupted",
        rows=[row.name for row in rows],
        ranks=len(rank_names),
        hosts=list(hosts),
        rank_host=rank_host.tolist(),
        rank_gpu=[rank_name.gpu for rank_name in rank_names] if any(rank_name.gpu for rank_name in rank_names) else (),
        rank_number=_numbers_of_hosts(rank_names),
        imported=origin,
        launch=LaunchFacts(
            creator=f"fablint {__version__}",
            command=["fablint", "import", *(command or names)],
            allocations=[list(each.allocation) for each in files if each.allocation],
        ),
    )
    return Run(None, facts, tuple(rows), tuple(origin.missing))


def _refuse_different(names: Sequence[str], files: Sequence[Imported]) -> None:
    for name, imported in zip(names, files, strict=True):
        if imported.tool.split()[0] != files[0].tool.split()[0]:
            raise UsageError(
                f"{names[0]} is output of {files[0].tool} and {name} of {imported.tool}", "import them separately"
            )


def _of_one_spelling(files: Sequence[Imported]) -> list[Imported]:
    """The files with one name for each host: `n1` and `n1.site.org` are one where no other `n1.` is."""
    spelled = unified(rank.host for imported in files for rank in imported.rank_names)
    return [
        replace(imported, rank_names=tuple(replace(rank, host=spelled[rank.host]) for rank in imported.rank_names))
        for imported in files
    ]


def _first_reason(imported: Imported) -> str:
    """Reason of the first line that was skipped because of its contents."""
    reasons = [line for line in imported.left_out if not line.is_foreign] or list(imported.left_out)
    if not reasons:
        return imported.missing or "it has no measured pair"
    line, text, why = reasons[0].line, reasons[0].text[:60], reasons[0].why
    return f"{f'line {line}' if line else 'the file'}, '{text}': {why}"


def _origin(names: Sequence[str], files: Sequence[Imported]) -> Import:
    named = [(Path(name).name, imported) for name, imported in zip(names, files, strict=True)]
    return Import(
        tool=", ".join(dict.fromkeys(imported.tool for imported in files)),
        files=list(names),
        lines_left_out=[
            ExcludedLine(name, line.line, line.text[:200], line.why)
            for name, imported in zip(names, files, strict=True)
            for line in sorted(imported.left_out, key=lambda line: line.is_foreign)
        ],
        missing=[f"{name}: {imported.missing}" for name, imported in named if imported.missing],
        not_judged=list(dict.fromkeys(imported.not_judged for imported in files if imported.not_judged)),
        remedies=[f"{name}: {imported.remedy}" for name, imported in named if imported.not_judged],
        launch="pair" if any(imported.launch == "pair" for imported in files) else "all",
    )


def _free_name(name: str, used_names: set[str]) -> str:
    return next(
        name for name in itertools.chain([name], (f"{name}-{n}" for n in itertools.count(2))) if name not in used_names
    )


def _placed(body: Body, place: Ints) -> Body:
    """The body with the ranks of the run instead of those of the file."""
    cells = body.cells
    dst = np.where(cells.dst == EVERYBODY, EVERYBODY, place[np.maximum(cells.dst, 0)])
    moved = replace(cells, src=place[cells.src], dst=dst)
    damage = tuple(replace(each, src=_moved(place, each.src), dst=_moved(place, each.dst)) for each in body.damage)
    return replace(body, cells=moved, damage=damage)


def _moved(place: Ints, rank: int) -> int:
    return EVERYBODY if rank == EVERYBODY else int(place[rank])


def _in_order(rank_names: Iterable[RankName]) -> list[RankName]:
    """Return ranks by their numbers, those of each host if hosts number theirs; as in the files if one has none.

    Findings name a rank by its number in the files: that is its number in the run, if they number all ranks from 0.
    """
    names = list(rank_names)
    if not all(name.number.isdecimal() for name in names):
        return names
    if len({int(name.number) for name in names}) == len(names):
        return sorted(names, key=lambda name: int(name.number))
    hosts = {host: place for place, host in enumerate(dict.fromkeys(name.host for name in names))}
    return sorted(names, key=lambda name: (hosts[name.host], int(name.number)))


def _numbers_of_hosts(names: Sequence[RankName]) -> Sequence[int]:
    """Return the numbers of the ranks, if each host numbers its own; () where a rank has its number in the run."""
    if not all(name.number.isdecimal() for name in names):
        return ()
    numbers = [int(name.number) for name in names]
    return numbers if len({*numbers}) < len(numbers) else ()


def _row(name: str, bodies: Sequence[Body], rank_host: Ints) -> Row:
    """Row of bodies with equal keys. A repeat is the second, third, ... measurement of a pair."""
    ranks = rank_host.size
    cells, planned = _joined(bodies)
    pairs, absent = _planned_pairs(bodies[0], cells, rank_host, sum(planned))
    planned[-1] += absent  # their rounds are not known
    announced, cells = sum(planned), needed(cells)
    sizes, at = np.unique(cells.size, return_inverse=True)
    repeat = times_before(np.stack([cells.src, cells.dst, at]))
    repeats = int(repeat.max()) + 1
    body = bodies[0]
    if body.pattern == "world":
        arrays, layout = _world(cells, at, repeat, sizes, ranks), "list"
        planned = [int(np.unique(cells.src[repeat == number]).size) for number in range(repeats)]
        announced, repeats = sum(planned), 1
    elif _in_rounds(body, cells, ranks) and _worth(ranks * len(planned) * sizes.size, cells):
        column, planned = _apart(cells, at, planned)
        arrays, layout, repeats = _listed(cells, column, at, sizes, ranks), "list", 1
    elif body.pattern == "all-pairs" and _worth(ranks * ranks * sizes.size * repeats, cells):
        arrays, layout = _matrix(cells, at, repeat, sizes, ranks), "matrix"
    else:
        arrays, layout, repeats = _listed(cells, _matchings(cells, repeat, ranks), at, sizes, ranks), "list", 1
        body = replace(body, order="serial" if body.order == "serial" else "unknown")  # these rounds are generated
        planned = [int(count) for count in (arrays["dst"] >= 0).sum(axis=0)]
    measured = int(np.unique(np.stack([cells.src, cells.dst, repeat])[:, cells.measured], axis=1).shape[1])
    expected = max(announced, sum(planned))
    attributes = _row_attributes(body, cells, sizes) | ({"planned_pairs": pairs} if pairs else {})
    attributes |= {
        "layout": layout,
        "repeats": repeats,
        "rounds": len(planned),
        "cells_per_round": planned[0] if len(set(planned)) == 1 else planned,
        "state": "complete" if measured == expected else "interrupted",
    }
    if layout == "list" and body.pattern == "all-pairs":
        attributes["pattern"] = "rounds"
        if body.order == "parallel" and cells.have_one_direction:
            attributes["directions"] = "one"
    attributes |= _damage(bodies)
    if attributes["state"] != "complete":
        attributes["reason"] = f"{measured} of {expected} cells are in the files"
    return Row(name, facts_of(RowFacts, attributes), {"size": sizes, **arrays})


def _damage(bodies: Sequence[Body]) -> dict[str, Any]:
    """Attributes of payloads that the program checked."""
    entries = [{"src": each.src, "dst": each.dst, "size": each.size} for body in bodies for each in body.damage]
    checked = any(body.checked or body.damage for body in bodies)
    return ({"validate": True} if checked else {}) | ({"corrupt": entries} if entries else {})


def _planned_pairs(body: Body, cells: Cells, rank_host: Ints, announced: int) -> tuple[str, int]:
    """Return the block of pairs that the row planned, and how many of them no file names.

    It is `all` ordered pairs of ranks, or all those `between hosts`, and empty where the plan is a subset. A file that
    only lists pairs is taken for a list of all of them where it has at least half.
    """
    ranks = rank_host.size
    within = int((np.bincount(rank_host) * (np.bincount(rank_host) - 1)).sum())
    if body.pattern != "all-pairs":
        return "", 0
    pairs = np.unique(np.stack([cells.src, cells.dst]), axis=1)
    is_between = bool((rank_host[pairs[0]] != rank_host[pairs[1]]).all())
    block = (ranks * (ranks - 1) - is_between * within) // (2 if (pairs[0] < pairs[1]).all() else 1)
    if body.is_listed:
        is_whole = 2 * pairs.shape[1] >= block
        absent = block - pairs.shape[1] if is_whole else 0
    else:
        is_whole, absent = announced >= block, 0
    return ("between hosts" if is_between and within else "all") if is_whole else "", absent


def _joined(bodies: Sequence[Body]) -> tuple[Cells, list[int]]:
    """Cells of all bodies, and the cells of every round: the rounds of a file follow those of the previous one."""
    planned: list[int] = []
    rounds = []
    for body in bodies:
        rounds.append(body.cells.round + len(planned))
        planned += [int(cells) for cells in body.planned]
    parts = [body.cells for body in bodies]
    statistics = dict.fromkeys(name for part in parts for name in part.seconds)
    seconds = {
        name: np.concatenate([part.seconds.get(name, np.full(len(part), np.nan)) for part in parts])
        for name in statistics
    }
    src, dst, size, count = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("src", "dst", "size", "count")
    )
    started = None
    if any(part.started is not None for part in parts):
        started = np.concatenate(
            [np.full(len(part), np.nan) if part.started is None else part.started for part in parts]
        )
    return Cells(src, dst, size, np.concatenate(rounds), count, seconds, started), planned


def _in_rounds(body: Body, cells: Cells, ranks: int) -> bool:
    """Tell whether the cells are a subset of all pairs in known rounds, with one partner per rank and round."""
    if body.pattern != "all-pairs":
        return True
    if body.order != "parallel":
        return False
    pairs = np.unique(np.stack([cells.src, cells.dst]), axis=1).shape[1]
    triples = np.concatenate([cells.src, cells.dst]), np.tile(cells.round, 2), np.concatenate([cells.dst, cells.src])
    partners = np.unique(np.stack(triples), axis=1)
    return bool(2 * pairs < ranks * (ranks - 1) and np.unique(partners[:2], axis=1).shape[1] == partners.shape[1])


def _apart(cells: Cells, at: Ints, planned: Sequence[int]) -> tuple[Ints, list[int]]:
    """Return the rounds of cells, and the planned cells of each; what a pair repeats in a round is in further ones."""
    again = times_before(np.stack([cells.round, cells.src, cells.dst, at]))
    rounds, passes = len(planned), int(again.max()) + 1
    if passes == 1:
        return cells.round, list(planned)
    column = cells.round + again * rounds
    pairs = np.unique(np.stack([column, cells.src, cells.dst]), axis=1)
    present = np.bincount(pairs[0], minlength=rounds * passes)
    first = np.maximum(np.array(planned) - present.reshape(passes, rounds)[1:].sum(axis=0), present[:rounds])
    used = present[rounds:] > 0
    renumbered = np.concatenate([np.arange(rounds), rounds + np.cumsum(used) - 1])
    return renumbered[column], [*first.tolist(), *present[rounds:][used].tolist()]


def _worth(room: int, cells: Cells) -> bool:
    """Tell whether an array of `room` cells is filled well enough, or small."""
    return room <= max(SMALL, SPARSE * len(cells))


def _filled(cells: Cells, place: tuple[Ints, ...], shape: tuple[int, ...]) -> dict[str, Any]:
    """Arrays `time_*`, `percentile_time`, `count` and `started`; the last index of `place` is the size."""
    arrays: dict[str, Any] = {}
    for name, seconds in cells.seconds.items():
        if isinstance(name, str):
            arrays[f"time_{name}"] = np.full(shape, np.nan, np.float32)
            arrays[f"time_{name}"][place] = seconds
    if percentiles := sorted(name for name in cells.seconds if not isinstance(name, str)):
        arrays["percentile"] = np.array(percentiles)
        arrays["percentile_time"] = np.full((*shape, len(percentiles)), np.nan, np.float32)
        arrays["percentile_time"][place] = np.stack([cells.seconds[name] for name in percentiles], axis=-1)
    arrays["count"] = np.zeros(shape, np.uint32)
    arrays["count"][place] = np.where(cells.measured, np.clip(cells.count, 1, np.iinfo(np.uint32).max), 0)
    if cells.started is not None:  # for all sizes of a pair together
        arrays["started"] = np.full(shape[:-1], np.nan)
        np.fmin.at(arrays["started"], place[:-1], np.where(cells.measured, cells.started, np.nan))
    return arrays


def _matrix(cells: Cells, at: Ints, repeat: Ints, sizes: Ints, ranks: int) -> dict[str, Any]:
    repeats = int(repeat.max()) + 1
    arrays = _filled(cells, (repeat, cells.src, cells.dst, at), (repeats, ranks, ranks, sizes.size))
    arrays["round"] = np.full((repeats, ranks, ranks), -1, np.int32)
    arrays["round"][repeat, cells.src, cells.dst] = np.where(cells.measured, cells.round, -1)
    return arrays


def _world(cells: Cells, at: Ints, repeat: Ints, sizes: Ints, ranks: int) -> dict[str, Any]:
    """Arrays of a row of all ranks, with a column for each measurement."""
    rounds = int(repeat.max()) + 1
    arrays = _filled(cells, (cells.src, repeat, at), (ranks, rounds, sizes.size))
    arrays["dst"] = np.full((ranks, rounds), EVERYBODY, np.int32)
    return arrays


def _matchings(cells: Cells, repeat: Ints, ranks: int) -> Ints:
    """(K,) rounds for few pairs among many ranks: each pair gets the first round in which both its ends are free."""
    low, high = np.minimum(cells.src, cells.dst), np.maximum(cells.src, cells.dst)
    pairs, first, pair = np.unique(np.stack([low, high, repeat]), axis=1, return_index=True, return_inverse=True)
    busy = [0] * ranks  # one bit for every round
    column = np.empty(pairs.shape[1], np.int64)
    for number in np.argsort(first, kind="stable"):  # in the order of the file
        a, b = int(pairs[0, number]), int(pairs[1, number])
        occupied = busy[a] | busy[b]
        free = ~occupied & (occupied + 1)
        busy[a] |= free
        busy[b] |= free
        column[number] = free.bit_length() - 1
    return np.asarray(column[pair.reshape(-1)])


def _listed(cells: Cells, column: Ints, at: Ints, sizes: Ints, ranks: int) -> dict[str, Any]:
    rounds = int(column.max()) + 1
    if ranks * rounds * sizes.size > LARGEST:
        raise UsageError(f"some of {ranks} ranks have {rounds} pairs, others few", "import them in smaller parts")
    arrays = _filled(cells, (cells.src, column, at), (ranks, rounds, sizes.size))
    arrays["dst"] = np.full((ranks, rounds), -1, np.int32)
    arrays["dst"][cells.src, column] = cells.dst
    return arrays


def _row_attributes(body: Body, cells: Cells, sizes: Ints) -> dict[str, Any]:
    """Attributes of the row, except those that depend on the layout."""
    kernel, facts = body.kernel, dict(body.facts)
    forward = bool((cells.src < cells.dst).all())
    directions = facts.pop("directions", "single" if forward else "both")
    options = " ".join(
        f"--{key.replace('_', '-')} {_as_option(value)}".strip()
        for key, value in facts.items()
        if key not in _NO_OPTIONS and value is not False
    )
    return {
        "kernel": kernel.name,
        "quantity": kernel.quantity,
        "payload": kernel.payload,
        "pattern": body.pattern,
        "transport": "mpi",
        "memory": "host",
        "order": body.order,
        "options": f"{kernel.name} --pattern {body.pattern} {options}".strip(),
        "directions": directions,
        "seed": 0,
        "windows": [1] * sizes.size,
        "warmup": 0,
        "stop": {"samples": None, "budget_s": None, "precision": None, "iterations": None},
        "validate": False,
        **_spread(facts, sizes.size),
    }


_NO_OPTIONS = ("collective_ranks",)  # attributes that no option sets


def _as_option(value: Any) -> str:
    if value is True:
        return ""
    return ":".join(map(str, value)) if isinstance(value, list) else str(value)


def _spread(facts: Mapping[str, Any], sizes: int) -> dict[str, Any]:
    """The window that a file names, repeated for every size."""
    others = {name: value for name, value in facts.items() if name != "window"}
    return others | ({"windows": [int(facts["window"])] * sizes} if "window" in facts else {})
