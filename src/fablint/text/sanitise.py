"""Text of hosts, made safe for messages."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=4096)  # hosts of a fleet say the same
def shortened(text: str, most: int = 80) -> str:
    """One line of at most `most` characters, without control characters of terminals."""
    if len(text) <= most and text.isprintable():
        return " ".join(text.split())
    head = text[: 2 * most].strip()
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in head).split())
    return line if len(line) <= most and len(text) <= 2 * most else line[: most - 3] + "..."


def times(text: str, count: int) -> str:
    """Text with a count: `corrected error`, `corrected error, 12 times`."""
    return text if count == 1 else f"{text}, {count:,} times"


def ago(seconds: float) -> str:
    """Age of an event: `3 h ago`."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
