"""Order statistics of groups, against those of each group by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fablint.model.figures.grouped_values import GroupedValues

VALUES = st.lists(st.tuples(st.integers(0, 4), st.one_of(st.integers(-3, 3).map(float), st.just(np.nan))), max_size=30)


@given(VALUES)
def test_medians_are_those_of_each_group(given: list[tuple[int, float]]) -> None:
    group = np.array([code for code, _ in given], dtype=np.int64)
    value = np.array([value for _, value in given], dtype=np.float64)
    grouped = GroupedValues.of(value, group, 6)
    own = [np.sort(value[(group == code) & ~np.isnan(value)]) for code in range(6)]
    assert grouped.count.tolist() == [part.size for part in own]
    for found, middle in (
        (grouped.medians(), [np.median(part) if part.size else np.nan for part in own]),
        (grouped.medians(3), [np.median(part) if part.size > 2 else np.nan for part in own]),
        (grouped.lower_medians(), [part[(part.size - 1) // 2] if part.size else np.nan for part in own]),
        (grouped.upper_medians(), [part[part.size // 2] if part.size else np.nan for part in own]),
        (grouped.at(np.full(6, 2)), [part[2] if part.size > 2 else np.nan for part in own]),
        (grouped.at(np.full(6, -1)), [np.nan] * 6),
    ):
        assert found == pytest.approx(middle, nan_ok=True)
