"""Distinct codes, counted or sorted, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fablint.model.figures.distinct_codes import distinct_codes


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
@given(st.lists(st.integers(0, 30_000), max_size=40), st.booleans())
def test_codes_are_those_of_numpy(dtype: type[np.integer], values: list[int], is_large: bool) -> None:
    codes = np.array(values, dtype=dtype)
    codes = codes.astype(np.int64) * 1_000_003 if is_large else codes
    keys, number, count = np.unique(codes, return_inverse=True, return_counts=True)
    distinct = distinct_codes(codes)
    assert distinct.keys.tolist() == keys.tolist()
    assert distinct.number.tolist() == number.ravel().tolist()
    assert distinct.occurrences.tolist() == count.tolist()
    assert codes[distinct.positions].tolist() == keys.tolist()
