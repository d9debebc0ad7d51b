"""The file of rccl-tests (`-x`, `-Z json|csv`). Records are generated as its class Reporter writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from fablint.analyse import diagnose
from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.store import import_run


def written(folder: Path, text: str, hosts: list[str] | None = None) -> Run:
    path = folder / "output.txt"
    path.write_text(text)
    return import_run([path], hosts or [])


def means(row: Row) -> list[float]:
    times = np.asarray(row.arrays["time_mean"]).ravel()
    return [float(time) for time in times if np.isfinite(time)]


def rccl_record(size: int, in_place: int, time: float, **more: object) -> dict[str, object]:
    """A record of rccl-tests: two hosts of eight GPUs with a rank each."""
    rate = size / time / 1e3
    record = {"numCycle": 0, "name": "AllReduce", "nodes": 2, "ranks": 16, "ranksPerNode": 8, "gpusPerRank": 1}
    record |= {"size": size, "type": "float", "redop": "sum", "inPlace": in_place, "time": time}
    return {**record, "algBw": rate, "busBw": rate * 30 / 16, "wrong": "0", **more}


def rccl_records(**more: object) -> list[dict[str, object]]:
    sizes = (8388608, 16777216)
    return [rccl_record(size, place, size / 9e4 + place, **more) for size in sizes for place in (0, 1)]


HEADING = "numCycle,collective,ranks,rankspernode,gpusperrank,size,type,redop,inplace,time,algbw,busbw,#wrong"
ALONE = "numCycle,collective,gpus,size,type,redop,inplace,time,algbw,busbw,#wrong"  # built without MPI


def as_csv(records: Sequence[Mapping[str, object]], heading: str = HEADING) -> str:
    """CSV of the file: texts in quotes, and no name of the column `nodes`."""
    return "\n".join([heading, *(",".join(map(json.dumps, record.values())) for record in records)]) + "\n"


def as_first_csv(records: Sequence[Mapping[str, object]]) -> str:
    """CSV of releases whose records have no `nodes`."""
    return as_csv([{key: value for key, value in record.items() if key != "nodes"} for record in records])


def as_json(records: Sequence[Mapping[str, object]]) -> str:
    lines = ("{" + ", ".join(f'"{key}":{json.dumps(value)}' for key, value in row.items()) + "}" for row in records)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def without_mpi(record: Mapping[str, object]) -> dict[str, object]:
    kept = {key: value for key, value in record.items() if key not in ("nodes", "ranks", "ranksPerNode", "gpusPerRank")}
    items = list(kept.items())
    return dict([*items[:2], ("gpus", 16), *items[2:]])


@pytest.mark.parametrize("form", [as_json, json.dumps, as_csv, as_first_csv])
def test_the_file_of_rccl_tests(tmp_path: Path, form: Callable[[list[dict[str, object]]], str]) -> None:
    run = written(tmp_path, form(rccl_records()))
    assert [row.kernel for row in run.rows] == ["allreduce", "allreduce"]
    for place, row in enumerate(run.rows):
        assert means(row) == pytest.approx([(size / 9e4 + place) * 1e-6 for size in (8388608, 16777216)])
    assert (run.ranks, run.state) == (16, "complete")
    hosts = [f"n{rank // 8}" for rank in range(16)]
    assert written(tmp_path, form(rccl_records()), hosts).hosts == ["n0", "n1"]
    with pytest.raises(UsageError, match="names 2 hosts for 16 ranks"):
        written(tmp_path, form(rccl_records()), ["n0", "n1"])


@pytest.mark.parametrize("form", [as_json, lambda records: as_csv(records, ALONE)])
def test_a_build_without_mpi_states_its_gpus(tmp_path: Path, form: Callable[[list[dict[str, object]]], str]) -> None:
    run = written(tmp_path, form([without_mpi(record) for record in rccl_records()]))
    assert ([row.kernel for row in run.rows], run.ranks) == (["allreduce", "allreduce"], 16)


def test_values_without_a_heading_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="more or fewer values than the heading"):
        written(tmp_path, as_csv([{**record, "busBwFactor": 1.875, "x": 0} for record in rccl_records()]))


def test_ranks_of_several_gpus_cycles_and_names_of_rccl_tests(tmp_path: Path) -> None:
    threads = {"nodes": 1, "ranks": 1, "ranksPerNode": 1, "gpusPerRank": 16}
    assert written(tmp_path, json.dumps(rccl_records(**threads))).ranks == 16
    assert written(tmp_path, json.dumps(rccl_records(ranks=16, gpusPerRank=8))).ranks == 16, "as its bandwidths show"
    cycles = [*rccl_records(), *rccl_records(numCycle=1)]
    assert [len(means(row)) for row in written(tmp_path, json.dumps(cycles)).rows] == [4, 4]
    (row, _) = written(tmp_path, json.dumps(rccl_records(name="AlltoAll", busBw=0.0))).rows
    assert row.kernel == "alltoall"


def test_wrong_values_in_the_file_of_rccl_tests_are_a_fault(tmp_path: Path) -> None:
    run = written(tmp_path, json.dumps(rccl_records(wrong="3")))
    assert diagnose(run).verdict.exit_code == 1
    assert diagnose(written(tmp_path, json.dumps(rccl_records(wrong="N/A")))).verdict.exit_code != 1


@pytest.mark.parametrize("text", [json.dumps(rccl_records(), indent=0), as_csv(rccl_records())])
def test_a_damaged_file_of_rccl_tests_is_refused(tmp_path: Path, text: str) -> None:
    for end in range(14, len(text) - 1, 37):
        with pytest.raises(UsageError):
            written(tmp_path, text[:end])
    with pytest.raises(UsageError, match="without 'time'"):
        written(tmp_path, text.replace("time", "t"))
    with pytest.raises(UsageError, match="no numbers"):
        written(tmp_path, text.replace("8388608", "1e999"))
