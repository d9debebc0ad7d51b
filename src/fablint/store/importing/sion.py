"""Result files of LinkTest 1.2, which are containers of SIONlib -> numbers, in seconds.

The layout was derived from files that LinkTest 1.2p1 wrote. LinkTest 2 keeps the container and changes the records; its
files are refused, because no example was available.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fablint.errors import UsageError
from fablint.model.arrays import Floats, Ints

MAGIC = b"sion"
_NAME = 1024  # bytes for the name of the file
_HOST = 256
_RECORD = b"LKTST"
_MOST_TASKS = 1 << 24
_DAMAGED = "the file is damaged or was not finished: give it as LinkTest wrote it"


@dataclass(frozen=True)
class LinktestSion:
    """All pairs of one sweep; seconds in one direction, row = the rank that started. Retests as (K,) columns."""

    version: tuple[int, int, int]
    hosts: tuple[str, ...]
    messages: int
    size: int
    serial: bool
    extremes: tuple[float, float, float]  # shortest, longest and mean time, as stored in the file
    seconds: Floats  # (n, n)
    step: Ints  # (n, n), from 1; 0 on the diagonal
    retest_src: Ints
    retest_dst: Ints
    retest_seconds: Floats


class _Bytes:
    """Reader of the fields of a file; a field beyond its end raises UsageError."""

    def __init__(self, data: bytes, endian: str) -> None:
        self.data, self.endian = data, endian

    def array(self, place: int, kind: str, count: int) -> np.ndarray:
        dtype = np.dtype(self.endian + kind)
        if place < 0 or count < 0 or place + count * dtype.itemsize > len(self.data):
            raise UsageError("the SION file ends too early", _DAMAGED)
        return np.frombuffer(self.data, dtype, count, place)

    def ints(self, place: int, count: int) -> list[int]:
        return [int(value) for value in self.array(place, "i4", count)]


def parse_sion(data: bytes) -> LinktestSion:
    """Read a result file of LinkTest 1.2.

    Raises
    ------
    UsageError
        The file is not a SION file, of another version, in several parts, or ends too early.
    """
    if not data.startswith(MAGIC):
        raise UsageError("no SION file", "give the file pingpong_results_bin.sion of LinkTest")
    if len(data) < 36:
        raise UsageError("the SION file ends too early", _DAMAGED)
    head = _Bytes(data, ">" if data[4] else "<")  # header of the container
    _, patch, kind, block, tasks, files, _ = head.ints(8, 7)
    del patch
    if files != 1:
        raise UsageError(f"the SION file is one of {files} parts", "join them with sioncat first")
    if not (0 < tasks <= _MOST_TASKS and kind >= 4 and block > 0):
        raise UsageError(f"SION file format {kind} of {tasks} tasks is not known", _DAMAGED)
    places = _chunks(head, tasks, block)
    body = _Bytes(data, ">" if data[5] else "<")  # contents written by LinkTest
    records = [_Record(body, place, tasks, rank) for rank, place in enumerate(places)]
    return _sweep(records)


def _chunks(head: _Bytes, tasks: int, block: int) -> list[int]:
    """Offset of the record of each task. Chunk sizes are stored as aligned in the file."""
    place = 36 + 16 + _NAME
    sizes = head.array(place + 8 * tasks, "i8", tasks)
    start = place + 16 * tasks + 12
    first = -(-start // block) * block
    starts = [first]
    for size in sizes[:-1]:
        starts.append(starts[-1] + int(size))
    return starts


class _Record:
    """Record of one task."""

    def __init__(self, data: _Bytes, place: int, tasks: int, rank: int) -> None:
        if bytes(data.array(place, "u1", len(_RECORD))) != _RECORD:
            raise UsageError(f"the record of task {rank} is not one of LinkTest 1", "other SION files are not read")
        place += len(_RECORD)
        version = data.ints(place, 3)
        if version[:2] != [1, 2]:
            number = ".".join(map(str, version))
            raise UsageError(
                f"a record of LinkTest {number}: only records of 1.2 are supported",
                "give the output of LinkTest",
            )
        self.version = (version[0], version[1], version[2])
        name = bytes(data.array(place + 12, "u1", _HOST)).split(b"\0")[0]
        self.host = name.decode("utf-8", "replace")
        place += 12 + _HOST + 16
        self.facts: list[int] = []
        self.extremes: list[float] = []
        if rank == 0:
            self.facts = data.ints(place, 10)
            self.extremes = data.array(place + 40, "f8", 10).tolist()
            place += 120
        self.seconds = data.array(place, "f8", tasks)
        self.step = data.array(place + 8 * tasks, "i4", tasks)
        place += 12 * tasks
        self._after, self._data = place, data

    def retests(self, tasks: int) -> tuple[Floats, Ints, Ints]:
        """Second times (first times follow), from and to, of task 0; with `-a` after the times of the all-to-all."""
        place = self._after + (8 * tasks if self.facts[2] else 0)
        again = self._data.array(place, "f8", tasks)
        place += 16 * tasks
        src, dst = (self._data.array(place + part * 4 * tasks, "i4", tasks) for part in (0, 1))
        return again, src.astype(np.int64), dst.astype(np.int64)


def _sweep(records: Sequence[_Record]) -> LinktestSion:
    zero, n = records[0], len(records)
    messages, size, _, _, serial = zero.facts[:5]
    if size < 0:
        raise UsageError(f"messages of {size} bytes", _DAMAGED)
    again, src, dst = zero.retests(n)
    good = (again > 0) & (src >= 0) & (src < n) & (dst >= 0) & (dst < n) & (src != dst)
    return LinktestSion(
        version=zero.version,
        hosts=tuple(record.host for record in records),
        messages=messages,
        size=size,
        serial=bool(serial),
        extremes=(zero.extremes[0], zero.extremes[1], zero.extremes[2]),
        seconds=np.stack([record.seconds for record in records]).astype(float),
        step=np.stack([record.step for record in records]).astype(np.int64),
        retest_src=src[good],
        retest_dst=dst[good],
        retest_seconds=again[good].astype(float),
    )
