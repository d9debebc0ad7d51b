"""Runs for the tests: made in memory, and written to disk as the engine does, by plain files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fablint.model import Row, Run
from fact_cases import attributes_of, row_facts, run_facts


def schedule(ranks: int) -> list[list[tuple[int, int]]]:
    """Rounds of disjoint pairs that hold every pair once, by the round-robin method."""
    players = [*range(ranks), *([None] if ranks % 2 else [])]
    rounds = []
    for _ in range(len(players) - 1):
        half = len(players) // 2
        pairs = zip(players[:half], reversed(players[half:]), strict=True)
        rounds.append([(a, b) for a, b in pairs if a is not None and b is not None])
        players.insert(1, players.pop())
    return rounds


def root_attributes(ranks: int, rows: list[str], state: str = "complete") -> dict[str, Any]:
    hosts = [f"nid{index:03}" for index in range((ranks + 1) // 2)]
    return {
        "format": 1,
        "state": state,
        "creator": "test",
        "command": ["fablint-engine", "--plan", "plan.txt"],
        "started": "2026-11-20T12:00:00Z",
        "started_epoch_s": 1795176000.0,
        "rows": rows,
        "ranks": ranks,
        "hosts": hosts,
        "rank_host": [rank // 2 for rank in range(ranks)],
        "shared_files": True,
        "mpi": {"library": "none", "standard": "3.1"},
    }


def row_attributes(name: str, layout: str, rounds: int, cells: int | list[int], repeats: int = 1) -> dict[str, Any]:
    return {
        "kernel": "latency",
        "pattern": "all-pairs" if layout == "matrix" else "random",
        "transport": "mpi",
        "memory": "host",
        "order": "parallel",
        "options": f"latency --name {name}",
        "layout": layout,
        "state": "complete",
        "rounds": rounds,
        "cells_per_round": cells,
        "repeats": repeats,
        "seed": 1,
        "windows": [1, 1],
        "warmup": 10,
        "stop": {"samples": 100, "budget_s": None, "precision": None},
        "validate": False,
        "measuring_s": 1.0,
        "wall_s": 1.1,
    }


def matrix_row(
    name: str = "latency", ranks: int = 6, repeats: int = 2, sizes: tuple[int, ...] = (8, 1024), seed: int = 0
) -> Row:
    """A complete all-pairs row."""
    random = np.random.default_rng(seed)
    rounds = schedule(ranks)
    shape = (repeats, ranks, ranks, len(sizes))
    number = np.full(shape[:3], -1, np.int32)
    for repeat in range(repeats):
        for index, pairs in enumerate(rounds):
            for a, b in pairs:
                number[repeat, a, b] = number[repeat, b, a] = repeat * len(rounds) + index
    measured = number >= 0
    cells = len(rounds[0]) * 2
    attributes = row_attributes(name, "matrix", repeats * len(rounds), cells, repeats)
    return Row(name, row_facts(attributes), _arrays(random, shape, measured, sizes) | {"round": number})


def list_row(
    name: str = "pairs", ranks: int = 6, rounds: int = 3, sizes: tuple[int, ...] = (8, 1024), seed: int = 0
) -> Row:
    """A complete row of random matchings; with an odd number of ranks one rank is idle in every round."""
    random = np.random.default_rng(seed)
    dst = np.full((ranks, rounds), -1, np.int32)
    for number in range(rounds):
        order = random.permutation(ranks)[: ranks // 2 * 2].reshape(-1, 2)
        dst[order[:, 0], number], dst[order[:, 1], number] = order[:, 1], order[:, 0]
    attributes = row_attributes(name, "list", rounds, [ranks // 2 * 2] * rounds)
    return Row(name, row_facts(attributes), _arrays(random, (*dst.shape, len(sizes)), dst >= 0, sizes) | {"dst": dst})


def _arrays(
    random: np.random.Generator, shape: tuple[int, ...], measured: np.ndarray, sizes: tuple[int, ...]
) -> dict[str, Any]:
    times = np.sort(random.lognormal(-13, 0.1, (5, *shape)), axis=0).astype(np.float32)
    times[:, ~measured] = np.nan
    count = np.where(measured[..., None], 100, np.zeros(shape)).astype(np.uint32)
    started = np.where(measured, random.uniform(0, 60, measured.shape), np.nan)
    names = ("min", "median", "mean", "p99", "max")
    return {
        **{f"time_{name}": times[index] for index, name in enumerate(names)},
        "count": count,
        "started": started,
        "size": np.array(sizes, np.int64),
    }


def run_of(*rows: Row, state: str = "complete") -> Run:
    ranks = rows[0].arrays["count"].shape[0 if rows[0].layout == "list" else 1]
    return Run(None, run_facts(root_attributes(ranks, [row.name for row in rows], state)), rows)


FILLS = {"count": 0, "round": -1, "dst": -1, "size": 0}
DIMENSIONS = {
    "matrix": ("repeat", "src", "dst", "size"),
    "list": ("src", "round", "size"),
}


def write_like_the_engine(path: Path, run: Run, rows_per_chunk: int = 2) -> None:
    """The layout of docs/reference/run-format.md by plain file writes, independent of `fablint.store`."""
    attributes = attributes_of(run)
    _write_tables(path / "tables", attributes.pop("hosts"), attributes.pop("rank_host"))
    _write_json(path, {"zarr_format": 3, "node_type": "group", "attributes": attributes})
    for row in run.rows:
        _write_json(path / row.name, {"zarr_format": 3, "node_type": "group", "attributes": attributes_of(row)})
        for name, values in row.arrays.items():
            _write_array(path / row.name / name, name, values, row.layout, rows_per_chunk)


def _write_tables(folder: Path, hosts: list[str], rank_host: list[int]) -> None:
    texts = b"".join(len(host).to_bytes(4, "little") + host.encode() for host in hosts)
    _write_json(folder, {"zarr_format": 3, "node_type": "group", "attributes": {}})
    for name, dtype, values, octets in (
        ("hosts", "string", hosts, len(hosts).to_bytes(4, "little") + texts),
        ("rank_host", "int32", rank_host, np.array(rank_host, "<i4").tobytes()),
    ):
        bytes_codec = {"name": "bytes", "configuration": {"endian": "little"}}
        node = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [len(values)],
            "data_type": dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [len(values)]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": "" if dtype == "string" else -1,
            "codecs": [{"name": "vlen-utf8"} if dtype == "string" else bytes_codec],
            "dimension_names": ["host" if dtype == "string" else "rank"],
            "attributes": {},
        }
        _write_json(folder / name, node)
        (folder / name / "c.0").write_bytes(octets)


def _write_array(folder: Path, name: str, values: np.ndarray, layout: str, rows_per_chunk: int) -> None:
    names = ("size",) if name == "size" else DIMENSIONS[layout][: values.ndim]
    chunk = [
        {"src": rows_per_chunk, "repeat": 1}.get(dim, length) for dim, length in zip(names, values.shape, strict=True)
    ]
    fill = FILLS.get(name, float("nan"))
    _write_json(
        folder,
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(values.shape),
            "data_type": values.dtype.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": "NaN" if name not in FILLS else fill,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "dimension_names": list(names),
            "attributes": {},
        },
    )
    grid = [-(-length // step) for length, step in zip(values.shape, chunk, strict=True)]
    for place in np.ndindex(*grid):
        cells = np.full(chunk, fill, values.dtype.newbyteorder("<"))
        part = values[tuple(slice(at * step, (at + 1) * step) for at, step in zip(place, chunk, strict=True))]
        cells[tuple(slice(length) for length in part.shape)] = part
        (folder / ("c." + ".".join(map(str, place)))).write_bytes(cells.tobytes())


def _write_json(folder: Path, node: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "zarr.json").write_text(json.dumps(node))


def edit_json(path: Path, **attributes: Any) -> None:
    """Change attributes of the group or keys of the array whose `zarr.json` this is."""
    node = json.loads(path.read_text())
    (node["attributes"] if node["node_type"] == "group" else node).update(attributes)
    path.write_text(json.dumps(node))
