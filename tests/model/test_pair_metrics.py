"""Figures of pairs that were measured several times."""

from __future__ import annotations

import numpy as np

from fablint.model.figures.pair_metrics import PairMetrics


def test_a_pair_has_the_lower_median_of_its_measurements() -> None:
    src, dst = np.array([1, 0, 0, 1, 1, 0]), np.array([0, 2, 2, 0, 0, 1])
    value, turn = np.array([5.0, 1.0, 3.0, 9.0, 7.0, 4.0]), np.arange(6)
    once = PairMetrics(src, dst, turn, np.zeros(6, dtype=np.uint8), value).by_pair()
    assert [*zip(once.src, once.dst, once.round, once.value, strict=True)] == [(0, 1, 5, 4), (0, 2, 1, 1), (1, 0, 4, 7)]
