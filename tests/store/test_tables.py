"""What each rank or host has: arrays of the run, and not metadata."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
import zarr
from run_cases import edit_json, list_row, run_of

from fablint.errors import BrokenRunError
from fablint.model import Run
from fablint.model.facts.run_attributes import RunFacts
from fablint.store import open_run, read_run, write_run
from fablint.store.facts.columns import COLUMNS
from fact_cases import attributes_of, with_facts

BEFORE = {
    "nid000": {"hsn0": {"rx": 1, "tx": 2**62}, "eth0": {"rx": 0}},
    "nid001": {},
    "nid002": {"hsn1": {}, "hsn0": {"errors": 3}},
}
AFTER = {
    "nid000": {"hsn0": {"rx": 5, "tx": 2**62 + 1}, "eth0": {"rx": 7}},
    "nid002": {"hsn1": {}, "hsn0": {"errors": 4, "rx": 1}},
}
NICS = [
    {"name": "hsn0", "kind": "cxi", "state": "up", "speed_mbps": 200000, "netdevs": ["hsn0"]},
    {"name": "eth0", "numa": 1, "physical": False},
]
OF_RANKS: dict[str, Any] = {
    "rank_number": [0, 1, 0, 1, 0, 1],
    "rank_cores": ["0-3,8", "4", "0-3,8", "", "0-3,8", "é"],
    "rank_numa": [0, 1, -1, 0, 1, 0],
    "rank_nic": ["hsn0", "eth0", "hsn0", "", "hsn0", "hsn0"],
    "rank_pid": [1, 2, 3, 4, 5, 2**22],
    "rank_gpu": ["gpu0"] * 6,
    "rank_gpu_model": ["Instinct \U0001f642"] * 6,
    "rank_gpu_pci": ["0000:01:00.0", "0000:02:00.0"] * 3,
    "mpi": {"library": "none", "standard": "3.1", "init_s": [0.5, 0.25, 1.0, 2.0, 4.0, 0.125]},
}
OF_ROWS: dict[str, Any] = {
    "cpu_wait_s": [0.5, None, 0.0, 1.0, 2.0, 0.25],
    "aggressors": [1, 3],
    "tcp": {
        "ends": ["nid000/hsn0", "nid001/hsn0"],
        "sent": [10, 2**40],
        "received": [9, 8],
        "pairs": [[0, 1, 10, 2, 1], [1, 0, 20, 3, 0]],
        "left_out": 4,
        "knows_spurious": True,
    },
    "counters": {"before": BEFORE, "after": AFTER},
}


def full_run() -> Run:
    """A run of 3 hosts that has all facts of ranks and hosts."""
    nics = {"nid000": NICS, "nid001": [], "nid002": NICS}
    run = with_facts(run_of(list_row()), **OF_RANKS, nics=nics, counters={"before": BEFORE, "after": AFTER})
    return replace(run, rows=(with_facts(run.rows[0], **OF_ROWS),))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_run(tmp_path / "x.run", full_run())
    return tmp_path / "x.run"


def plain(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes with counters as plain dictionaries, without hosts that have no NIC."""
    readings = attributes["counters"].items()
    return {**attributes, "counters": {key: {host: nics for host, nics in of.items() if nics} for key, of in readings}}


def test_facts_of_ranks_and_hosts_are_read_as_written(path: Path) -> None:
    whole, run = full_run(), read_run(path)
    assert plain(attributes_of(run)) == plain(attributes_of(whole))
    assert plain(attributes_of(run.rows[0])) == plain(attributes_of(whole.rows[0]))
    assert run.facts.nics["nid000"] is run.facts.nics["nid002"]


def test_facts_with_stored_counters_are_json_and_attributes_of_any_writer(path: Path, tmp_path: Path) -> None:
    """`show --json` prints them, and users write what they open."""
    run = read_run(path)
    for item in (run, run.rows[0]):
        assert json.loads(json.dumps(attributes_of(item)))["counters"] == plain(attributes_of(item))["counters"]
    open_run(path).to_zarr(tmp_path / "copy.zarr", consolidated=False)
    copied = zarr.open_group(tmp_path / "copy.zarr", mode="r").attrs["counters"]
    assert copied["before"]["nid000"] == BEFORE["nid000"]


def test_each_list_of_ranks_is_an_array(path: Path) -> None:
    """A fact that is added later is written as an array, or this fails."""
    lists = {field.name for field in fields(RunFacts) if field.name.startswith("rank_")}
    assert lists <= {column.array for column in COLUMNS}
    present = {folder.name for folder in (path / "tables").iterdir()}
    present |= {folder.name for folder in path.glob("*/tables/*")}
    assert {column.array for column in COLUMNS} <= present


