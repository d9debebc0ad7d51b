"""The file that rccl-tests writes with `-x`, as JSON or CSV (`-Z`) -> numbers. It names no hosts.

A record is one size, in place or not, with the collective, the processes, and the time in microseconds. Class Reporter
of common.cu writes it: the names of its CSV columns differ from those of its JSON in capitals, `collective` is `name`,
and the heading lacks the column `nodes` of the records. A build without MPI has `gpus` instead of the processes.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fablint.errors import UsageError
from fablint.model.registry import KERNELS
from fablint.store.importing.cells import Imported
from fablint.store.importing.lines import figure, json_of, text_of
from fablint.store.importing.nccl_rows import NcclFigures, NcclRow
from fablint.store.importing.nccl_tests import NcclText, imported_of

MARK = re.compile(rb'^(?:\xef\xbb\xbf)?\s*(?:\[\s*\{\s*"?numCycle"?\s*:|"?numCycle"? *,)')

_HINT = "give the whole file as rccl-tests -x wrote it"
_COLUMNS = ("numcycle", "name", "ranks", "gpusperrank", "size", "type", "redop", "inplace", "time", "algbw", "busbw")
_NODES, _RANKS = "nodes", "ranks"
_TESTS = {kernel.nccl_test.replace("_", ""): kernel.nccl_test for kernel in KERNELS.values() if kernel.nccl_test}
_BEFORE = "\ufeff \t\r\n"  # the first record
_CLOSE = 0.03  # of bus over algorithm bandwidth
_Record = Mapping[str, Any]


def parse_rccl_file(text: str) -> list[NcclText]:
    """Read the records of a file: a run for each collective and cycle.

    Raises
    ------
    UsageError
        The text is incomplete, or lacks a column.
    """
    records = _records(text)
    if not records:
        raise UsageError("the file has no results", _HINT)
    for record in records:
        if lacking := [name for name in _COLUMNS if record.get(name) in (None, "")]:
            raise UsageError(f"a result of rccl-tests without '{lacking[0]}'", _HINT)
    runs: dict[tuple[str, ...], list[_Record]] = {}
    for record in records:
        key = tuple(str(record[name]) for name in ("name", "numcycle", "ranks", "gpusperrank"))
        runs.setdefault(key, []).append(record)
    try:
        return [_run(run) for run in runs.values()]
    except (TypeError, ValueError, OverflowError):
        raise UsageError("figures of rccl-tests that are no numbers", _HINT) from None


def _records(text: str) -> list[_Record]:
    if text.lstrip(_BEFORE).startswith("["):
        records: Any = json_of(f'{{"records": {text.lstrip(_BEFORE)}}}', _HINT)["records"]
        if not all(isinstance(record, dict) for record in records):
            raise UsageError("JSON without the results of rccl-tests", _HINT)
        return [_named(record) for record in records]
    if not text.endswith("\n"):
        raise UsageError("the last line of the file is cut off", _HINT)
    heading, *rows = csv.reader(
        (line for line in text.lstrip(_BEFORE).splitlines() if line.strip()), skipinitialspace=True
    )
    names = list(heading)
    if _NODES not in names and _RANKS in names and all(len(row) == len(names) + 1 for row in rows):
        names.insert(names.index(_RANKS), _NODES)
    if any(len(row) != len(names) for row in rows):
        raise UsageError("a result of rccl-tests has more or fewer values than the heading", _HINT)
    return [_named(dict(zip(names, row, strict=True))) for row in rows]


def _named(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the names of its values in lower case, the same for all forms."""
    named = {str(key).lower().lstrip("#"): value for key, value in record.items()}
    renamed = {"name" if key == "collective" else key: value for key, value in named.items()}
    return {_RANKS: 1, "gpusperrank": named["gpus"], **renamed} if "gpus" in named else renamed


def _run(records: Sequence[_Record]) -> NcclText:
    name = str(records[0]["name"]).lower()
    parsed = NcclText(test=_TESTS.get(name.replace("_", ""), name), tables=1, ended=1)
    parsed.ranks = _ranks(parsed.test, records)
    halves: dict[tuple[int, str, str], dict[bool, NcclFigures]] = {}
    for record in records:
        key = int(record["size"]), str(record["type"]), str(record["redop"])
        is_in_place = str(record["inplace"]).lower() in ("1", "true")
        words = (str(record.get(column, "")) for column in ("time", "algbw", "busbw", "wrong"))
        halves.setdefault(key, {})[is_in_place] = NcclFigures(*map(figure, words))
    for number, ((size, datatype, redop), places) in enumerate(halves.items(), 1):
        both = places.get(False, NcclFigures()), places.get(True, NcclFigures())
        parsed.rows.append(NcclRow(number, size, (datatype, redop, ""), both))
    return parsed


def _ranks(test: str, records: Sequence[_Record]) -> int:
    """Return the number of GPUs: of all processes, each with several, unless the bandwidths show that these are all."""
    ranks = int(records[0]["ranks"])
    gpus = ranks * int(records[0]["gpusperrank"])
    kernel = next((kernel for kernel in KERNELS.values() if kernel.nccl_test == test), None)
    rates = [(figure(str(record["busbw"])), figure(str(record["algbw"]))) for record in records]
    ratios = sorted(bus / rate for bus, rate in rates if bus and rate)
    if kernel is None or not ratios or ranks < 2:
        return gpus
    ratio = ratios[len(ratios) // 2]
    fits = [count for count in (gpus, ranks) if abs(ratio / kernel.bus_share(count) - 1) < _CLOSE]
    return fits[0] if fits else gpus


def read_rccl_file(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import each collective as two rows of the whole fabric: out of place and in place."""
    return imported_of(parse_rccl_file(text_of(data)), hosts)
