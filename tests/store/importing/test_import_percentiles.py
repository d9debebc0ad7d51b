"""Percentiles of OSU's -z: every figure of a file is in the run, as a percentile of the time of a message."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from import_cases import FIXTURES

from fablint.analyse import diagnose
from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.model.figures.percentiles import stored_percentiles
from fablint.report import Options, render_table, run_summary
from fablint.report.html.page import render
from fablint.store import import_run, read_run, write_run
from fablint.store.export import export_run

LATENCY, BANDWIDTH = "osu_latency-7.4-openmpi4.1.4-np2-z.txt", "osu_bw-7.4-openmpi4.1.4-np2-z.txt"
STORED = {
    LATENCY: [50, 90, 99],
    "osu_put_latency-7.4-openmpi4.1.4-np2-fence-z.txt": [50, 90, 99],
    "osu_alltoall-7.4-openmpi4.1.4-np2-f-z.txt": [50, 90, 99],
    BANDWIDTH: [1, 5, 10, 50],  # of the time; of the bandwidth 99, 95, 90, 50
    "osu_mbw_mr-7.4-openmpi4.1.4-np2-c-z.txt": [1, 10, 50],
}


def imported(path: Path) -> Run:
    return import_run([path], ("a", "b"))


def columns_of_file(text: str) -> dict[tuple[int, float], float]:
    """Figures of the columns `P90 Tail ...` by size and percentile, read by the widths of the columns alone."""
    lines = text.splitlines()
    (head,) = (line for line in lines if line.startswith("# Size"))
    names = [float(name) for name in re.findall(r"P([0-9.]+) Tail", head)]
    rows = [line.split() for line in lines if re.match("[0-9]", line)]
    return {
        (int(row[0]), name): float(value) for row in rows for name, value in zip(names, row[-len(names) :], strict=True)
    }


def shown(row: Row, run: Run, percentiles: list[float]) -> dict[tuple[int, float], float]:
    """The same figures in the table of a run."""
    table = render_table(run, "osu", Options(tuple(percentiles), False)).as_dict()
    return {(line["size"], at): line[f"P{at:g}"] for line in table["sizes"] for at in percentiles}


@pytest.mark.parametrize("name", STORED)
def test_every_figure_of_the_file_is_in_the_table_of_the_stored_run(name: str, tmp_path: Path) -> None:
    path = FIXTURES / "osu" / name
    write_run(tmp_path / "x.run", imported(path))
    run = read_run(tmp_path / "x.run")
    (row,) = run.rows
    assert list(stored_percentiles(row)) == STORED[name]
    expected, figures = columns_of_file(path.read_text()), shown(row, run, STORED[name])
    assert len(figures) == len(expected) > 30
    for (size, at), value in expected.items():
        of_time = at if row.quantity == "latency" else 100 - at
        assert figures[size, of_time] == pytest.approx(value, rel=1e-6)


def test_a_table_of_fablint_counts_percentiles_of_the_time_and_is_read_as_such(tmp_path: Path) -> None:
    run = imported(FIXTURES / "osu" / BANDWIDTH)
    path = tmp_path / "again.txt"
    path.write_text(render_table(run, "osu", Options((1, 10, 50), False)).text)
    (row,) = imported(path).rows
    assert list(stored_percentiles(row)) == [1, 10, 50]
    times = np.asarray(row.arrays["percentile_time"])[0, 0]
    assert (times[:, 0] <= times[:, 1]).all()


def test_files_with_and_without_percentiles_become_one_row(tmp_path: Path) -> None:
    text = (FIXTURES / "osu" / LATENCY).read_text()
    without = tmp_path / "without.txt"
    without.write_text(
        re.sub(r" +P[0-9]+ Tail Lat\(us\)", "", re.sub(r"(?m)^([0-9]+ +[0-9.]+) .*$", r"\1", text)), encoding="utf-8"
    )
    (row,) = import_run([FIXTURES / "osu" / LATENCY, without], ("a", "b")).rows
    times = np.asarray(row.arrays["percentile_time"])[0, :, 0, 0]
    assert np.isfinite(times).tolist() == [True, False]


def test_show_and_the_page_name_them() -> None:
    run = imported(FIXTURES / "osu" / LATENCY)
    assert "percentiles of the time: 50, 90, 99\n" in run_summary(run)
    page = render(run, diagnose(run, None)).replace("\N{NO-BREAK SPACE}", " ")
    head = page[page.index("<th>size</th>") :].split("</tr>")[0]
    labels = ["median of messages", "mean of messages", "P90 of messages", "P99 of messages"]
    assert re.findall(r">([^<]+ of messages)<", head) == labels
    first = page[page.index("<td>1 B</td>") :].split("</tr>")[0]
    assert re.findall(r'number">([^<]+)<', first)[-4:] == ["140 ns", "150 ns", "170 ns", "200 ns"]


def test_a_percentile_that_the_file_lacks_is_refused_with_those_it_has() -> None:
    with pytest.raises(UsageError, match=r"percentile 90 of the time .*choose from 1, 5, 10, 50$"):
        render_table(imported(FIXTURES / "osu" / BANDWIDTH), "osu", Options((90,), False))


def test_they_are_exported(tmp_path: Path) -> None:
    import xarray

    export_run(imported(FIXTURES / "osu" / LATENCY), "netcdf", tmp_path / "x.nc")
    with xarray.open_dataset(tmp_path / "x.nc", group="latency") as row:
        assert float(row.percentile_time.sel(percentile=90, size=8)[0, 0]) == pytest.approx(0.17e-6)
