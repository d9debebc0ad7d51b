"""Plain chunk files give what Zarr gives for the same files; whatever is not plain is read through Zarr."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import given, settings, strategies as st
from run_cases import edit_json, list_row, matrix_row, run_of

from fablint.store import read_run, write_run
from fablint.store.chunks import ChunkFiles
from fablint.store.layout import ARRAYS
from fablint.store.metadata import array_node, read_node, replace_node
from fablint.store.plain_arrays import PlainArray, open_plain


def written(folder: Path, name: str, shape: list[int], chunks: list[int], seed: int) -> zarr.Array:
    """An array of that kind as Zarr writes it, with the metadata of the engine; a third of its chunks is missing."""
    kind = ARRAYS[name]
    dimensions = [f"d{index}" for index in range(len(shape))]
    place = folder / name
    place.mkdir()
    replace_node(place, array_node(kind.dtype, dimensions, shape, chunks, kind.fill if seed % 2 else 7))
    array = zarr.open_array(place, mode="r+")
    random = np.random.default_rng(seed)
    array[...] = random.integers(0, 100, shape).astype(kind.dtype)
    for chunk in sorted(place.glob("c.*")):
        if random.random() < 0.3:
            chunk.unlink()
    return zarr.open_array(place, mode="r")


def opened(folder: Path) -> PlainArray | None:
    return open_plain(ChunkFiles(folder.parent), folder, read_node(folder, "array"))


@st.composite
def keys(draw: st.DrawFn, shape: list[int]):
    """Integers and ascending slices for some of the dimensions, perhaps with an ellipsis."""
    words: list[object] = []
    for length in shape:
        edge = st.none() | st.integers(-length - 2, length + 2)
        single = st.integers(-length, length - 1) if length else st.nothing()
        words.append(draw(single | st.builds(slice, edge, edge, st.none() | st.integers(1, 4))))
    if draw(st.booleans()):
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(words))] * 2)))
        words[start:end] = [Ellipsis]
    return tuple(words) if len(words) != 1 or draw(st.booleans()) else words[0]


@settings(max_examples=150)
@given(st.data())
def test_slices_are_those_of_zarr(data):
    shape = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=4))
    # Of three and more dimensions, chunks have a quarter of the length or more: thousands of files show nothing more.
    chunks = [data.draw(st.integers(1 if len(shape) < 3 else 1 + length // 4, 10)) for length in shape]
    name = data.draw(st.sampled_from(sorted(ARRAYS)))
    with tempfile.TemporaryDirectory() as folder:
        expected = written(Path(folder), name, shape, chunks, data.draw(st.integers(0, 9)))
        array = opened(Path(folder) / name)
        assert isinstance(array, PlainArray)
        assert (array.shape, array.chunks, array.ndim) == (expected.shape, expected.chunks, expected.ndim)
        assert array.dtype == expected.dtype
        for _ in range(5):
            key = data.draw(keys(shape))
            np.testing.assert_array_equal(array[key], expected[...][key], strict=True)
            np.testing.assert_array_equal(array[key], np.asarray(expected[key]), strict=True)


@pytest.mark.parametrize("key", [[4, 1, 1], np.array([True, False] * 3), slice(None, None, -1), (None, 2), [[0], [1]]])
def test_other_keys_are_those_of_numpy(tmp_path, key):
    expected = written(tmp_path, "started", [6, 5], [2, 5], 1)
    np.testing.assert_array_equal(opened(tmp_path / "started")[key], expected[...][key], strict=True)


@pytest.mark.parametrize("key", [6, -7, (0, 5), (0, 0, 0), (..., 0, ...), (np.int64(6),)])
def test_places_outside_are_refused(tmp_path, key):
    written(tmp_path, "started", [6, 5], [2, 5], 1)
    with pytest.raises(IndexError):
        opened(tmp_path / "started")[key]


@pytest.mark.parametrize("make_row", [matrix_row, list_row])
def test_all_arrays_of_a_run_are_read_as_by_zarr(tmp_path, make_row):
    write_run(tmp_path / "a.run", run_of(make_row(ranks=7)))
    (row,) = read_run(tmp_path / "a.run").rows
    for name, array in row.arrays.items():
        assert isinstance(opened(tmp_path / "a.run" / row.name / name), PlainArray)
        values = np.asarray(zarr.open_array(tmp_path / "a.run" / row.name / name, mode="r")[...])
        np.testing.assert_array_equal(array[...], values, strict=True)


def big_endian(folder: Path) -> dict[str, object]:
    for chunk in folder.glob("c.*"):
        chunk.write_bytes(np.fromfile(chunk, "<f4").astype(">f4").tobytes())
    return {"codecs": [{"name": "bytes", "configuration": {"endian": "big"}}]}


def in_folders(folder: Path) -> dict[str, object]:
    for chunk in sorted(folder.glob("c.*")):
        place = folder / chunk.name.replace(".", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        chunk.rename(place)
    return {"chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}}


def another_fill(folder: Path) -> dict[str, object]:
    (folder / "c.0.0.0.0").unlink()
    return {"fill_value": "0x40200000"}  # 2.5


def one_key_more(folder: Path) -> dict[str, object]:
    return {"storage_transformers": []}


@pytest.mark.parametrize("change", [big_endian, in_folders, another_fill, one_key_more])
def test_what_another_writer_made_is_read_through_zarr(engine_run, change):
    folder = engine_run / "latency/time_median"
    before = read_run(engine_run).row("latency").arrays["time_median"][...]
    edit_json(folder / "zarr.json", **change(folder))
    assert opened(folder) is None
    values = read_run(engine_run).row("latency").arrays["time_median"][...]
    if change is another_fill:
        assert (values[0, :2] == 2.5).all()
        values[0, :2] = before[0, :2]
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize(
    "attributes",
    [
        {"shape": [2, 6, 6]},
        {"shape": [2, 6, -6, 2]},
        {"shape": [2, 6, 6.0, 2]},
        {"shape": None},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 0, 6, 2]}}},
        {"chunk_grid": {"name": "regular", "configuration": []}},
        {"chunk_grid": []},
        {"dimension_names": ["src"]},
        {"dimension_names": None},
        {"attributes": None},
        {"codecs": None},
        {"fill_value": None},
        {"fill_value": True},
        {"fill_value": "0"},
        {"fill_value": 1e39},
        {"fill_value": "Infinity"},
    ],
)
def test_odd_metadata_is_never_plain(engine_run, attributes):
    folder = engine_run / "latency/time_median"
    edit_json(folder / "zarr.json", **attributes)
    assert opened(folder) is None


def test_a_chunk_that_shrinks_after_the_run_was_opened_is_missing(engine_run):
    array, run = read_run(engine_run).row("latency").arrays["time_median"], read_run(engine_run)
    chunk = engine_run / "latency/time_median/c.0.1.0.0"
    whole, later = array[...], run.row("latency").arrays["time_median"]
    chunk.write_bytes(chunk.read_bytes()[:40])
    values = later[...]
    assert np.isnan(values[0, 2:4]).all()
    np.testing.assert_array_equal(values[1], whole[1])
    (note,) = run.notes
    assert note.startswith(f"{chunk}: cannot be decoded (")


def test_a_run_of_the_engine_is_read_without_zarr(engine_run):
    code = (
        "import sys; from pathlib import Path; from fablint.store import read_run\n"
        "print(sum(array[...].size for row in read_run(Path(sys.argv[1])).rows for array in row.arrays.values()) > 0)\n"
        "print('zarr' in sys.modules, 'xarray' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, engine_run], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "False"]
