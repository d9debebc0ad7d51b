"""Maps keep the worst cell of every block, and tell missing from slow."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fablint.model import Placement
from fablint.report.survey.heatmap import HeatMap, block_side, topological_order


def planes(encoded, mode="raw"):
    shape = encoded["height"], encoded["width"]
    contents = {name: zlib.decompress(base64.b64decode(plane)) for name, plane in encoded["layers"][mode].items()}
    return {name: np.frombuffer(content, np.uint8).astype(int).reshape(shape) for name, content in contents.items()}


def log_times(encoded, mode="raw"):
    found = planes(encoded, mode)
    code = found["high"] * 256 + found["low"]
    return np.where(code > 0, encoded["low"] + (code - 1) * encoded["step"], np.nan)


@given(st.integers(2, 40), st.integers(1, 7), st.integers(0, 2**32 - 1), st.floats(0, 0.9))
def test_every_block_shows_its_worst_cell_and_names_it(ranks, side, seed, missing):
    rng = np.random.default_rng(seed)
    log_time = rng.normal(-13, 1, (ranks, ranks)).astype(np.float32)
    log_time[rng.random((ranks, ranks)) < missing] = np.nan
    residual = rng.normal(0, 1, (ranks, ranks)).astype(np.float32) + 0 * log_time
    order = rng.permutation(ranks).astype(np.int32)
    heatmap = HeatMap(order, side)
    everyone = np.arange(ranks)[None]
    for start in range(0, ranks, 3):
        rows = slice(start, start + 3)
        heatmap.add(np.arange(ranks)[rows], everyone, log_time[rows], residual[rows])
    encoded = heatmap.encode()
    for mode in encoded["layers"]:
        key = (residual if mode == "residual" else log_time)[np.ix_(order, order)]
        shown, found = log_times(encoded, mode), planes(encoded, mode)
        for y, x in np.ndindex(shown.shape):
            block = key[y * side : (y + 1) * side, x * side : (x + 1) * side]
            if np.isnan(block).all():
                assert np.isnan(shown[y, x])
                continue
            inside = np.unravel_index(np.nanargmax(block), block.shape)
            if side > 1:
                assert (found["source"][y, x], found["partner"][y, x]) == inside
            pair = order[y * side + inside[0]], order[x * side + inside[1]]
            assert shown[y, x] == pytest.approx(log_time[pair], abs=encoded["step"])


def test_one_bad_pair_of_a_million_survives():
    ranks, side = 1000, 50
    log_time = np.full((ranks, ranks), -13.0, dtype=np.float32)
    log_time[123, 456] = -12.0
    heatmap = HeatMap(np.arange(ranks, dtype=np.int32), side)
    heatmap.add(np.arange(ranks), np.arange(ranks)[None], log_time, log_time + 13)
    encoded = heatmap.encode()
    for mode in ("raw", "residual"):
        shown = log_times(encoded, mode)
        assert np.argwhere(shown > -12.5).tolist() == [[123 // side, 456 // side]]


def test_the_bulk_of_blocks_is_that_of_their_worst_pairs():
    """A scale set by all pairs would show a healthy matrix of many hosts in one colour, that of the slowest pairs."""
    log_time = np.random.default_rng(1).normal(-13, 0.02, (400, 400)).astype(np.float32)
    heatmap = HeatMap(np.arange(400, dtype=np.int32), 10)
    heatmap.add(np.arange(400), np.arange(400)[None], log_time, log_time)
    low, high = heatmap.bulk((0.05, 0.95))
    assert np.quantile(log_time, 0.95) < low < high < log_time.max()


def test_the_bulk_of_the_times_shares_one_high_byte():
    """Noise of 2.5 % then takes one byte of a cell and not two."""
    log_time = np.random.default_rng(1).normal(-13, 0.025, (64, 64)).astype(np.float32)
    log_time[3, 5] = -9
    heatmap = HeatMap(np.arange(64, dtype=np.int32), 1)
    heatmap.add(np.arange(64), np.arange(64)[None], log_time, log_time)
    encoded = heatmap.encode()
    high = planes(encoded)["high"]
    assert len(np.unique(high)) == 2 and (high == high[0, 0]).sum() == high.size - 1
    assert log_times(encoded) == pytest.approx(log_time, abs=encoded["step"])


def test_ranks_stand_in_the_order_of_group_switch_and_host():
    placement = Placement(
        host=np.array([0, 1, 2, 3, 4]),
        switch=np.array([2, 0, 1, -1, 0]),
        group=np.array([0, 1, 0, -1, 1]),
        location=np.array([0, 1, 2, -1, 4]),
        hosts=("h0", "h10", "h1", "h3", "h9"),
        switches=("s1", "s10", "s2"),
        groups=("g0", "g1"),
    )
    assert topological_order(placement).tolist() == [0, 2, 4, 1, 3]  # s2 before s10, h9 before h10; unknown last


@pytest.mark.parametrize(
    ("ranks", "maps", "side"), [(8, 46, 1), (1500, 1, 1), (1501, 1, 2), (10_000, 4, 16), (16_384, 1, 13)]
)
def test_block_side_keeps_to_the_budget(ranks, maps, side):
    assert block_side(ranks, maps) == side
