"""A run that grows: rows are added to it, launch by launch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from real_mpi import Mpi, one_line

from fablint.store import missing_rounds, read_run, set_state
from fablint.store.facts.table_arrays import write_texts
from pinned import pinned_by

PINNED = pinned_by("engine.toml", __file__)

FIRST = "latency --name latency --pattern rounds --rounds-file rounds/latency.txt --sizes 8 --samples 3"
NEXT = "latency --name again --pattern rounds --rounds-file rounds/again.txt --sizes 8 --samples 3"


@pytest.fixture
def path(mpi: Mpi, tmp_path: Path) -> Path:
    """A run of four ranks that has measured two rounds of its own."""
    path = tmp_path / "a.run"
    (path / "rounds").mkdir(parents=True)
    (path / "rounds" / "latency.txt").write_text("0-1 2-3\n0-2\n")
    ended = mpi.run(4, "--plan", "-", "-o", path, text=FIRST)
    assert ended.status == 0, ended.errors
    return path


def test_rows_are_added_and_those_that_are_complete_stay_as_they_are(mpi: Mpi, path: Path) -> None:
    before = (path / "latency" / "zarr.json").read_bytes()
    (path / "rounds" / "again.txt").write_text("1-3\n")
    ended = mpi.run(4, "--plan", "-", "--resume", "-o", path, text=f"{FIRST} --only-rounds none\n{NEXT}")
    assert ended.status == 0, ended.errors
    run = read_run(path)
    assert run.state == "complete"
    assert run.facts.rows == ["latency", "again"]
    assert [line.split()[2] for line in run.facts.plan] == ["latency", "again"]
    assert (path / "latency" / "zarr.json").read_bytes() == before
    assert run.row("again").arrays["dst"][:].tolist() == [[-1], [3], [-1], [1]]
    assert all(missing_rounds(row) == [] for row in run.rows)
    assert (path / "launch-1" / "zarr.json").exists()


def test_a_run_that_was_moved_finds_its_rounds(mpi: Mpi, path: Path) -> None:
    for chunk in (path / "latency" / "count").glob("c.*"):
        chunk.unlink()
    assert missing_rounds(read_run(path).rows[0]) == [0, 1]
    moved = path.rename(path.parent / "b.run")
    ended = mpi.run(4, "--plan", "-", "--resume", "-o", moved, text=f"{FIRST} --only-rounds 0-1")
    assert ended.status == 0, ended.errors
    assert missing_rounds(read_run(moved).rows[0]) == []


def test_the_front_end_may_have_written_the_metadata(mpi: Mpi, path: Path) -> None:
    set_state(path, "interrupted")
    ended = mpi.run(4, "--plan", "-", "--resume", "-o", path, text=f"{FIRST} --only-rounds 1")
    assert ended.status == 0, ended.errors
    assert np.isfinite(read_run(path).rows[0].arrays["time_median"][:][0]).all()


@pytest.mark.parametrize("ranks", [4, 5])
def test_a_run_belongs_to_its_ranks_and_their_hosts(mpi: Mpi, path: Path, ranks: int) -> None:
    if ranks == 4:
        write_texts(path / "tables/hosts", "host", ["elsewhere"])
    before = (path / "zarr.json").read_bytes()
    ended = mpi.run(ranks, "--plan", "-", "--resume", "-o", path, text=f"{FIRST} --only-rounds none\n{NEXT}")
    assert ended.status == 2
    assert "cannot read" in one_line(ended.error_lines)  # its rounds file, since rows are checked first
    ended = mpi.run(ranks, "--plan", "-", "--resume", "-o", path, text=f"{FIRST} --only-rounds 0")
    assert ended.status == 2
    assert PINNED["was started with other ranks"] in one_line(ended.error_lines)
    assert (path / "zarr.json").read_bytes() == before


def test_a_folder_with_anything_else_in_it_is_no_place_for_a_run(mpi: Mpi, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    (path / "rounds").mkdir(parents=True)
    (path / "notes.txt").write_text("mine")
    ended = mpi.run(2, "latency", "-o", path)
    assert ended.status == 2
    assert "a.run exists: choose another -o" in one_line(ended.error_lines)
