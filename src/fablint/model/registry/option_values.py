"""Values of row options as text and as Python objects, by their kind in engine/registry/options.inc.

A parser raises UsageError without the name of the option, which the caller adds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fablint.errors import UsageError
from fablint.model.registry.row_limits import ROW_LIMITS

Counts = tuple[int, int]  # for sizes up to ROW_LIMITS.largest_small_message, and above it

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def parse_count(text: str) -> int:
    """Return a whole number from 1 to ROW_LIMITS.largest_count: `12`.

    Raises
    ------
    UsageError
        The text is not a number in that range.
    """
    count = parse_whole(text)
    if count > ROW_LIMITS.largest_count:
        raise UsageError(f"'{text}' is too large", f"give at most {ROW_LIMITS.largest_count}")
    return count


def parse_whole(text: str) -> int:
    """Return a whole number of at least 1: `12`.

    Raises
    ------
    UsageError
        The text is not such a number.
    """
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < 1:
        raise UsageError(f"'{text}' is not a count", "give a whole number of at least 1")
    return int(text)


def parse_natural(text: str) -> int:
    """Return a whole number of at least 0: `0`.

    Raises
    ------
    UsageError
        The text is not such a number.
    """
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise UsageError(f"'{text}' is not a whole number", "give 0 or more")
    return int(text)


def parse_counts(text: str) -> Counts:
    """A count for all sizes, `100`, or one for those up to 8 KiB and one for the larger, `100,20`."""
    return _small_and_large(text, parse_whole)


def parse_naturals(text: str) -> Counts:
    """Parse as `parse_counts` does, but 0 is allowed: `100,0`."""
    return _small_and_large(text, parse_natural)


def _small_and_large(text: str, parse: Callable[[str], int]) -> Counts:
    small, comma, large = text.partition(",")
    return parse(small), parse(large if comma else small)


def format_counts(counts: Counts) -> str:
    """The shortest text that `parse_counts` reads as the same."""
    small, large = counts
    return str(small) if small == large else f"{small},{large}"


def parse_workers(text: str) -> tuple[int, int]:
    """Return the numbers of senders and receivers: `1:2`.

    Raises
    ------
    UsageError
        The text is not two numbers of at least 1.
    """
    senders, colon, receivers = text.partition(":")
    if not colon:
        raise UsageError(f"'{text}' is not a pair of counts", "give senders and receivers, such as 1:2")
    workers = parse_count(senders), parse_count(receivers)
    if max(workers) > ROW_LIMITS.most_workers:
        raise UsageError(f"'{text}' is too many", f"at most {ROW_LIMITS.most_workers} at each end")
    return workers


def parse_name(text: str) -> str:
    """Return the name of a row, which is a folder inside the run directory.

    Raises
    ------
    UsageError
        The text has other characters than letters, digits, - and _, or names a folder of the run directory.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", text) or re.fullmatch(
        r"checksums|report|rounds|launches|launch-\d+", text
    ):
        hint = "use letters, digits, - and _, but not checksums, report, rounds, launches or launch-N"
        raise UsageError(f"'{text}' is not a name for a row", hint)
    return text


def parse_seconds(text: str) -> float:
    """Return a number of seconds above 0: `0.5`.

    Raises
    ------
    UsageError
        The text is not such a number.
    """
    seconds = _number(text)
    if not 0 < seconds < math.inf:
        raise UsageError(f"'{text}' is not a duration", "give seconds above 0, such as 0.5")
    return seconds


def parse_fraction(text: str) -> float:
    """Return a number between 0 and 1, both excluded: `0.02`.

    Raises
    ------
    UsageError
        The text is not such a number.
    """
    fraction = _number(text)
    if not 0 < fraction < 1:
        raise UsageError(f"'{text}' is not a fraction", "give a number between 0 and 1, such as 0.02")
    return fraction


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def parse_bytes(text: str) -> int:
    """A byte count below 2 GiB: `8`, `1K`, `4M`, `1G`; K, M, G (k, m, g) are powers of 1024.

    Raises
    ------
    UsageError
        The text is not a byte count, or is too large.
    """
    match = re.fullmatch(r"([0-9]+)([KMG]?)", text.upper())
    if not match:
        raise UsageError(f"'{text}' is not a size", "give bytes such as 8, 1K, 4M or a range such as 1K:4M")
    size = int(match[1]) * UNITS[match[2]]
    if size > ROW_LIMITS.largest_message:
        raise UsageError(f"'{text}' is too large", "a message has at most 2 GiB - 1")
    return size


