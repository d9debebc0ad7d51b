"""Text of hosts as it can be told to people."""

from __future__ import annotations


def shortened(text: str, most: int = 80) -> str:
    """One line of at most so many letters, without those that a terminal would obey."""
    if len(text) <= most and text.isprintable():
        return " ".join(text.split())
    head = text[: 2 * most].strip()
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in head).split())
    return line if len(line) <= most and len(text) <= 2 * most else line[: most - 3] + "..."


def times(what: str, count: int) -> str:
    """`corrected error`, `corrected error, 12 times`."""
    return what if count == 1 else f"{what}, {count:,} times"


def ago(seconds: float) -> str:
    """`3 h ago`."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
