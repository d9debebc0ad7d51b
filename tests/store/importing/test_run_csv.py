"""Runs that were exported as CSV have the same figures after an import; damaged files are reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from run_cases import list_row, matrix_row, run_of

from fablint.errors import UsageError
from fablint.model import Run
from fablint.store import export_run, import_run

HEADING = "row,kernel,src,dst,src_host,dst_host,size,round,started,count,time_median"
LINE = "latency,latency,0,1,n1,n2,8,0,0.5,100,1.5e-06"


def exported(run: Run, path: Path) -> list[str]:
    """The lines of an export, sorted."""
    export_run(run, "csv", path)
    return sorted(path.read_text().splitlines())


def written(folder: Path, *lines: str, heading: str = HEADING) -> Path:
    path = folder / "a.csv"
    path.write_text("\n".join([heading, *lines, ""]))
    return path


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("ranks", [2, 5, 6])
def test_every_pair_is_the_same_after_an_import(tmp_path: Path, ranks: int, repeats: int) -> None:
    row = matrix_row(ranks=ranks, repeats=repeats)
    lines = exported(run_of(row), tmp_path / "a.csv")
    again = import_run([tmp_path / "a.csv"])
    assert exported(again, tmp_path / "b.csv") == lines
    assert again.facts.state == "complete"
    np.testing.assert_array_equal(again.rows[0].arrays["time_p99"][...], row.arrays["time_p99"][...])


def test_a_sample_of_pairs_in_rounds_is_the_same(tmp_path: Path) -> None:
    lines = exported(run_of(list_row()), tmp_path / "a.csv")
    assert exported(import_run([tmp_path / "a.csv"]), tmp_path / "b.csv") == lines


def test_a_pair_that_failed_is_missing(tmp_path: Path) -> None:
    exported(run_of(matrix_row(repeats=1)), tmp_path / "all.csv")
    heading, *lines = (tmp_path / "all.csv").read_text().splitlines()
    kept = [line for line in lines if ",2,5," not in line and ",5,2," not in line]
    run = import_run([written(tmp_path, *kept, heading=heading)])
    assert (run.facts.state, run.rows[0].facts.state) == ("interrupted", "interrupted")


@pytest.mark.parametrize("kernel", ["allreduce", "barrier"])
def test_figures_of_all_ranks(tmp_path: Path, kernel: str) -> None:
    lines = [f"{kernel},{kernel},{rank},,n{rank},,8,0,,10,{2 + rank}e-06" for rank in range(3)]
    run = import_run([written(tmp_path, *lines)])
    assert (run.rows[0].pattern, run.facts.ranks, run.rows[0].kernel) == ("world", 3, kernel)
    np.testing.assert_allclose(run.rows[0].arrays["time_median"][:, 0, 0], [2e-6, 3e-6, 4e-6])


def test_rows_percentiles_and_ranks_without_a_line(tmp_path: Path) -> None:
    lines = [
        "a,bandwidth,0,3,n1,n2,1024,0,,10,2e-06,3e-06",
        "b,bandwidth,3,0,n2,n1,1024,0,,10,4e-06,",
    ]
    run = import_run([written(tmp_path, *lines, heading=HEADING + ",time_p99.9")])
    assert [row.name for row in run.rows] == ["a", "b"]
    assert run.rank_host == ["n1", "rank1", "rank2", "n2"]
    assert run.rows[0].arrays["percentile"].tolist() == [99.9]


def test_columns_in_another_order(tmp_path: Path) -> None:
    heading, line = (",".join(reversed(text.split(","))) for text in (HEADING, LINE))
    run = import_run([written(tmp_path, line, heading=heading)])
    assert run.hosts == ["n1", "n2"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("n1,n2", "n1"),
        ("0,1,n1", "x,1,n1"),
        ("0,1,n1", "-1,1,n1"),
        ("1.5e-06", "0"),
        ("1.5e-06", "fast"),
        (",100,", ",0,"),
        ("n1,n2", "n9,n2"),
    ],
)
def test_lines_that_cannot_be_read_are_reported(tmp_path: Path, before: str, after: str) -> None:
    other = "latency,latency,1,0,n2,n1,8,0,0.5,100,1.5e-06"
    run = import_run([written(tmp_path, LINE, other, LINE.replace(before, after))])
    assert [line.line for line in run.facts.imported.lines_left_out] == [4]
    assert int((run.rows[0].arrays["count"][...] > 0).sum()) == 2


def test_a_file_that_is_cut_off_is_incomplete(tmp_path: Path) -> None:
    path = written(tmp_path, LINE)
    path.write_text(path.read_text()[:-3])
    with pytest.raises(UsageError):
        import_run([path])
    path.write_text(f"{HEADING}\n{LINE}\n{LINE.replace('0,1,n1,n2', '1,0,n2,n1')[:-3]}")
    assert import_run([path]).facts.state == "interrupted"


@pytest.mark.parametrize("lines", [["latency,teleport,0,1,n1,n2,8,0,0.5,100,1.5e-06"], ["\0,a"], [], ["x" * 200_000]])
def test_what_is_refused(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(UsageError):
        import_run([written(tmp_path, *lines)])


def test_ranks_of_a_host_are_refused_in_options(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        import_run([written(tmp_path, LINE)], hosts=["n1", "n2"])
