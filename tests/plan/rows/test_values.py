"""Option values: what is read, what is refused, and what is written reads back."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from fablint.errors import UsageError
from fablint.model.registry.option_values import (
    fold_indices,
    format_bytes,
    parse_bytes,
    parse_count,
    parse_fraction,
    parse_indices,
    parse_natural,
    parse_seconds,
    parse_sizes,
)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("8", (8,)),
        ("0", (0,)),
        ("8,1K,1M", (8, 1024, 1 << 20)),
        ("1K:4K", (1024, 2048, 4096)),
        ("3:20", (3, 6, 12)),
        ("7,1:1", (7, 1)),
        ("1g,2k", (1 << 30, 2048)),
        ("0:4", (0, 1, 2, 4)),
        ("0:0", (0,)),
        ("0,1:4M", (0, *(1 << step for step in range(23)))),
    ],
)
def test_sizes(text, sizes):
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize(
    "text", ["", "-8", "8,", "eight", "1.5K", "8KB", "8:4", "8:", ":8", "8,8", "1:8,4", "2G", "1:2G", "0:0,0"]
)
def test_wrong_sizes_are_refused_by_name(text):
    with pytest.raises(UsageError) as caught:
        parse_sizes(text)
    assert "'" in caught.value.message
    assert caught.value.hint


@given(st.integers(0, (1 << 31) - 1))
def test_a_byte_count_reads_back(size):
    assert parse_bytes(format_bytes(size)) == size


@given(st.integers(1, 1 << 20), st.integers(1, 1 << 10))
def test_a_range_doubles_up_to_its_end(first, factor):
    last = first * factor
    sizes = parse_sizes(f"{first}:{last}")
    assert sizes[0] == first
    assert sizes[-1] <= last < 2 * sizes[-1]
    assert all(b == 2 * a for a, b in itertools.pairwise(sizes))


@given(st.sets(st.integers(0, 300), max_size=99))
def test_folded_indices_read_back(indices):
    assert parse_indices(fold_indices(indices)) == tuple(sorted(indices))


def test_folding_is_short():
    assert fold_indices([17, 0, 1, 2, 3, 3]) == "0-3,17"
    assert fold_indices([]) == "none"


@pytest.mark.parametrize("text", ["", "3-1", "a", "1-", "-1", "1,,2"])
def test_wrong_indices_are_refused(text):
    with pytest.raises(UsageError, match="0-3,17"):
        parse_indices(text)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_count, "0"),
        (parse_count, "-1"),
        (parse_count, "1.5"),
        (parse_natural, "-1"),
        (parse_seconds, "0"),
        (parse_seconds, "nan"),
        (parse_seconds, "inf"),
        (parse_seconds, "1s"),
        (parse_fraction, "1"),
        (parse_fraction, "0"),
    ],
)
def test_wrong_numbers_are_refused(parse, text):
    with pytest.raises(UsageError, match=text):
        parse(text)