def format_bytes(size: int) -> str:
    """The shortest text that `parse_bytes` reads as `size`."""
    for unit, factor in reversed(UNITS.items()):
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def parse_sizes(text: str) -> tuple[int, ...]:
    """Message sizes in bytes, in the order given: `8`, `8,1K,1M`, `1K:4M` (doubling, as far as the end allows).

    Raises
    ------
    UsageError
        Not a size, an empty range, or a size twice.
    """
    sizes: list[int] = []
    for item in text.split(","):
        first, colon, last = item.partition(":")
        sizes += _doubling(item, parse_bytes(first), parse_bytes(last)) if colon else [parse_bytes(item)]
    twice = next((size for size in sizes if sizes.count(size) > 1), None)
    if twice is not None:
        raise UsageError(f"size {format_bytes(twice)} appears twice in '{text}'", "give every size once")
    return tuple(sizes)


def _doubling(item: str, first: int, last: int) -> list[int]:
    """`first`, twice that, and so on up to `last`; 0 is followed by 1."""
    if last < first:
        raise UsageError(f"'{item}' is an empty range", "write the smaller end first, such as 1K:4M")
    if first == 0:
        return [0, *(_doubling(item, 1, last) if last else [])]
    return [first << step for step in range((last // first).bit_length())]


def format_sizes(sizes: Sequence[int]) -> str:
    """The shortest text that `parse_sizes` reads as these sizes."""
    folded = f"{format_bytes(sizes[0])}:{format_bytes(sizes[-1])}"
    is_range = len(sizes) > 2 and sizes[0] <= sizes[-1] and parse_sizes(folded) == tuple(sizes)
    return folded if is_range else ",".join(map(format_bytes, sizes))


def parse_indices(text: str) -> tuple[int, ...]:
    """Ascending indices, each once: `0-3,17` is 0, 1, 2, 3, 17; `none` is none at all.

    Raises
    ------
    UsageError
        The text is not a list of indices.
    """
    indices: set[int] = set()
    for item in text.split(",") if text != "none" else ():
        match = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", item)
        if not match or (match[2] and int(match[2]) < int(match[1])):
            raise UsageError(f"'{item}' is not a range of rounds", "write them as 0-3,17")
        indices.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(indices))


def fold_indices(indices: Iterable[int]) -> str:
    """The shortest text that `parse_indices` reads as the same set: 0, 1, 2, 3, 17 is `0-3,17`."""
    runs: list[list[int]] = []
    for index in sorted(set(indices)):
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs) or "none"


def _format_number(value: float) -> str:
    """The shortest text that Python reads as the number."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


# Reader and writer of the values of each kind. The words of a choice are those of a table, which the caller compares.
KINDS: Mapping[str, tuple[Callable[[str], Any], Callable[[Any], str]]] = {
    "label": (parse_name, str),
    "count": (parse_count, str),
    "whole": (parse_whole, str),
    "natural": (parse_natural, str),
    "counts": (parse_counts, format_counts),
    "naturals": (parse_naturals, format_counts),
    "seconds": (parse_seconds, _format_number),
    "fraction": (parse_fraction, _format_number),
    "sizes": (parse_sizes, format_sizes),
    "workers": (parse_workers, lambda workers: "{}:{}".format(*workers)),
    "ranges": (parse_indices, fold_indices),
    "flag": (bool, lambda _: ""),
    **dict.fromkeys(("text", "choice", "word", "pattern", "transport", "memory", "win", "sync"), (str, str)),
}
