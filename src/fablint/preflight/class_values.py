"""What hosts of a class agree on: the usual value, and whether so many have it that others are wrong.

Every host of a class asks the same agreement: what follows from its values is computed once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

LEAST_OTHERS = 2  # that agree, and more than half of all: the usual value
CLEAR_SHARE = 0.8  # of all hosts, those that differ included: below that a difference is no fault of a host
CLEAR_OTHERS = 4  # that agree, at least
_MOST_KINDS = 3  # that are listed
_NUMBERS = {2: "two", 3: "three"}


def is_clear(count: int, of: int) -> bool:
    """Do so many of all hosts agree that one that differs is at fault?"""
    return count >= CLEAR_OTHERS and count >= CLEAR_SHARE * of


@dataclass(frozen=True)
class Agreement:
    """Values of a class of hosts, with how many hosts have each; the most frequent first."""

    values: tuple[tuple[Any, int], ...] = ()

    @classmethod
    def of(cls, values: Sequence[Any]) -> Agreement:
        return cls(tuple(Counter(values).most_common()))

    @cached_property
    def total(self) -> int:
        return sum(count for _, count in self.values)

    @cached_property
    def _majority(self) -> tuple[Any, int]:
        return majority_of(self.values)

    @property
    def usual(self) -> Any:
        """The value of more than half, at least two hosts; None where there is none."""
        return self._majority[0]

    @property
    def count(self) -> int:
        """How many hosts have the usual value; 0 where there is none."""
        return self._majority[1]

    @cached_property
    def with_more_as_usual(self) -> Agreement:
        """The same where more than the usual value is no difference: a faster link than most others have."""
        usual = self.usual
        if usual is None:
            return self
        counted: Counter[Any] = Counter()
        for one, count in self.values:
            counted[min(one, usual)] += count
        return Agreement(tuple(counted.most_common()))

    @property
    def is_clear(self) -> bool:
        return is_clear(self.count, self.total)

    @cached_property
    def is_divided(self) -> bool:
        """Do hosts differ of which it cannot be said who is right? A single one that differs is named by itself."""
        return len(self.values) > 1 and not self.is_clear and self.values[0][1] >= LEAST_OTHERS and self._others > 1

    @property
    def _others(self) -> int:
        return self.total - self.values[0][1]

    @cached_property
    def most(self) -> Any:
        """The largest value."""
        return max(value for value, _ in self.values)

    def kinds(self, words: str) -> str:
        """`two kinds: 11 x MTU 9000, 9 x 1500`; `words` holds {} for the value."""
        (first, most), *others = self.values[:_MOST_KINDS]
        told = [f"{most} x {words.format(first)}", *(f"{count} x {value}" for value, count in others)]
        kinds = len(self.values)
        more = f" and {kinds - _MOST_KINDS} more" if kinds > _MOST_KINDS else ""
        return f"{_NUMBERS.get(kinds, str(kinds))} kinds: {', '.join(told)}{more}"


def majority_of(counted: Sequence[tuple[Any, int]]) -> tuple[Any, int]:
    """The value that more than half share, of which at least two, and how many; (None, 0) where there is none."""
    if not counted:
        return None, 0
    value, count = counted[0]
    return (value, count) if count >= LEAST_OTHERS and 2 * count > sum(one for _, one in counted) else (None, 0)
