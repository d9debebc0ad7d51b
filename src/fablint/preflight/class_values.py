"""Agreement of the hosts of a class on a value: the usual value, and whether deviating hosts are at fault.

All hosts of a class share one agreement, whose derived values are computed once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fablint.model.names import fold
from fablint.text.sanitise import shortened

LEAST_OTHERS = 2  # hosts with the usual value, which must be more than half of all
CLEAR_SHARE = 0.8  # of all hosts with the usual value, for a difference to be a fault
CLEAR_OTHERS = 4  # hosts with the usual value, for a difference to be a fault
_MAX_KINDS = 3  # in a message
_MAX_NAMES = 60  # characters of the names of hosts in a message
_NUMBERS = {2: "two", 3: "three"}


def is_clear(count: int, total: int) -> bool:
    """Tell whether enough hosts agree for a deviating host to be at fault."""
    return count >= CLEAR_OTHERS and count >= CLEAR_SHARE * total


def worded(words: str, value: Any) -> str:
    """Return `words` with the value in place of {} and the ending in place of [s]: `1 GPU`, `8 GPUs` of `{} GPU[s]`."""
    return words.replace("[s]", "" if value == 1 else "s").format(value)


@dataclass(frozen=True)
class Agreement:
    """Values of a class of hosts with the number of hosts, the most frequent first."""

    values: tuple[tuple[Any, int], ...] = ()

    @classmethod
    def of(cls, values: Sequence[Any]) -> Agreement:
        """Count the values of a class, one per host; they must be hashable."""
        return cls(tuple(Counter(values).most_common()))

    @cached_property
    def total(self) -> int:
        """Number of hosts."""
        return sum(count for _, count in self.values)

    @cached_property
    def _majority(self) -> tuple[Any, int]:
        return majority_of(self.values)

    @property
    def usual(self) -> Any:
        """Value of more than half of the hosts, at least two; None if there is none."""
        return self._majority[0]

    @property
    def count(self) -> int:
        """Number of hosts with the usual value; 0 if there is none."""
        return self._majority[1]

    @cached_property
    def with_more_as_usual(self) -> Agreement:
        """Agreement in which values above the usual value count as the usual value, such as faster links."""
        usual = self.usual
        if usual is None:
            return self
        counted: Counter[Any] = Counter()
        for item, count in self.values:
            counted[min(item, usual)] += count
        return Agreement(tuple(counted.most_common()))

    @property
    def is_clear(self) -> bool:
        """True if deviating hosts are at fault."""
        return is_clear(self.count, self.total)

    @cached_property
    def is_divided(self) -> bool:
        """True if several hosts differ without a clear majority, or the only two hosts differ.

        A single host that deviates from two or more is reported on its own.
        """
        if len(self.values) < 2 or self.is_clear:
            return False
        most = self.values[0][1]
        return self.is_pair or (most >= LEAST_OTHERS and self.total - most > 1)

    @property
    def is_pair(self) -> bool:
        """True for two hosts."""
        return self.total == 2

    @cached_property
    def most(self) -> Any:
        """Largest value."""
        return max(value for value, _ in self.values)

    def kinds(self, words: str, value_of_hosts: Iterable[tuple[str, Any]] = ()) -> str:
        """Describe the values: `two kinds: 11 x MTU 9000, 9 x 1500 on n[12-20]`; `words` are those of `worded`.

        `value_of_hosts` are hosts with their values: those of a less frequent value are named, and both of two hosts.
        """
        (first, most), *others = self.values[:_MAX_KINDS]
        named: dict[Any, list[str]] = defaultdict(list)
        for host, value in value_of_hosts:
            named[value].append(host)
        if not self.is_pair:
            named.pop(first, None)
        texts = [(first, most, worded(words, first))]
        texts += [(value, count, f"{value:g}" if isinstance(value, float) else value) for value, count in others]
        parts = []
        for value, count, text in texts:
            place = f" on {shortened(fold(named[value]), _MAX_NAMES)}" if value in named else ""
            parts.append(f"{count} x {text}{place}")
        kinds = len(self.values)
        more = f" and {kinds - _MAX_KINDS} more" if kinds > _MAX_KINDS else ""
        return f"{_NUMBERS.get(kinds, str(kinds))} kinds: {', '.join(parts)}{more}"


def majority(values: Sequence[Any]) -> tuple[Any, int]:
    """Return the value of more than half, at least two, with its count; (None, 0) if there is none."""
    return majority_of(Counter(values).most_common())


def majority_of(counted: Sequence[tuple[Any, int]]) -> tuple[Any, int]:
    """Return the value of more than half, at least two, with its count; (None, 0) if there is none."""
    if not counted:
        return None, 0
    value, count = counted[0]
    return (value, count) if count >= LEAST_OTHERS and 2 * count > sum(one for _, one in counted) else (None, 0)