def test_zarr_reads_the_arrays(path: Path) -> None:
    tables = xarray.open_zarr(path, group="tables", consolidated=False)
    names = tables.rank_nic_values.values[tables.rank_nic.values]
    assert list(names) == OF_RANKS["rank_nic"] and list(tables.hosts.values) == ["nid000", "nid001", "nid002"]
    sent = tables.counters.sel(counter="rx")[:, 0, 0].values
    assert list(sent) == [1, 5] and tables.counters.dims == ("reading", "host", "nic", "counter")
    row = xarray.open_zarr(path, group="pairs/tables", consolidated=False)
    assert row.tcp_pairs.values.tolist() == OF_ROWS["tcp"]["pairs"] and row.sizes["rank"] == 6
    np.testing.assert_array_equal(row.cpu_wait_s, [0.5, np.nan, 0, 1, 2, 0.25])


def metadata_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("zarr.json"))


def test_metadata_do_not_grow_with_ranks_and_hosts(tmp_path: Path) -> None:
    sizes = []
    for count in (20, 2000):
        hosts = [f"nid{host:06}" for host in range(count)]
        ranks: dict[str, Any] = {"rank_nic": ["hsn0"] * count, "rank_pid": list(range(count)), "rank_numa": [0] * count}
        run = with_facts(
            run_of(list_row(ranks=count)),
            hosts=hosts,
            rank_host=list(range(count)),
            nics=dict.fromkeys(hosts, NICS),
            counters={"before": {host: {"hsn0": {"rx": 1}} for host in hosts}},
            **ranks,
        )
        run = replace(run, rows=(with_facts(run.rows[0], cpu_wait_s=[0.5] * count, aggressors=list(range(count))),))
        write_run(tmp_path / f"{count}.run", run)
        sizes.append(metadata_bytes(tmp_path / f"{count}.run"))
    assert sizes[1] - sizes[0] < 200  # digits of lengths


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def remove(file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize("damage", [cut, remove])
@pytest.mark.parametrize(
    "array", ["hosts", "rank_host", "rank_cores", "rank_cores_values", "host_nics", "counter_nics", "mpi_init_s"]
)
def test_a_damaged_table_is_named(path: Path, array: str, damage: Callable[[Path], None]) -> None:
    shutil.rmtree(path / "checksums")
    damage(next((path / "tables" / array).glob("c.*")))
    with pytest.raises(BrokenRunError) as error:
        read_run(path)
    assert str(path / "tables" / array) in str(error.value)


@pytest.mark.parametrize(
    ("array", "change"),
    [
        ("rank_numa", {"data_type": "int64"}),
        ("rank_cores_values", {"data_type": "int32"}),
        ("rank_cores_values", {"shape": [3]}),
        ("counters", {"shape": [2, 4, 2, 3]}),
        ("rank_nic", {"shape": [3, 2]}),
    ],
)
def test_a_table_of_another_form_is_named(path: Path, array: str, change: dict[str, Any]) -> None:
    shutil.rmtree(path / "checksums")
    edit_json(path / "tables" / array / "zarr.json", **change)
    with pytest.raises(BrokenRunError) as error:
        read_run(path)
    assert str(path / "tables" / array) in str(error.value)


def test_indices_beyond_the_names_are_named(path: Path) -> None:
    shutil.rmtree(path / "checksums")
    (path / "tables/rank_nic/c.0").write_bytes(np.full(6, 7, "<i4").tobytes())
    with pytest.raises(BrokenRunError, match="rank_nic: has indices beyond 3 values"):
        read_run(path)


def test_a_damaged_chunk_of_counters_is_refused_by_its_checksum(path: Path) -> None:
    cut(next((path / "tables/counters").glob("c.*")))
    with pytest.raises(BrokenRunError, match="its checksum is not that"):
        read_run(path)


def test_tables_of_another_writer_are_read_through_zarr(path: Path) -> None:
    shutil.rmtree(path / "checksums")
    whole = attributes_of(read_run(path))
    for array, chunks in (("hosts", 2), ("rank_host", 4), ("rank_cores_values", 1)):
        values = zarr.open_array(path / "tables" / array, mode="r")[...]
        shutil.rmtree(path / "tables" / array)
        zarr.create_array(path / "tables" / array, data=values, chunks=(chunks,), compressors="auto")
    assert plain(attributes_of(read_run(path))) == plain(whole)


def test_an_unfinished_reading_is_absent(path: Path) -> None:
    """The engine writes the chunks of the second reading before the metadata count it."""
    shutil.rmtree(path / "checksums")
    edit_json(path / "tables/counters/zarr.json", shape=[1, 3, 2, 3])
    counters = read_run(path).facts.counters
    assert counters.after is None and counters.before is not None and counters.before["nid000"] == BEFORE["nid000"]
