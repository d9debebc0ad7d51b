"""Attributes that have a value for each rank or host: arrays of the group `tables`, named like the attributes.

The table `COLUMNS` is that of docs/reference/run-format.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fablint.errors import BrokenRunError
from fablint.model.facts.json_objects import document_of
from fablint.model.facts.run_attributes import RunFacts
from fablint.store.facts.table_arrays import TEXT, read_numbers, read_texts, write_numbers, write_texts
from fablint.store.metadata import DAMAGED

RANK, HOST, END = "rank", "host", "end"
NICS = "host_nics"
_NAMED = "named"  # each different text once in the array NAME_values, and the index of each rank or host into it
_FILLS = {"int32": -1, "int64": 0, "float32": np.nan}


@dataclass(frozen=True)
class Column:
    """An attribute, by its keys in the attributes of its group, and its array."""

    keys: tuple[str, ...]
    dtype: str  # of the array; `string`, or `named`
    dimensions: tuple[str, ...]
    lengths: tuple[int, ...] = ()  # of the dimensions behind the first

    @property
    def array(self) -> str:
        """Name of the array."""
        return "_".join(self.keys)


_NUMBERS = {"rank_host": "int32", "rank_number": "int32", "rank_numa": "int32", "rank_pid": "int32"}
_TEXTS = ("rank_cores", "rank_nic", "rank_gpu", "rank_gpu_model", "rank_gpu_pci")
COLUMNS = (
    Column(("hosts",), TEXT, (HOST,)),
    *(Column((name,), dtype, (RANK,)) for name, dtype in _NUMBERS.items()),
    *(Column((name,), _NAMED, (RANK,)) for name in _TEXTS),
    Column(("mpi", "init_s"), "float32", (RANK,)),
    Column(("cpu_wait_s",), "float32", (RANK,)),
    Column(("aggressors",), "int32", ("aggressor",)),
    Column(("tcp", "ends"), TEXT, (END,)),
    Column(("tcp", "sent"), "int64", (END,)),
    Column(("tcp", "received"), "int64", (END,)),
    Column(("tcp", "pairs"), "int64", ("pair", "figure"), (5,)),
)


def read_columns(folder: Path, attributes: dict[str, Any]) -> None:
    """Add the columns of a group `tables` to the attributes of its run or row; BrokenRunError where one is damaged."""
    for column in COLUMNS:
        parent = _parent(attributes, column)
        if parent is not None and (folder / column.array / "zarr.json").is_file():
            parent[column.keys[-1]] = _read(folder, column)


def write_columns(folder: Path, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Write the columns of a run or a row into its group `tables`, and return the attributes without them."""
    rest = {name: {**value} if isinstance(value, dict) else value for name, value in attributes.items()}
    for column in COLUMNS:
        values = (_parent(rest, column) or {}).pop(column.keys[-1], None)
        if values is not None:
            _write(folder, column, values)
    return rest


def _parent(attributes: dict[str, Any], column: Column) -> dict[str, Any] | None:
    """The object that has the attribute; None where there is none."""
    for key in column.keys[:-1]:
        attributes = attributes.get(key) or {}
    return attributes if attributes or len(column.keys) == 1 else None


def _read(folder: Path, column: Column) -> list[Any]:
    path = folder / column.array
    if column.dtype == TEXT:
        return read_texts(path)
    if column.dtype == _NAMED:
        return read_named(folder, column.array, read_texts(folder / f"{column.array}_values"))
    values = read_numbers(path, column.dtype, len(column.dimensions)).tolist()
    return [None if value != value else value for value in values] if column.dtype == "float32" else values


def read_named(folder: Path, array: str, values: Sequence[Any]) -> list[Any]:
    """Return the value of each rank or host, of which `array` has the indices into `values`."""
    codes = read_numbers(folder / array, "int32")
    if codes.size and not 0 <= codes.min() <= codes.max() < len(values):
        raise BrokenRunError(f"{folder / array}: has indices beyond {len(values)} values", DAMAGED)
    return [values[code] for code in codes.tolist()]


def _write(folder: Path, column: Column, values: Sequence[Any]) -> None:
    path = folder / column.array
    if column.dtype == TEXT:
        write_texts(path, column.dimensions[0], values)
    elif column.dtype == _NAMED:
        write_named(folder, column.array, column.dimensions[0], values)
    else:
        numbers = np.array([np.nan if value is None else value for value in values], dtype=column.dtype)
        shape = (len(values), *column.lengths)
        write_numbers(path, column.dtype, column.dimensions, numbers.reshape(shape), _FILLS[column.dtype])


def write_named(folder: Path, array: str, dimension: str, values: Sequence[str]) -> None:
    """Write each different text once, and the index of each rank or host."""
    codes = {value: code for code, value in enumerate(dict.fromkeys(values))}
    write_texts(folder / f"{array}_values", f"{array}_values", list(codes))
    write_numbers(folder / array, "int32", (dimension,), [codes[value] for value in values], -1)


def read_nics(folder: Path, hosts: Sequence[str]) -> dict[str, Any]:
    """Return the NICs of each host as JSON objects, equal lists once; empty where the run has none."""
    if not (folder / NICS / "zarr.json").is_file():
        return {}
    texts = read_texts(folder / f"{NICS}_values")
    try:
        lists = [json.loads(text) for text in texts]
    except ValueError as error:
        raise BrokenRunError(f"{folder / NICS}_values: is not JSON ({error})", DAMAGED) from None
    nics = zip(hosts, read_named(folder, NICS, lists), strict=False)
    return {host: of_host for host, of_host in nics if of_host is not None}


def write_nics(folder: Path, facts: RunFacts) -> None:
    """Write the NICs of each host as JSON; `null` where those of a host are not known."""
    if not facts.nics:
        return
    lists, list_of = facts.nic_lists
    documents = [*([document_of(nic) for nic in nics] for nics in lists[:-1]), None]
    texts = [json.dumps(document, separators=(",", ":")) for document in documents]
    write_named(folder, NICS, HOST, [texts[code] for code in list_of])
