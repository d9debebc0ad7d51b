"""Port counters as arrays: `counters` (reading, host, nic, counter), with `counter_nics` (host, nic) and `counter`."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from fablint.errors import BrokenRunError
from fablint.model.arrays import Codes
from fablint.model.facts.run_attributes import CountersOfHosts, PortCounters
from fablint.store.facts.table_arrays import (
    TableArray,
    read_numbers,
    read_texts,
    write_chunk,
    write_numbers,
    write_texts,
)
from fablint.store.layout import FILES_PER_ARRAY
from fablint.store.metadata import DAMAGED, array_node, replace_node

_LACKING = int(np.iinfo(np.int64).min)  # a counter that the hardware lacks
_DIMENSIONS = ("reading", "host", "nic", "counter")


class StoredCounters(Mapping[str, Mapping[str, Mapping[str, int]]]):
    """Counters by host, NIC and name, read when they are used: those of a large system are hundreds of megabytes."""

    def __init__(self, array: TableArray, reading: int, hosts: Sequence[str], nics: NicTable) -> None:
        self._array, self._reading, self._nics = array, reading, nics
        self._place = {hosts[place]: place for place in np.flatnonzero((nics.codes >= 0).any(axis=1)).tolist()}

    @cached_property
    def _cells(self) -> np.ndarray:
        return self._array.read_plane(self._reading, _LACKING)

    def __getitem__(self, host: str) -> Mapping[str, Mapping[str, int]]:
        place = self._place[host]
        cells, table = self._cells[place].tolist(), self._nics
        return {
            table.nics[code]: {
                name: value for name, value in zip(table.counters, values, strict=True) if value != _LACKING
            }
            for code, values in zip(table.codes[place].tolist(), cells, strict=True)
            if code >= 0
        }

    def __iter__(self) -> Iterator[str]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self._place)


class NicTable:
    """Names of NICs and counters, and the NIC of each place of each host."""

    def __init__(self, nics: Sequence[str], counters: Sequence[str], codes: Codes) -> None:
        """`codes`: (host, nic) index into `nics`, -1 where a host has fewer NICs than others."""
        self.nics, self.counters, self.codes = nics, counters, codes


def read_counters(folder: Path, hosts: Sequence[str]) -> dict[str, CountersOfHosts]:
    """Return `before` and, once it was read, `after` of a group `tables`; empty where nothing was counted.

    Raises BrokenRunError where the arrays do not fit each other or the hosts.
    """
    if not (folder / "counters" / "zarr.json").is_file():
        return {}
    codes = read_numbers(folder / "counter_nics", "int32", ndim=2)
    names = NicTable(read_texts(folder / "counter_nics_values"), read_texts(folder / "counter"), codes)
    array = TableArray(folder / "counters", "int64", ndim=4)
    fits = tuple(array.shape[1:]) == (len(hosts), *codes.shape[1:], len(names.counters))
    if not fits or len(codes) != len(hosts) or (codes.size and codes.max() >= len(names.nics)):
        raise BrokenRunError(f"{folder / 'counters'}: does not fit the hosts and NICs of the run", DAMAGED)
    readings = zip(("before", "after"), range(array.shape[0]), strict=False)
    return {key: StoredCounters(array, reading, hosts, names) for key, reading in readings}


def write_counters(folder: Path, counters: PortCounters, hosts: Sequence[str]) -> None:
    """Write counters before and after a measurement into a group `tables`; nothing where none were read."""
    readings = [reading for reading in (counters.before, counters.after) if reading is not None]
    if not readings:
        return
    array = folder / "counters"
    nics_of = [list(dict.fromkeys(nic for reading in readings for nic in reading.get(host, {}))) for host in hosts]
    table = _nic_table(readings, hosts, nics_of)  # reads the counters, which may be those in the folder
    shutil.rmtree(array, ignore_errors=True)
    array.mkdir(parents=True)
    write_texts(folder / "counter", "counter", table.counters)
    write_texts(folder / "counter_nics_values", "counter_nics_values", table.nics)
    write_numbers(folder / "counter_nics", "int32", _DIMENSIONS[1:3], table.codes, -1)
    step = max(1, math.ceil(len(hosts) / FILES_PER_ARRAY))
    shape = (*table.codes.shape[1:], len(table.counters))
    for number, reading in enumerate(readings):
        for start in range(0, len(hosts), step) if all(shape) else ():
            block = slice(start, start + step)
            cells = np.full((1, step, *shape), _LACKING, dtype=np.int64)
            for index, (host, nics) in enumerate(zip(hosts[block], nics_of[block], strict=True)):
                for place, nic in enumerate(nics):
                    values = reading.get(host, {}).get(nic, {})
                    cells[0, index, place] = [values.get(name, _LACKING) for name in table.counters]
            write_chunk(array, (number, start // step, 0, 0), cells)
    chunks = (1, step, *(max(1, length) for length in shape))
    replace_node(array, array_node("int64", _DIMENSIONS, (len(readings), len(hosts), *shape), chunks, _LACKING))


def _nic_table(readings: Sequence[CountersOfHosts], hosts: Sequence[str], nics_of: Sequence[Sequence[str]]) -> NicTable:
    """Return the names of all NICs and counters, and the NICs of each host."""
    of_nics = (nic for reading in readings for host in hosts for nic in reading.get(host, {}).values())
    code = {nic: number for number, nic in enumerate(dict.fromkeys(nic for nics in nics_of for nic in nics))}
    codes = np.full((len(hosts), max(map(len, nics_of), default=0)), -1, dtype=np.int32)
    for host, nics in enumerate(nics_of):
        codes[host, : len(nics)] = [code[nic] for nic in nics]
    return NicTable(list(code), sorted({name for nic in of_nics for name in nic}), codes)
