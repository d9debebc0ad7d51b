"""Exports open again in other programs, with the same numbers."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray
from pyarrow import parquet
from run_cases import list_row, matrix_row, run_of

from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.store import export_run, import_run, layout, read_run
from fablint.store.export import FORMATS
from fablint.store.export.table import COLUMNS
from fact_cases import row_facts
from pinned import pinned_by

PINNED = pinned_by("store.toml", __file__)


@pytest.fixture(params=[1, 1 << 25], ids=["many blocks", "one block"])
def run(request, engine_run, monkeypatch) -> Run:
    monkeypatch.setattr(layout, "BLOCK_BYTES", request.param)
    return read_run(engine_run)


def test_netcdf_opens_with_labels(run, tmp_path):
    export_run(run, "netcdf", tmp_path / "a.nc")
    with xarray.open_datatree(tmp_path / "a.nc", engine="h5netcdf") as tree:
        for row in run.rows:
            dataset = tree[row.name].to_dataset()
            for name, array in row.arrays.items():
                np.testing.assert_array_equal(dataset[name].values, array[...], err_msg=name)
                assert dataset[name].dtype == array.dtype
            assert list(dataset["src_host"].values) == run.rank_host
        one = tree["latency"]["time_mean"].sel(repeat=1, src=5, dst=0, size=8)
        assert one.item() == run.row("latency").arrays["time_mean"][1, 5, 0, 0]
        assert (one.src_host.item(), one.dst_host.item()) == ("nid002", "nid000")
        assert tree.attrs["ranks"] == 6
        assert json.loads(tree.attrs["hosts"]) == run.hosts
        assert json.loads(tree["latency"].attrs["stop"])["samples"] == 100
        assert tree["latency"].attrs["kernel"] == "latency"
        assert json.loads(tree["latency"].attrs["validate"]) is False


def test_hdf5_opens_with_h5py(run, tmp_path):
    export_run(run, "hdf5", tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        latency = file["latency"]
        np.testing.assert_array_equal(latency["time_median"][1], run.row("latency").arrays["time_median"][1])
        assert [dim[0].name.rpartition("/")[2] for dim in latency["started"].dims] == ["repeat", "src", "dst"]
        assert latency["src_host"].asstr()[4] == "nid002"
        assert latency["size"][:].tolist() == [8, 1024]
        np.testing.assert_array_equal(file["pairs/dst"][:], run.row("pairs").arrays["dst"][...])


def expected_lines(run: Run) -> set[tuple]:
    """Every measured cell by plain loops."""
    lines = set()
    for row in run.rows:
        count, median = row.arrays["count"][...], row.arrays["time_median"][...]
        for place in np.argwhere(count > 0):
            *pair, size = place
            if row.layout == "matrix":
                _, src, dst = pair
                number = row.arrays["round"][...][tuple(pair)]
            else:
                src, number = pair
                dst = row.arrays["dst"][...][src, number]
            started = row.arrays["started"][...][tuple(pair)]
            hosts = (run.rank_host[src], run.rank_host[dst])
            facts = (row.name, row.kernel, int(src), int(dst), *hosts, row.sizes[size], int(number), float(started))
            lines.add((*facts, int(count[tuple(place)]), float(median[tuple(place)])))
    return lines


def test_csv_has_one_line_per_measured_pair_and_size(run, tmp_path):
    export_run(run, "csv", tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        header, *lines = csv.reader(file)
    assert tuple(header) == COLUMNS
    types = (str, str, int, int, str, str, int, int, float, int)
    median = COLUMNS.index("time_median")
    found = [
        (*(kind(text) for kind, text in zip(types, line, strict=False)), float(np.float32(line[median])))
        for line in lines
    ]
    assert len(found) == len(set(found))
    assert set(found) == expected_lines(run)


def test_parquet_has_the_same_lines_with_types(run, tmp_path):
    export_run(run, "parquet", tmp_path / "a.parquet")
    table = parquet.read_table(tmp_path / "a.parquet")
    assert tuple(table.column_names) == COLUMNS
    assert str(table.schema.field("time_median").type) == "float"
    lines = table.select([*COLUMNS[:10], "time_median"]).to_pylist()
    assert {tuple(line.values()) for line in lines} == expected_lines(run)


def test_numbers_that_are_not_known_are_empty(tmp_path):
    row = list_row(ranks=3, rounds=1, sizes=(8,))
    kept = {name: row.arrays[name] for name in ("time_mean", "count", "dst", "size")}
    run = run_of(Row(row.name, row.facts, kept))
    export_run(run, "csv", tmp_path / "a.csv")
    export_run(run, "parquet", tmp_path / "a.parquet")
    with (tmp_path / "a.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 2  # one rank of three is idle
    for line, typed in zip(lines, parquet.read_table(tmp_path / "a.parquet").to_pylist(), strict=True):
        assert line["started"] == line["time_median"] == ""
        assert typed["started"] is typed["time_median"] is None
        assert float(line["time_mean"]) == pytest.approx(typed["time_mean"], rel=1e-6)


def with_samples(row: Row) -> Row:
    """The row with the 90th percentile, and a histogram of 100 samples in two of three buckets."""
    times = row.arrays["time_max"][..., None] * np.float32(0.5)
    histogram = (row.arrays["count"][..., None] * [0.25, 0.0, 0.75]).astype(np.uint32)
    more = {"percentile_time": times, "percentile": np.array([90.0])}
    more |= {"histogram": histogram, "bucket": np.array([1e-6, 2e-6, 4e-6])}
    return Row(row.name, row.facts, row.arrays | more)


def test_percentiles_and_histograms_are_columns_of_their_own(tmp_path):
    run = run_of(matrix_row("plain", ranks=4, sizes=(8,)), with_samples(list_row(ranks=4, sizes=(8,))))
    export_run(run, "csv", tmp_path / "a.csv")
    export_run(run, "parquet", tmp_path / "a.parquet")
    with (tmp_path / "a.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert tuple(lines[0]) == (*COLUMNS, "time_p90", "histogram")
    for line, typed in zip(lines, parquet.read_table(tmp_path / "a.parquet").to_pylist(), strict=True):
        if line["row"] == "plain":
            assert (line["time_p90"], line["histogram"]) == ("", "")
            assert (typed["time_p90"], typed["histogram"]) == (None, None)
        else:
            assert (
                float(line["time_p90"])
                == pytest.approx(float(line["time_max"]) / 2)
                == pytest.approx(typed["time_p90"])
            )
            assert json.loads(line["histogram"]) == [[1e-6, 25], [4e-6, 75]]
            assert typed["histogram"] == [(1e-6, 25), (4e-6, 75)]


def test_npy_has_percentiles_and_the_sum_of_the_histograms(tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "BLOCK_BYTES", 1)
    rows = with_samples(matrix_row(ranks=4, repeats=2, sizes=(8,))), with_samples(list_row(ranks=4, sizes=(8,)))
    export_run(run_of(*rows), "npy", tmp_path / "a")
    matrix, listed = rows
    assert np.load(tmp_path / "a/latency.histogram.8.npy")[0, 1].tolist() == [50, 0, 150]
    assert np.load(tmp_path / "a/pairs.bucket.npy").tolist() == [1e-6, 2e-6, 4e-6]
    np.testing.assert_array_equal(np.load(tmp_path / "a/pairs.histogram.8.npy"), listed.arrays["histogram"][:, :, 0])
    np.testing.assert_allclose(
        np.load(tmp_path / "a/latency.p90.8.npy")[1, 2], matrix.arrays["percentile_time"][:, 1, 2, 0, 0].mean()
    )


def test_a_run_without_a_measured_cell_has_a_header_only(tmp_path):
    row = list_row(ranks=4)
    row.arrays["count"][:] = 0
    export_run(run_of(row), "csv", tmp_path / "a.csv")
    export_run(run_of(row), "parquet", tmp_path / "a.parquet")
    assert (tmp_path / "a.csv").read_text() == ",".join(COLUMNS) + "\n"
    assert parquet.read_table(tmp_path / "a.parquet").num_rows == 0


def test_npy_matrices(tmp_path):
    run = run_of(matrix_row(repeats=1), list_row())
    export_run(run, "npy", tmp_path / "a")
    matrix = np.load(tmp_path / "a/latency.p99.1024.npy")
    np.testing.assert_array_equal(matrix, run.row("latency").arrays["time_p99"][0, :, :, 1])
    assert np.load(tmp_path / "a/pairs.median.8.npy").shape == (6, 3)
    np.testing.assert_array_equal(np.load(tmp_path / "a/pairs.partner.npy"), run.row("pairs").arrays["dst"])
    assert (tmp_path / "a/hosts.txt").read_text().split() == run.rank_host
    assert len(list((tmp_path / "a").iterdir())) == 2 * 5 * 2 + 2


@pytest.mark.parametrize("to", FORMATS)
def test_nothing_is_overwritten(to, tmp_path):
    (tmp_path / "a").write_text("mine")
    with pytest.raises(UsageError, match="a: exists already"):
        export_run(run_of(list_row()), to, tmp_path / "a")
    with pytest.raises(UsageError, match="does not exist"):
        export_run(run_of(list_row()), to, tmp_path / "no/a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(("to", "package"), [("netcdf", "h5netcdf"), ("hdf5", "h5netcdf"), ("parquet", "pyarrow")])
def test_a_missing_package_is_named(to, package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError) as caught:
        export_run(run_of(list_row()), to, tmp_path / "a")
    assert str(caught.value) == PINNED["export to to needs package"].filled(to=to, package=package)


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(UsageError, match="unknown format 'excel': choose one of netcdf, hdf5, csv, parquet, npy"):
        export_run(run_of(list_row()), "excel", tmp_path / "a")


@pytest.mark.parametrize(
    "name", ["nccl_tests/nccl-tests-2.13-all_reduce-synthetic.txt", "outside/21-nccl-split-by-node.txt"]
)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_collective_is_exported_without_a_partner(tmp_path, name, form):
    run = import_run([Path(__file__).parents[1] / "fixtures" / name])
    export_run(run, form, tmp_path / "a")
    if form == "csv":
        with (tmp_path / "a").open() as file:
            lines = list(csv.DictReader(file))
        partners = [line["dst"] for line in lines]
    else:
        lines = parquet.read_table(tmp_path / "a").to_pylist()
        partners = [line["dst"] or "" for line in lines]
    assert len(lines) == sum(int((np.asarray(row.arrays["count"]) > 0).sum()) for row in run.rows) > 0
    assert {*partners, *(line["dst_host"] for line in lines)} == {""}
    assert {line["src_host"] for line in lines} == {run.hosts[0]}
    times = [float(line["time_mean"]) for line in lines]
    assert times == pytest.approx([t for row in run.rows for t in np.asarray(row.arrays["time_mean"])[0].ravel()])


def test_a_run_of_pairs_and_a_collective_is_exported_whole(tmp_path):
    pairs, other = list_row("pairs"), list_row("allreduce")
    facts = {"kernel": "allreduce", "pattern": "world", "layout": "list"}
    arrays = dict(other.arrays) | {"dst": np.full_like(other.arrays["dst"], -1)}
    run = run_of(pairs, Row("allreduce", row_facts(facts), arrays))
    export_run(run, "csv", tmp_path / "a.csv")
    with (tmp_path / "a.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len([line for line in lines if line["row"] == "allreduce"]) == int((other.arrays["count"] > 0).sum())
    assert {(line["row"], line["dst"] == "") for line in lines} == {("allreduce", True), ("pairs", False)}
    assert {line["src_host"] for line in lines} == set(run.hosts)
