"""Checksums of a run: each changed bit of a complete row is noticed, and nothing else is lost."""

from __future__ import annotations

import random
import shutil
import subprocess

import numpy as np
import pytest
import zarr
from run_cases import edit_json, list_row, matrix_row, run_of

from fablint.errors import BrokenRunError
from fablint.store import absorb, discard_damaged, missing_rounds, read_run, set_state, write_checksums, write_run
from fablint.store.checksums import checksum
from pinned import pinned_by

PINNED = pinned_by("store.toml", __file__)

FLIPS = 60
CHUNK = "latency/time_median/c.0.1.0.0"  # repeat 0, source rank 1


@pytest.fixture
def run(tmp_path):
    """A complete run with checksums: an all-pairs row `latency` and a row `pairs` of matchings, 6 ranks."""
    write_run(tmp_path / "a.run", run_of(matrix_row(), list_row()))
    return tmp_path / "a.run"


def contents(run) -> dict[str, np.ndarray]:
    """All arrays of all rows."""
    return {f"{row.name}/{name}": np.asarray(array[...]) for row in run.rows for name, array in row.arrays.items()}


def flip(file, bit: int) -> None:
    octets = bytearray(file.read_bytes())
    octets[bit // 8] ^= 1 << bit % 8
    file.write_bytes(octets)


def test_sha256sum_verifies_a_run(run):
    files = sorted(file.name for file in (run / "checksums").iterdir())
    assert files == ["latency.sha256", "pairs.sha256", "zarr.json.sha256"]
    command = ["sha256sum", "--check", "--strict", "--quiet", *(f"checksums/{name}" for name in files)]
    assert subprocess.run(command, cwd=run).returncode == 0
    flip(run / CHUNK, 7)
    assert subprocess.run(command, cwd=run, capture_output=True).returncode == 1


def test_every_flipped_bit_is_noticed(run):
    """Of chunks, metadata and the checksums themselves. Cells of other chunks keep their values."""
    whole = contents(read_run(run))
    chosen = random.Random(20261125)
    files = sorted(file for file in run.rglob("*") if file.is_file())
    assert {file.name for file in files if file.parent == run / "checksums"}
    for _ in range(FLIPS):
        file = chosen.choice(files)
        before = file.read_bytes()
        flip(file, chosen.randrange(8 * len(before)))
        try:
            again = read_run(run)
            values = contents(again)
        except BrokenRunError as error:
            assert file == run / "zarr.json" or run / "tables" in file.parents, error
            assert str(file) in str(error)
        else:
            assert any(str(file) in note for note in again.notes), (file, again.notes)
            assert_only_cells_of(file.relative_to(run).as_posix(), values, whole)
            assert bool(again.damaged) == ("checksums" not in file.parts)
        file.write_bytes(before)
    assert not read_run(run).damaged


def assert_only_cells_of(key: str, values, whole) -> None:
    """Assert that the values differ from the whole at most in what the file holds, and are missing there."""
    row, *rest = key.split("/")
    for name, expected in whole.items():
        if name not in values:
            assert name.startswith(f"{row}/")  # metadata of the row
            assert rest[-1] == "zarr.json" or rest[0] == "size"
        elif name != "/".join(key.split("/")[:2]):
            np.testing.assert_array_equal(values[name], expected)
        else:
            place = [int(index) for index in rest[1].split(".")[1:]]
            at = tuple(place[:2]) if row == "latency" else place[0]
            kept = values[name].copy()
            kept[at] = expected[at]
            np.testing.assert_array_equal(kept, expected)
            assert not (values[name][at] == expected[at])[~is_missing(expected[at])].any()


def is_missing(values: np.ndarray) -> np.ndarray:
    return np.isnan(values) if values.dtype.kind == "f" else values <= 0 if values.dtype.kind == "u" else values < 0


def test_a_damaged_chunk_is_measured_again_by_a_resume(run):
    flip(run / CHUNK, 3)
    flip(run / "pairs/started/c.2.0", 60)
    discard_damaged(run)
    assert not (run / CHUNK).exists()
    again = read_run(run)
    assert not again.damaged
    counts = again.row("latency").arrays["count"][...]
    assert not counts[0, 1].any()
    assert counts[1, 1].any()
    assert missing_rounds(again.row("latency")) == [0, 1, 2, 3, 4]
    assert missing_rounds(again.row("pairs")) == [0, 1, 2]
    assert [file.name for file in (run / "checksums").iterdir()] == ["zarr.json.sha256"]


def test_files_outside_the_row_are_not_removed(run):
    """A crafted file of checksums names files of the user."""
    outside = run.parent / "thesis.txt"
    outside.write_text("kept")
    keys = ["../thesis.txt", str(outside), "latency/../../thesis.txt", "pairs/zarr.json", "thesis.txt"]
    lines = "".join(f"{'0' * 64}  {key}\n" for key in keys)
    (run / "checksums" / "latency.sha256").write_text(f"{lines}# sha256 of these lines: {checksum(lines.encode())}\n")
    discard_damaged(run)
    assert outside.read_text() == "kept"
    assert (run / "pairs" / "zarr.json").exists()
    assert not read_run(run).damaged


def test_a_row_with_damaged_metadata_is_measured_again_as_a_whole(run):
    edit_json(run / "pairs/zarr.json", kernel="bandwidth")
    again = read_run(run)
    assert [row.name for row in again.rows] == ["latency"]
    (note,) = again.notes
    assert PINNED["run its checksum"].filled(run=run / "pairs/zarr.json").begins(note)
    discard_damaged(run)
    assert not (run / "pairs").exists()
    assert [*read_run(run).notes] == [f"{run / 'pairs'}: the row was not started"]


def test_a_deleted_chunk_is_named(run):
    (run / CHUNK).unlink()
    again = read_run(run)
    assert [*again.damaged] == [CHUNK]
    assert PINNED["chunk was deleted: its cells"].filled(chunk=run / CHUNK).begins(again.notes[0])


def test_a_row_without_checksums_is_read_as_it_is(run):
    shutil.rmtree(run / "checksums")
    flip(run / CHUNK, 0)  # the last digit of a time
    again = read_run(run)
    contents(again)
    assert not again.notes
    assert not again.damaged


def test_repacked_arrays_are_verified_too(run):
    folder = run / "latency/time_median"
    values = read_run(run).row("latency").arrays["time_median"][...]
    shutil.rmtree(folder)
    zarr.create_array(
        folder, data=values, chunks=(1, 1, 6, 2), fill_value=np.nan, compressors=None, dimension_names=[*"rsds"]
    )
    (run / "checksums/latency.sha256").unlink()
    write_checksums(run, ["latency"])
    np.testing.assert_array_equal(read_run(run).row("latency").arrays["time_median"][...], values)
    flip(folder / "c/0/1/0/0", 3)
    again = read_run(run)
    assert np.isnan(again.row("latency").arrays["time_median"][0, 1]).all()
    assert [*again.damaged] == ["latency/time_median/c/0/1/0/0"]


def test_a_new_state_has_new_checksums(run):
    set_state(run, "interrupted")
    assert read_run(run).state == "interrupted"
    flip(run / "tables/hosts/c.0", 40)
    with pytest.raises(BrokenRunError, match="its checksum is not that"):
        read_run(run)


def test_moved_cells_have_new_checksums(tmp_path):
    write_run(tmp_path / "a.run", run_of(list_row()))
    lacking = list_row()
    lacking.arrays["count"][:, 1] = 0
    write_run(tmp_path / "b.run", run_of(lacking))
    absorb(tmp_path / "b.run", tmp_path / "a.run")
    again = read_run(tmp_path / "b.run")
    assert missing_rounds(again.row("pairs")) == []
    assert not again.notes
    flip(tmp_path / "b.run/pairs/count/c.0.0.0", 5)
    again = read_run(tmp_path / "b.run")
    assert missing_rounds(again.row("pairs"))
    assert again.damaged
