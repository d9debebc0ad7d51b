"""Parser of the summary of ping."""

from __future__ import annotations

import re

_COUNTS = re.compile(r"(\d{1,9}) packets transmitted, (\d{1,9})(?: packets)? received")


def is_answered(text: str) -> bool | None:
    """Tell whether a ping was answered; None without a summary or if none was sent."""
    counts = _COUNTS.search(text)
    return int(counts[2]) > 0 if counts and int(counts[1]) else None
