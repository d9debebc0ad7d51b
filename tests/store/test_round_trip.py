"""What was written is what is read: by fablint, and by xarray without fablint."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray
from hypothesis import given, settings, strategies as st
from run_cases import list_row, matrix_row, run_of, write_like_the_engine

from fablint.errors import BrokenRunError, IncompleteError, UsageError
from fablint.model import Row, Run
from fablint.store import read_run, write_run
from fact_cases import attributes_of


def assert_same(a: Run, b: Run) -> None:
    assert attributes_of(a) == attributes_of(b)
    assert [row.name for row in a.rows] == [row.name for row in b.rows]
    for row, other in zip(a.rows, b.rows, strict=True):
        assert attributes_of(row) == attributes_of(other)
        assert sorted(row.arrays) == sorted(other.arrays)
        for name in row.arrays:
            values, others = row.arrays[name][...], other.arrays[name][...]
            assert values.dtype == others.dtype
            np.testing.assert_array_equal(values, others, err_msg=name)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Runs of both layouts in which any part may be missing."""
    ranks = draw(st.integers(2, 9))
    sizes = tuple(draw(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=3, unique=True)))
    seed = draw(st.integers(0, 99))
    matrix = matrix_row(ranks=ranks, repeats=draw(st.integers(1, 3)), sizes=sizes, seed=seed)
    listed = list_row(ranks=ranks, rounds=draw(st.integers(1, 4)), sizes=sizes, seed=seed)
    for row, fill in ((matrix, draw(st.floats(0, 1))), (listed, 0.5)):
        gone = np.random.default_rng(seed).random(row.arrays["count"].shape) < fill
        row.arrays["count"][gone] = 0
        for name in row.statistics:
            row.arrays[f"time_{name}"][gone] = np.nan
    return run_of(*draw(st.permutations([matrix, listed])))


@settings(max_examples=25)
@given(runs())
def test_a_run_reads_back_as_it_was_written(run):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.run"
        write_run(path, run)
        again = read_run(path)
        assert again.path == path
        assert not again.notes
        assert_same(run, again)


@settings(max_examples=10)
@given(runs(), st.integers(1, 4))
def test_what_the_engine_writes_is_read(run, rows_per_chunk):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.run"
        write_like_the_engine(path, run, rows_per_chunk)
        assert_same(run, read_run(path))


@pytest.mark.parametrize("write", [write_run, write_like_the_engine])
@pytest.mark.parametrize("make_row", [matrix_row, list_row])
def test_xarray_opens_a_row_without_us_and_without_a_warning(tmp_path, write, make_row):
    row = make_row(ranks=5)
    write(tmp_path / "a.run", run_of(row))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = xarray.open_zarr(tmp_path / "a.run", group=row.name, consolidated=False, chunks=None)
        for name, values in row.arrays.items():
            np.testing.assert_array_equal(dataset[name].values, values)
            assert dataset[name].dtype == values.dtype
    whole = ("repeat", "src", "dst", "size") if row.layout == "matrix" else ("src", "round", "size")
    assert dataset["time_median"].dims == dataset["count"].dims == whole
    assert dataset["started"].dims == whole[:-1]
    assert list(dataset["size"].values) == [8, 1024]
    assert dataset.attrs["kernel"] == "latency"


def test_many_ranks_share_chunk_files(tmp_path):
    row = list_row(ranks=1001, rounds=1, sizes=(8,))
    write_run(tmp_path / "a.run", run_of(row))
    assert len(list((tmp_path / "a.run/pairs/count").glob("c.*"))) == 501
    assert_same(run_of(row), read_run(tmp_path / "a.run"))


def test_a_run_can_be_copied_from_a_directory(tmp_path):
    write_run(tmp_path / "a.run", run_of(matrix_row(ranks=5)))
    write_run(tmp_path / "b.run", read_run(tmp_path / "a.run"))
    assert_same(read_run(tmp_path / "a.run"), read_run(tmp_path / "b.run"))


def test_observations_of_a_directory_are_those_of_memory(tmp_path):
    for row in (matrix_row(), list_row()):
        write_run(tmp_path / row.name, run_of(row))
        (again,) = read_run(tmp_path / row.name).rows
        np.testing.assert_array_equal(again.observations(1024).sent, row.observations(1024).sent)
        np.testing.assert_array_equal(again.observations(8, "p99").received, row.observations(8, "p99").received)


def test_histograms_are_kept(tmp_path):
    row = list_row(ranks=4, rounds=2, sizes=(8,))
    extra = {
        "histogram": np.arange(4 * 2 * 3, dtype=np.uint32).reshape(4, 2, 1, 3),
        "bucket": np.array([1e-6, 2e-6, 4e-6]),
    }
    run = run_of(Row(row.name, row.facts, {**row.arrays, **extra}))
    write_run(tmp_path / "a.run", run)
    assert_same(run, read_run(tmp_path / "a.run"))


def test_an_existing_path_is_refused_and_kept(tmp_path):
    (tmp_path / "a.run").write_text("mine")
    with pytest.raises(UsageError, match=r"a\.run: exists already"):
        write_run(tmp_path / "a.run", run_of(list_row()))
    assert (tmp_path / "a.run").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_missing_parent_is_refused(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        write_run(tmp_path / "no/a.run", run_of(list_row()))


def test_a_wrong_shape_is_refused_and_leaves_nothing(tmp_path):
    row = list_row(ranks=6)
    broken = Row(row.name, row.facts, {**row.arrays, "started": row.arrays["started"][:, :2]})
    with pytest.raises(BrokenRunError, match=r"row pairs/started: its shape \(src, round\) is 6 x 2, not 6 x 3"):
        write_run(tmp_path / "a.run", run_of(broken))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(IncompleteError, match=r"a\.run: cannot be written \(No space left on device\)"):
        write_run(tmp_path / "a.run", run_of(list_row()))
    assert list(tmp_path.iterdir()) == []
