"""The table of non-blocking collectives: OSU's columns, from three rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from table_cases import row, run_of

from fablint.errors import UsageError
from fablint.report import Options, benchmark_table, render_table

US = 1e-6
WORLD = ((0, -1, 0), (1, -1, 0))
PRINTED = Path(__file__).parents[2] / "fixtures" / "osu" / "osu_ialltoall-7.4-openmpi4.1.4-np2.txt"


def part(compute: str, times: tuple[float, float]):
    cells = {key: [time * US] for key, time in zip(WORLD, times, strict=True)}
    return row("ialltoall", "world", cells, name=f"osu_ialltoall-{compute}", compute=compute, tests=0)


def figures(overall: float, compute: float, pure: tuple[float, float]) -> dict:
    parts = [part("none", pure), part("during", (overall, overall)), part("alone", (compute, compute))]
    return benchmark_table(run_of(*parts), "osu_ialltoall", full=True).as_dict()["sizes"][0]


def test_the_overlap_is_what_the_computation_hid():
    line = figures(15.0, 10.0, (9.0, 11.0))
    assert {key: line[key] for key in ("overall", "compute", "pure", "min", "max")} == pytest.approx(
        {"overall": 15.0, "compute": 10.0, "pure": 10.0, "min": 9.0, "max": 11.0}
    )
    assert line["overlap"] == pytest.approx(50.0)
    assert figures(25.0, 10.0, (10.0, 10.0))["overlap"] == 0.0


def test_the_columns_are_those_of_osu():
    parts = [part("none", (10, 10)), part("during", (15, 15)), part("alone", (10, 10))]
    lines = render_table(run_of(*parts), "overlap", Options()).text.splitlines()
    theirs = PRINTED.read_text().splitlines()
    (head,) = [line for line in theirs if line.startswith("# Size")]
    assert head in lines
    assert next(line for line in theirs if line.startswith("# O")).split(" v")[0] in "\n".join(lines)
    assert lines[-1].split() == ["8", "15.00", "10.00", "10.00", "50.00"]


def test_a_row_that_is_missing_has_no_figure():
    line = render_table(run_of(part("none", (10, 10))), "overlap", Options()).as_dict()["sizes"][0]
    assert (line["pure"], line["overall"], line.get("overlap")) == (pytest.approx(10.0), None, None)


def test_other_rows_are_not_shown():
    with pytest.raises(UsageError, match="measure one: bench osu_ibcast"):
        render_table(run_of(row("bcast", "world", {key: [US] for key in WORLD})), "overlap", Options())
