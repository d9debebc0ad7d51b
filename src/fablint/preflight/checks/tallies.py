"""Files of which a host has one per CPU or per interrupt, as the collector tallies them: `COUNT VALUE` a line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")
_LINE = re.compile(r"(\d{1,9}) (\S[^\n]{0,4000})")


@lru_cache(maxsize=4096)  # similar hosts say the same
def tallied(text: str | None) -> Mapping[str, int]:
    """How many files have each value; empty where there is none, or it is no tally."""
    lines = [_LINE.fullmatch(line) for line in (text or "").splitlines()]
    return {line[2]: int(line[1]) for line in lines if line} if all(lines) else {}


@lru_cache(maxsize=4096)
def numbers(text: str | None) -> Mapping[int, int]:
    """A tally of numbers; empty where some are none."""
    found = tallied(text)
    if not all(value.isdecimal() and len(value) <= 20 for value in found):
        return {}
    return {int(value): count for value, count in found.items()}


@lru_cache(maxsize=4096)
def cpu_set(text: str) -> frozenset[int]:
    """The CPUs of `0-3,8`; none where it is no such list."""
    ranges = [_RANGE.fullmatch(part) for part in text.strip().split(",")]
    found = [(int(one[1]), int(one[2] or one[1])) for one in ranges if one]
    return frozenset(cpu for first, last in found for cpu in range(first, last + 1)) if all(ranges) else frozenset()
