"""A bandwidth of both directions at once is the same number wherever it is printed: it counts the bytes of both."""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pypdf
import pytest
from report_cases import diagnose, readable
from table_cases import both_ways, row, run_of, stored

from fablint.model import Placement, Row
from fablint.report import console_summary
from fablint.report.drawings.curves import curve
from fablint.report.html.page import render
from fablint.report.pdf.pdf_report import pdf_report
from fablint.report.survey.row_survey import survey
from fablint.report.tables import Options, render_table
from fablint.store import import_run

OUTSIDE = Path(__file__).parents[2] / "fixtures" / "outside"
SIZES = (7000, 14000, 28000)
SECONDS = [10e-6, 20e-6, 40e-6]  # 700 MB/s in each direction
DIRECTIONS = {"bandwidth": 1, "put_bandwidth": 1, "get_bandwidth": 1, "bibandwidth": 2, "put_bibandwidth": 2}


def measured(kernel: str, pattern: str = "pairs", rounds: int = 1) -> Row:
    """Two ranks that exchange messages of 700 MB/s in each direction."""
    cells = both_ways({(0, 1): SECONDS, (1, 0): SECONDS})
    cells = {(src, dst, number): times for (src, dst, _), times in cells.items() for number in range(rounds)}
    return row(kernel, pattern, cells, sizes=SIZES, rounds=rounds)


def rates(text: str) -> set[float]:
    """Return the rates in a table, of one direction or of both."""
    return {float(word) for word in text.split() if re.fullmatch(r"700\.0+|1400(?:\.0+)?", word)}


@pytest.mark.parametrize("kernel", DIRECTIONS)
def test_reports_count_the_bytes_of_both_directions(tmp_path: Path, kernel: str) -> None:
    run = stored(run_of(measured(kernel), started="2026-11-20T12:00:00Z"), tmp_path)
    case = run, diagnose(run, None)
    typical, fastest, other = ("1.40 GB/s", "1.56 GB/s", "778 MB/s")
    if DIRECTIONS[kernel] == 1:
        typical, fastest, other = "700 MB/s", "778 MB/s", "1.56 GB/s"
    pdf = " ".join(each.extract_text() for each in pypdf.PdfReader(BytesIO(pdf_report(*case))).pages)
    assert f"at 28000 B: {typical}" in console_summary(*case)
    for text in (readable(render(*case)), pdf):
        assert f"{typical}" in text
        assert f"{other}" not in text
    assert f"{fastest}" in readable(render(*case))


@pytest.mark.parametrize("kernel", DIRECTIONS)
def test_maps_of_the_page_count_the_bytes_of_both_directions(tmp_path: Path, kernel: str) -> None:
    cells = {(src, dst, (src + dst) % 4): SECONDS for src in range(4) for dst in range(4) if src != dst}
    run = stored(run_of(row(kernel, "all-pairs", cells, ranks=4, sizes=SIZES, rounds=4)), tmp_path)
    page = readable(render(run, diagnose(run, None)))
    maps = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["maps"]  # type: ignore[index]
    assert {each["bytes"] / each["size"] for each in maps} == {DIRECTIONS[kernel]}


@pytest.mark.parametrize("table", ["bench", "osu", "pairs"])
@pytest.mark.parametrize("kernel", DIRECTIONS)
def test_tables_count_the_bytes_of_both_directions(kernel: str, table: str) -> None:
    text = render_table(run_of(measured(kernel)), table, Options()).text
    assert rates(text) == {700.0 * DIRECTIONS[kernel]}


@pytest.mark.parametrize("kernel", ["bandwidth", "bibandwidth"])
def test_the_table_of_victims_counts_the_bytes_of_both_directions(kernel: str) -> None:
    run = run_of(measured(kernel, "victim-aggressor", 2))
    assert rates(render_table(run, "congestion", Options()).text) == {700.0 * DIRECTIONS[kernel]}


@pytest.mark.parametrize("kernel", DIRECTIONS)
def test_the_curve_counts_the_bytes_of_both_directions(kernel: str) -> None:
    run = run_of(measured(kernel))
    plot = curve(survey(run.rows[0], {}, Placement.of(run, None), np.arange(2), 1))
    assert plot is not None
    ends = "1.00 GB/s" if DIRECTIONS[kernel] == 1 else "10.0 GB/s"  # of the axis: whole decades
    assert plot.y_labels[0] == ends


def test_an_imported_bandwidth_of_both_directions_reads_as_its_file_does() -> None:
    run = import_run([next(OUTSIDE.glob("54-*"))])
    summary = console_summary(run, diagnose(run, None))
    assert "bibandwidth at 8 KiB: 2.61 GB/s" in summary
    assert "round trips" not in summary
