"""Which rounds a resume measures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from run_cases import list_row, matrix_row, run_of

from fablint.model import Row
from fablint.store import layout, missing_rounds, read_run, write_run


def take(row: Row, number: int, *, cells: int | None = None, size: int | None = None) -> None:
    """Unmeasure round `number`, or only its first `cells` cells, or only one size."""
    if row.layout == "list":
        place = np.zeros(row.arrays["dst"].shape, bool)
        place[:, number] = row.arrays["dst"][:, number] >= 0
    else:
        place = row.arrays["round"] == number
    which = tuple(index[:cells] for index in np.nonzero(place))
    row.arrays["count"][(*which, slice(None) if size is None else size)] = 0


@pytest.mark.parametrize("make_row", [matrix_row, list_row])
@pytest.mark.parametrize("ranks", [2, 5, 6])
def test_a_complete_row_misses_nothing(make_row, ranks):
    assert missing_rounds(make_row(ranks=ranks)) == []


@settings(max_examples=40)
@given(st.sampled_from([matrix_row, list_row]), st.integers(3, 9), st.data())
def test_exactly_the_rounds_taken_away(make_row, ranks, data):
    row = make_row(ranks=ranks)
    taken = data.draw(st.sets(st.integers(0, row.facts.schedule.rounds - 1)))
    for number in taken:
        take(row, number, cells=data.draw(st.sampled_from([1, None])), size=data.draw(st.sampled_from([0, 1, None])))
    assert missing_rounds(row) == sorted(taken)


def test_a_cell_whose_round_is_unknown_is_missing():
    row = matrix_row()
    place = tuple(np.argwhere(row.arrays["round"] == 7)[0])
    row.arrays["round"][place] = -1
    assert missing_rounds(row) == [7]


def test_a_time_that_is_missing_makes_the_cell_missing():
    row = list_row()
    row.arrays["time_p99"][0, 1, 1] = np.nan
    assert missing_rounds(row) == [1]


@pytest.mark.parametrize(("array", "fill"), [("dst", -1), ("started", np.nan)])
def test_a_cell_of_which_something_is_not_known_is_missing(array, fill):
    row = list_row()
    row.arrays[array][3, 2] = fill
    assert missing_rounds(row) == [2]


def test_a_row_may_store_one_statistic_only():
    row = list_row()
    kept = {name: values for name, values in row.arrays.items() if not name.startswith("time_") or name == "time_mean"}
    assert missing_rounds(Row(row.name, row.facts, kept)) == []


def test_blocks_make_no_difference(tmp_path, monkeypatch):
    row = matrix_row(ranks=9)
    for number in (3, 11):
        take(row, number, cells=1)
    write_run(tmp_path / "a.run", run_of(row))
    (stored,) = read_run(tmp_path / "a.run").rows
    for size in (1, 500, 1 << 25):
        monkeypatch.setattr(layout, "BLOCK_BYTES", size)
        assert missing_rounds(stored) == missing_rounds(row) == [3, 11]
