"""Medians and other order statistics of values in groups, all groups at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from fablint.model.arrays import Codes, Floats, Ints
from fablint.model.figures.distinct_codes import ascending_order


@dataclass(frozen=True)
class Groups:
    """Order of values by group. Groups of the same size are adjacent, so that they are sorted as rows of one array."""

    order: Codes  # (k,) positions of the values
    group: Codes  # (k,) group of each value
    first: Codes  # (groups,) place in this order of the first value of each group
    size: Codes  # (groups,) values of each group

    @classmethod
    def of(cls, group: Codes, groups: int) -> Self:
        """Return the groups that (k,) codes from 0 to `groups` - 1 name."""
        size = np.bincount(group, minlength=groups)
        by_size = np.argsort(size)
        place, first = np.empty_like(by_size), np.empty_like(by_size)
        place[by_size] = np.arange(groups)
        first[by_size] = np.cumsum(size[by_size]) - size[by_size]
        return cls(ascending_order(place[group]), group, first, size)

    def sorted(self, values: npt.ArrayLike) -> GroupedValues:
        """Sort (k,) values within their groups, NaN last."""
        value = np.asarray(values)
        count, is_unknown = self.size, np.isnan(value)
        if is_unknown.any():
            count = count - np.bincount(self.group[is_unknown], minlength=count.size)
        value = value[self.order]
        begin = 0
        for size, groups in zip(*np.unique_counts(self.size), strict=True):
            end = begin + int(size) * int(groups)
            value[begin:end].reshape(groups, size).sort(axis=1)
            begin = end
        return GroupedValues(value, self.first, count)


@dataclass(frozen=True)
class GroupedValues:
    """Values sorted within their groups. NaN values are not counted."""

    values: Floats  # group by group, ascending within a group
    first: Codes  # (groups,) position of the smallest value of each group
    count: Ints  # (groups,) values of each group

    @classmethod
    def of(cls, values: npt.ArrayLike, group: Codes, groups: int) -> GroupedValues:
        """Sort (k,) values, NaN excepted, within the groups that (k,) codes from 0 to `groups` - 1 name."""
        return Groups.of(group, groups).sorted(values)

    def at(self, rank: Codes) -> Floats:
        """(groups,) value of this rank (from 0) in each group; NaN where a group has none."""
        result = np.full(self.count.size, np.nan)
        is_known = (rank >= 0) & (rank < self.count)
        result[is_known] = self.values[(self.first + rank)[is_known]]
        return result

    def lower_medians(self) -> Floats:
        """(groups,) median, of an even number of values the lower one in the middle; NaN where a group has none."""
        return self.at((self.count - 1) // 2)

    def upper_medians(self) -> Floats:
        """(groups,) median, of an even number of values the upper one in the middle; NaN where a group has none."""
        return self.at(self.count // 2)

    def medians(self, fewest: int = 1) -> Floats:
        """(groups,) median; NaN where a group has fewer than `fewest` values."""
        return np.where(self.count >= fewest, (self.lower_medians() + self.upper_medians()) / 2, np.nan)
