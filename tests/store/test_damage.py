"""Runs that were killed, copied half, edited by hand, or written by a later version."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import zarr
from run_cases import edit_json, list_row, matrix_row, run_of, write_like_the_engine

from fablint.errors import BrokenRunError, FablintError, UsageError
from fablint.store import missing_rounds, open_run, read_run
from fact_cases import attributes_of
from pinned import pinned_by

PINNED = pinned_by("store.toml", __file__)

CHUNK = "c.0.1.0.0"  # repeat 0, source ranks 2 and 3


def refusal(path) -> str:
    with pytest.raises(FablintError) as caught:
        read_run(path)
    assert isinstance(caught.value, UsageError | BrokenRunError)
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    return str(caught.value)


# ------------------------------------------------------------------------------------------------ killed


def test_a_run_killed_before_its_second_row(engine_run):
    shutil.rmtree(engine_run / "pairs")
    edit_json(engine_run / "zarr.json", state="measuring")
    run = read_run(engine_run)
    assert run.state == "measuring"
    assert [row.name for row in run.rows] == ["latency"]
    assert [*run.notes] == [f"{engine_run / 'pairs'}: the row was not started"]


@pytest.mark.parametrize("gone", ["size", "count", "round"])
def test_a_run_killed_while_a_row_was_laid_out(engine_run, gone):
    shutil.rmtree(engine_run / "latency" / gone)
    edit_json(engine_run / "latency/zarr.json", state="measuring")
    run = read_run(engine_run)
    assert [row.name for row in run.rows] == ["pairs"]
    assert len(run.notes) == 1


def test_a_run_killed_before_its_first_chunk(engine_run):
    for chunk in engine_run.glob("*/*/c.*"):
        if chunk.parent.name != "size" and chunk.parent.parent.name != "tables":
            chunk.unlink()
    run = read_run(engine_run)
    for row in run.rows:
        assert np.isnan(row.observations(8).sent).all()
        assert missing_rounds(row) == list(range(row.facts.schedule.rounds))
    assert not run.notes


def test_a_run_killed_in_the_middle_of_a_chunk(tmp_path):
    row = matrix_row(repeats=1)
    whole = {name: values.copy() for name, values in row.arrays.items()}
    gone = row.arrays["round"] >= 3  # rounds 3 and 4 were to come
    row.arrays["round"][gone] = -1
    row.arrays["started"][gone] = np.nan
    row.arrays["count"][gone] = 0
    for statistic in row.statistics:
        row.arrays[f"time_{statistic}"][gone] = np.nan
    write_like_the_engine(tmp_path / "a.run", run_of(row, state="measuring"))
    for array in row.arrays:
        (tmp_path / "a.run/latency" / array / "c.0.2.0.0").unlink(missing_ok=True)  # never came to ranks 4 and 5
    (again,) = read_run(tmp_path / "a.run").rows
    sent = again.observations(8).sent
    expected = np.where(gone[0], np.nan, whole["time_median"][0, :, :, 0])
    expected[4:] = np.nan
    np.testing.assert_array_equal(sent, expected)
    assert missing_rounds(again) == [0, 1, 2, 3, 4]


# ------------------------------------------------------------------------------------------------ damaged chunks


@pytest.mark.parametrize("length", [0, 1, 95])
def test_a_truncated_chunk_is_named_and_only_its_cells_are_lost(engine_run, length):
    chunk = engine_run / "latency/time_median" / CHUNK
    whole = read_run(engine_run).row("latency").arrays["time_median"][...]
    chunk.write_bytes(chunk.read_bytes()[:length])
    run = read_run(engine_run)
    (note,) = run.notes
    assert PINNED["chunk length bytes where"].filled(chunk=chunk, length=length).begins(note)
    values = run.row("latency").arrays["time_median"][...]
    assert np.isnan(values[0, 2:4]).all()
    values[0, 2:4] = whole[0, 2:4]
    np.testing.assert_array_equal(values, whole)
    assert missing_rounds(run.row("latency")) == [0, 1, 2, 3, 4]  # of repeat 0; every round of it has rank 2
    assert missing_rounds(run.row("pairs")) == []


def test_a_deleted_chunk_is_simply_missing(engine_run):
    (engine_run / "latency/count" / CHUNK).unlink()
    run = read_run(engine_run)
    assert not run.notes
    assert (run.row("latency").arrays["count"][0, 2:4] == 0).all()
    assert missing_rounds(run.row("latency")) == [0, 1, 2, 3, 4]


def test_an_undecodable_compressed_chunk_is_named_when_it_is_read(engine_run):
    values = read_run(engine_run).row("latency").arrays["time_median"][...]
    folder = engine_run / "latency/time_median"
    shutil.rmtree(folder)
    zarr.create_array(
        folder, data=values, chunks=(1, 2, 6, 2), fill_value=np.nan, dimension_names=["repeat", "src", "dst", "size"]
    )
    chunk = folder / "c/1/0/0/0"
    np.testing.assert_array_equal(read_run(engine_run).row("latency").arrays["time_median"][...], values)
    chunk.write_bytes(b"nonsense" + chunk.read_bytes()[8:])
    run = read_run(engine_run)
    again = run.row("latency").arrays["time_median"][:, :, 1]
    assert np.isnan(again[1, 0:2]).all()
    np.testing.assert_array_equal(again[:, 2:], values[:, 2:, 1])
    np.testing.assert_array_equal(again[0], values[0, :, 1])
    (note,) = run.notes
    assert note.startswith(f"{chunk}: cannot be decoded (")


def test_asking_for_a_place_outside_is_still_an_error(engine_run):
    run = read_run(engine_run)
    with pytest.raises(IndexError):
        run.row("latency").arrays["time_median"][9]
    assert not run.notes


@pytest.mark.parametrize("value", [-1e-6, 0.0, float("inf"), float("-inf")])
def test_impossible_times_are_missing(engine_run, value):
    chunk = engine_run / "latency/time_median" / CHUNK
    cells = np.fromfile(chunk, "<f4").reshape(1, 2, 6, 2)
    cells[0, 0, 5, 0] = value  # 2 -> 5 at size 8
    cells.tofile(chunk)
    run = read_run(engine_run)
    row = run.row("latency")
    values = row.arrays["time_median"][...]
    assert np.isnan(values[0, 2, 5, 0])
    assert np.isnan(values).sum() == np.isnan(row.arrays["time_min"][...]).sum() + 1
    row.arrays["time_median"][...]
    (note,) = run.notes
    assert PINNED["engine_run holds times"].filled(engine_run=engine_run / "latency/time_median").begins(note)
    assert missing_rounds(row) == [int(row.arrays["round"][0, 2, 5])]
    assert np.isnan(row.arrays["time_median"][0, 2, 5, 0])


def test_a_chunk_with_bytes_of_another_file_is_damaged_as_a_whole(engine_run):
    chunk = engine_run / "latency/time_median" / CHUNK
    bits = np.random.default_rng(3).integers(0, 2**32, chunk.stat().st_size // 4, dtype=np.uint32)
    bits.tofile(chunk)
    run = read_run(engine_run)
    row = run.row("latency")
    kept = np.asarray(row.arrays["time_min"][...])
    kept[0, 2:4] = np.nan
    assert (np.isnan(row.arrays["time_median"][...]) == np.isnan(kept)).all()
    assert PINNED["chunk damaged (times below"].filled(chunk=chunk).begins(next(iter(run.notes)))


def test_the_null_transport_may_take_no_time(engine_run):
    edit_json(engine_run / "latency/zarr.json", transport="null")
    chunk = engine_run / "latency/time_min" / CHUNK
    chunk.write_bytes(bytes(96))
    run = read_run(engine_run)
    assert (run.row("latency").arrays["time_min"][0, 2:4] == 0).all()
    assert not run.notes


def test_partners_that_do_not_exist_are_missing(engine_run):
    chunk = engine_run / "pairs/dst/c.0.0"
    cells = np.fromfile(chunk, "<i4")
    cells[0] = 6
    cells.tofile(chunk)
    run = read_run(engine_run)
    assert run.row("pairs").arrays["dst"][0, 0] == -1
    assert [*run.notes] == [PINNED["engine_run holds values outside"].filled(engine_run=engine_run / "pairs/dst")]


# ------------------------------------------------------------------------------------------------ damaged metadata


def test_no_run_at_all(tmp_path):
    assert "no such run" in refusal(tmp_path / "a.run")
    assert "not a run directory" in refusal(tmp_path)
    (tmp_path / "file").write_text("x")
    assert "not a run directory" in refusal(tmp_path / "file")


@pytest.mark.parametrize("node", ["zarr.json", "latency/zarr.json", "latency/count/zarr.json"])
@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"zarr_format": 2, "node_type": "group"}', "\xff"])
def test_metadata_that_is_no_metadata_is_named(engine_run, node, text):
    (engine_run / node).write_text(text, encoding="latin-1")
    assert refusal(engine_run).startswith(f"{engine_run / node}: ")


def test_a_newer_format_is_refused_by_number(engine_run):
    edit_json(engine_run / "zarr.json", format=2)
    assert refusal(engine_run) == PINNED["engine_run format 2"].filled(engine_run=engine_run / "zarr.json")


@pytest.mark.parametrize(
    ("node", "attributes", "error"),
    [
        ("zarr.json", {"format": "1"}, "no format number"),
        ("zarr.json", {"ranks": "6"}, "attribute ranks is missing or not of type int"),
        ("zarr.json", {"ranks": 7}, "attribute rank_host does not give one of the hosts to each of the ranks"),
        ("zarr.json", {"state": "fine"}, "state 'fine' is unknown"),
        ("latency/zarr.json", {"layout": "cube"}, "layout 'cube' is unknown"),
        ("latency/zarr.json", {"kernel": None}, "attribute kernel is missing"),
        ("pairs/zarr.json", {"cells_per_round": [6]}, "attribute cells_per_round does not fit 3 rounds"),
        ("latency/count/zarr.json", {"data_type": "uint64"}, "type uint64 where uint32 belongs"),
        ("latency/count/zarr.json", {"chunk_grid": {"name": "odd"}}, ""),
        ("latency/count/zarr.json", {"codecs": []}, ""),
    ],
)
def test_wrong_metadata_is_named(engine_run, node, attributes, error):
    edit_json(engine_run / node, **attributes)
    assert refusal(engine_run).startswith(f"{engine_run / node}: {error}")


def test_a_wrong_shape_is_named(engine_run):
    edit_json(engine_run / "latency/started/zarr.json", shape=[2, 6, 5])
    assert (
        PINNED["engine_run its shape (repeat"]
        .filled(engine_run=engine_run / "latency/started")
        .begins(refusal(engine_run))
    )


@pytest.mark.parametrize(
    ("gone", "error"), [("count", "array count is missing"), ("time_*", "array time_* is missing")]
)
def test_a_complete_row_without_an_array_is_refused(engine_run, gone, error):
    for folder in (engine_run / "latency").glob(gone):
        shutil.rmtree(folder)
    assert refusal(engine_run).startswith(f"{engine_run / 'latency'}: {error}")


def test_what_this_version_does_not_know_is_left_alone(engine_run):
    edit_json(engine_run / "zarr.json", later="yes")
    shutil.copytree(engine_run / "latency/time_min", engine_run / "latency/energy")
    run = read_run(engine_run)
    assert attributes_of(run)["later"] == "yes"
    assert "energy" not in run.row("latency").arrays


# ------------------------------------------------------------------------------------------------ labels


def test_labels(engine_run):
    tree = open_run(engine_run)
    assert tree.attrs["ranks"] == 6
    assert set(tree.children) == {"latency", "pairs"}
    latency, row = tree["latency"].to_dataset(), read_run(engine_run).row("latency")
    picked = latency["time_median"].sel(src=3, dst=0, size=1024, repeat=1)
    assert picked.item() == row.arrays["time_median"][1, 3, 0, 1]
    assert (picked.src_host.item(), picked.dst_host.item()) == ("nid001", "nid000")
    whole = latency["time_p99"].sel(size=8).transpose("dst", "src", "repeat")
    np.testing.assert_array_equal(whole.values, row.arrays["time_p99"][:, :, :, 0].transpose(2, 1, 0))
    np.testing.assert_array_equal(latency["started"].sel(src=[4, 1]).values, row.arrays["started"][...][:, [4, 1]])
    pairs = tree["pairs"].to_dataset()
    assert pairs["dst"].dims == ("src", "round")
    assert pairs["dst"].sel(src=0, round=0).item() == list_row().arrays["dst"][0, 0]
    assert list(pairs["src_host"].values) == ["nid000", "nid000", "nid001", "nid001", "nid002", "nid002"]


def test_labels_of_a_broken_run(engine_run):
    chunk = engine_run / "latency/time_median" / CHUNK
    chunk.write_bytes(b"")
    tree = open_run(engine_run)
    assert str(chunk) in tree.attrs["notes"][0]
    assert np.isnan(tree["latency"]["time_median"].sel(src=2, repeat=0)).all()
    with pytest.raises(UsageError, match="no such run"):
        open_run(engine_run / "nowhere")


def test_nothing_is_loaded_before_it_is_used(engine_run):
    tree = open_run(engine_run)
    for chunk in (engine_run / "latency/time_max").glob("c.*"):
        chunk.unlink()
    assert np.isnan(tree["latency"]["time_max"]).all()


def test_the_helper_writes_what_the_page_says(engine_run):
    """The tests stand on the helper: its metadata is what Zarr's own writer makes of the same array."""
    node = json.loads((engine_run / "latency/round/zarr.json").read_text())
    own = zarr.create_array(
        engine_run / "own",
        shape=(2, 6, 6),
        chunks=(1, 2, 6),
        dtype="int32",
        fill_value=-1,
        compressors=None,
        dimension_names=["repeat", "src", "dst"],
        chunk_key_encoding={"name": "default", "separator": "."},
    )
    own[:] = read_run(engine_run).row("latency").arrays["round"][...]
    written = json.loads((engine_run / "own/zarr.json").read_text())
    assert {key: written[key] for key in node} == node
    for chunk in (engine_run / "own").glob("c.*"):
        assert chunk.read_bytes() == (engine_run / "latency/round" / chunk.name).read_bytes()
