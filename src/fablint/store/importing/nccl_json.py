"""JSON of nccl-tests (option `-J` of 2.17 and later) -> numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from fablint.errors import UsageError
from fablint.store.importing.cells import Imported
from fablint.store.importing.lines import figure, json_of, text_of
from fablint.store.importing.nccl_rows import NcclFigures, NcclRow
from fablint.store.importing.nccl_tests import NcclText, imported_of

_MOST_GPUS = 1024  # of a process

MARK = re.compile(rb'^(?:\xef\xbb\xbf)?\s*\{[\s\S]*"nccl_version"\s*:')


def parse_nccl_json(text: str) -> NcclText:
    """Read the file that `-J` writes.

    Raises
    ------
    UsageError
        The text is not JSON, or does not have the keys of nccl-tests.
    """
    hint = "give the whole file as nccl-tests wrote it"
    document = json_of(text, hint)
    try:
        return _parsed(document)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError):
        raise UsageError("JSON without the results of nccl-tests", hint) from None


def _parsed(document: Mapping[str, Any]) -> NcclText:
    program = PurePosixPath(str(document["args"][0])).name
    parsed = NcclText(test=program.removesuffix("_perf"), hosts=_devices(document["config"]), tables=1)
    for number, entry in enumerate(document["results"], 1):
        halves = tuple(_figures(entry.get(place)) for place in ("out_of_place", "in_place"))
        datatype, redop, root = (str(entry.get(key, "")).strip() for key in ("type", "redop", "root"))
        parsed.rows.append(NcclRow(number, int(entry["size"]), (datatype, redop, root), (halves[0], halves[1])))
    summary = document.get("out_of_bounds")
    parsed.wrong = None if summary is None else int(summary["count"])
    parsed.ended = int(summary is not None)
    return parsed


def _devices(config: Mapping[str, Any]) -> dict[tuple[int, int], tuple[str, str]]:
    """Host and device by group and rank. Of a process with several GPUs the file has the first, which stands for all.

    Raises
    ------
    ValueError
        The ranks are not those of processes with this number of GPUs.
    """
    entries = [
        (int(entry["group"]), int(entry["rank"]), str(entry["hostname"]), int(entry["device"]))
        for entry in config["devices"]
    ]
    gpus = int(config.get("nthreads", 1)) * int(config.get("ngpus", 1))
    if not 1 <= gpus <= _MOST_GPUS:
        raise ValueError
    ahead = range(gpus if all(rank % gpus == 0 for _, rank, _, _ in entries) else 1)
    return {(group, rank + at): (host, str(device + at)) for group, rank, host, device in entries for at in ahead}


def _figures(half: Mapping[str, Any] | None) -> NcclFigures:
    """Figures of one place; NaN is written as a text."""
    keys = ("time", "alg_bw", "bus_bw", "nwrong")
    return NcclFigures(*(figure(str((half or {}).get(key, "nan"))) for key in keys))


def read_nccl_json(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import the results as two rows of the whole fabric: out of place and in place."""
    return imported_of([parse_nccl_json(text_of(data))], hosts)
