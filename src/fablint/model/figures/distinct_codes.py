"""Distinct codes among many, and the number of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fablint.model.arrays import Codes, Ints, Mask

_TABLE_PER_CODE = 2  # entries of the table of all possible codes: a larger table takes longer than to sort the codes
_SMALLEST_TABLE = 1 << 16
_DIGIT_BITS = 16  # of a radix sort: numpy sorts integers of 16 bits in a sixth of the time of larger ones


class DistinctCodes(NamedTuple):
    """Codes that occur, ascending."""

    keys: Codes  # (d,)
    number: Codes  # (k,) position in `keys` of each code
    occurrences: Ints  # (d,) how often each occurs

    @property
    def positions(self) -> Codes:
        """(d,) a position of each among the codes."""
        position = np.empty(self.keys.size, dtype=np.int64)
        position[self.number] = np.arange(self.number.size)
        return position


def distinct_codes(codes: Codes) -> DistinctCodes:
    """Return the distinct codes of (k,) codes from 0 on, as `numpy.unique`.

    Codes below 2 k are counted, others are sorted.
    """
    if not are_few(codes.size, int(codes.max(initial=0)) + 1):
        order = ascending_order(codes)
        ordered = codes[order]
        is_first = np.append(True, ordered[1:] != ordered[:-1])
        number = np.empty(order.size, dtype=np.int64)
        number[order] = np.cumsum(is_first) - 1
        first = np.flatnonzero(is_first)
        return DistinctCodes(ordered[first], number, np.diff(first, append=order.size))
    count = np.bincount(codes)
    keys = np.flatnonzero(count)
    place = np.empty(count.size, dtype=np.int64)
    place[keys] = np.arange(keys.size)
    return DistinctCodes(keys, place[codes], count[keys])


def distinct_values(values: Codes) -> Codes:
    """Return the distinct values, ascending, by sorting: `numpy.unique` collects them in a table, which takes 20 times
    as long from a million values on.
    """
    ordered = np.sort(values, axis=None)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if ordered.size else ordered


def is_among(values: Codes, ascending: Codes) -> Mask:
    """Return which of the (k,) values are among ascending ones."""
    if not ascending.size:
        return np.zeros(values.shape, dtype=bool)
    place = np.minimum(np.searchsorted(ascending, values), ascending.size - 1)
    return np.asarray(ascending[place] == values)


def are_few(count: int, possible: int) -> bool:
    """Return whether a table of all `possible` codes is smaller than the work of sorting `count` codes."""
    return possible <= max(_TABLE_PER_CODE * count, _SMALLEST_TABLE)


def ascending_order(codes: Codes) -> Codes:
    """Return the positions of (k,) codes from 0 on in ascending order: a radix sort by digits of 16 bits."""
    order = np.argsort(codes.astype(np.uint16), kind="stable")
    shift = _DIGIT_BITS
    while int(codes.max(initial=0)) >> shift:
        order = order[np.argsort((codes[order] >> shift).astype(np.uint16), kind="stable")]
        shift += _DIGIT_BITS
    return order
