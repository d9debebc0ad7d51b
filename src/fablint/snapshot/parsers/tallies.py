"""Files of /sys: tallies of those that a host has once per CPU or interrupt, and figures with units."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")
_LINE = re.compile(r"(\d{1,9}) (\S[^\n]{0,4000})")  # `COUNT VALUE`, written by the collector
_FIGURE = re.compile(r"\d{1,4}(?:\.\d{1,3})?")


@lru_cache(maxsize=4096)  # equal for similar hosts
def tallied(text: str | None) -> Mapping[str, int]:
    """Return the number of files by value; empty for a missing or malformed tally."""
    lines = [_LINE.fullmatch(line) for line in (text or "").splitlines()]
    return {line[2]: int(line[1]) for line in lines if line} if all(lines) else {}


@lru_cache(maxsize=4096)
def numbers(text: str | None) -> Mapping[int, int]:
    """Return a tally of numbers; empty if a value is not a number."""
    result = tallied(text)
    if not all(value.isdecimal() and len(value) <= 20 for value in result):
        return {}
    return {int(value): count for value, count in result.items()}


@lru_cache(maxsize=4096)
def cpu_set(text: str) -> frozenset[int]:
    """Return the CPUs of a list such as `0-3,8`; empty if malformed."""
    ranges = [_RANGE.fullmatch(part) for part in text.strip().split(",")]
    result = [(int(one[1]), int(one[2] or one[1])) for one in ranges if one]
    return frozenset(cpu for first, last in result for cpu in range(first, last + 1)) if all(ranges) else frozenset()


@lru_cache(maxsize=1024)  # a fleet has many links but few values
def pcie_figure(text: str | None) -> float | None:
    """Parse `16.0 GT/s PCIe` as 16; None for 0, 255 and `Unknown`."""
    match = _FIGURE.match((text or "").strip())
    figure = float(match[0]) if match else 0.0
    return figure if 0 < figure < 255 else None
