"""CSV: empty cells beside figures of another column, the diagonal of the matrix, and units that lines do not state."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from fablint.model import Run
from fablint.store import import_run

HOSTS = [f"n{number}" for number in range(6)]
PAIRS = list(itertools.permutations(HOSTS, 2))


def imported(folder: Path, lines: list[str]) -> Run:
    path = folder / "pairs.csv"
    path.write_text("\n".join([*lines, ""]))
    return import_run([path])


def states(run: Run) -> dict[str, tuple[str, list[int]]]:
    """State and sizes of each row."""
    return {row.kernel: (row.facts.state, np.asarray(row.arrays["size"]).tolist()) for row in run.rows}


def reasons(run: Run) -> list[tuple[int, str]]:
    assert run.facts.imported
    return [(line.line, line.why) for line in run.facts.imported.lines_left_out]


def either(nothing: str, large: int, between: str = ",") -> list[str]:
    """Every pair on a line with a bandwidth at `large` bytes, and on a line with a time at 8 bytes."""
    lines = [["src", "dst", "size", "bandwidth", "time_us"]]
    for a, b in PAIRS:
        lines += [[a, b, str(large), "12000.5", nothing], [a, b, "8", nothing, "1.25"]]
    return [between.join(line) for line in lines]


@pytest.mark.parametrize(
    ("nothing", "between"),
    [
        ("", ","),
        ("nan", ","),
        ("NaN", "\t"),
        ("", "\t"),
        ('""', ","),
        ("-", ";"),
        ("N/A", "|"),
    ],
)
@pytest.mark.parametrize("large", [8, 1 << 20])
def test_lines_have_a_figure_in_either_of_two_columns(tmp_path: Path, nothing: str, between: str, large: int) -> None:
    run = imported(tmp_path, either(nothing, large, between))
    assert (run.state, reasons(run)) == ("complete", [])
    assert states(run) == {"bandwidth": ("complete", [large]), "latency": ("complete", [8])}


def test_columns_of_ranks_in_rounds_of_their_own(tmp_path: Path) -> None:
    lines = ["src,dst,size,bandwidth,time_us,round"]
    for at, (a, b) in enumerate(itertools.permutations(["n0:0", "n0:1", "n1:0", "n1:1"], 2)):
        lines += [f"{a},{b},64,12000,,{2 * at}", f"{a},{b},64,,1.5,{2 * at + 1}"]
    run = imported(tmp_path, lines)
    assert (run.state, reasons(run)) == ("complete", [])


def test_a_size_that_only_one_column_has_for_a_few_pairs(tmp_path: Path) -> None:
    """Times of all pairs plan no bandwidth of them."""
    lines = either("", 1 << 20)
    run = imported(tmp_path, [line for line in lines if "1048576" not in line or line.startswith(("n0,n1", "n1,n0"))])
    (row,) = (row for row in run.rows if row.kernel == "bandwidth")
    assert (row.facts.state, row.facts.schedule.planned_pairs) == ("complete", "")


def test_a_column_that_has_its_size_for_other_pairs_lacks_an_empty_cell(tmp_path: Path) -> None:
    wide = [f"{a},{b},8,{'' if (a, b) == ('n2', 'n4') else 12.5},1.25" for a, b in PAIRS]
    run = imported(tmp_path, ["src,dst,size,bandwidth,time_us", *wide])
    assert states(run) == {"bandwidth": ("interrupted", [8]), "latency": ("complete", [8])}


def test_a_column_without_any_figure_is_no_row(tmp_path: Path) -> None:
    run = imported(tmp_path, ["src,dst,size,bandwidth,time_us", *(f"{a},{b},8,,1.25" for a, b in PAIRS)])
    assert (run.state, states(run)) == ("complete", {"latency": ("complete", [8])})


@pytest.mark.parametrize("cells", [",", "nan,nan", ",0", "0,timeout", "timeout,"])
def test_a_line_without_any_figure_is_unreadable(tmp_path: Path, cells: str) -> None:
    lines = [line for line in either("", 1 << 20) if not line.startswith("n3,n5")]
    run = imported(tmp_path, [*lines, f"n3,n5,8,{cells}"])
    assert run.state == "interrupted"
    assert {line for line, _ in reasons(run)} == {len(lines) + 1}
    assert {state for state, _ in states(run).values()} == {"interrupted"}


@pytest.mark.parametrize("cell", ["timeout", "0", "0.00", "-3", "inf"])
def test_a_cell_that_is_no_figure_is_unreadable_beside_any_other(tmp_path: Path, cell: str) -> None:
    run = imported(tmp_path, [*either("", 1 << 20), f"n0,n1,8,{cell},1.25"])
    assert [why for _, why in reasons(run)] == ["bandwidth is not a figure above 0"]


def test_zeros_of_a_complete_column_are_no_pass(tmp_path: Path) -> None:
    run = imported(tmp_path, ["src,dst,size,bandwidth,time_us", *(f"{a},{b},8,0,1.25" for a, b in PAIRS)])
    assert run.state == "interrupted"


def diagonal(figure: str, names: list[str], between: str = ",") -> list[str]:
    cells = [[a, b, "1024", figure if a == b else "12000"] for a, b in itertools.product(names, repeat=2)]
    return [between.join(line) for line in [["src", "dst", "size", "bandwidth"], *cells]]


@pytest.mark.parametrize("figure", ["0", "", "nan", '"0.0"', "-", "30000"])
@pytest.mark.parametrize("between", [",", "\t"])
@pytest.mark.parametrize("names", [HOSTS, ["n0:0", "n0:1", "n1:0", "n1:1"], ["fd00::1", "fd00::2"], ['"n0"', '"n1"']])
def test_the_diagonal_is_no_damage(tmp_path: Path, figure: str, between: str, names: list[str]) -> None:
    run = imported(tmp_path, diagonal(figure, names, between))
    assert (run.state, states(run)) == ("complete", {"bandwidth": ("complete", [1024])})
    assert run.facts.imported
    ((line, text, why),) = ((line.line, line.text, line.why) for line in run.facts.imported.lines_left_out)
    assert (line, text, why) == (0, f"{len(names)} lines", "src and dst are the same")


def test_counts_have_neither_the_heading_nor_the_diagonal(tmp_path: Path) -> None:
    run = imported(tmp_path, ["# of a script", *diagonal("0", HOSTS), "", "n0,??,1024,12000"])
    assert run.facts.imported
    assert run.facts.imported.missing == ["pairs.csv: 1 of 31 lines cannot be read"]


@pytest.mark.parametrize(
    ("heading", "line", "why"),
    [
        ("bandwidth,unit", "12,", "the unit of bandwidth is missing"),
        ("bandwidth,unit", "12,gb/s", "the unit of bandwidth is not known: 'gb/s'"),
        ("latency,unit", '"1.5",""', "the unit of latency is missing"),
        ("latency,unit", "1.5,GB/s", "the unit of latency is not known: 'GB/s'"),
        ("bandwidth,unit", "0,", "bandwidth is not a figure above 0"),
    ],
)
def test_a_line_without_its_unit_says_so(tmp_path: Path, heading: str, line: str, why: str) -> None:
    unit = "GB/s" if heading.startswith("bandwidth") else "us"
    run = imported(tmp_path, [f"src,dst,size,{heading}", f"b,a,8,1.5,{unit}", f"a,b,8,{line}"])
    assert (run.state, reasons(run)) == ("interrupted", [(3, why)])
