"""Suggestions that an error message offers instead of a wrong word."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def alternatives(choices: Iterable[str]) -> str:
    """Enumeration: `a, b or c`."""
    *first, last = choices
    return f"{', '.join(first)} or {last}" if first else last


def nearest(word: str, choices: Iterable[str], share: float) -> str:
    """Return the choice that has most letters of a word in their order, at least that share of them; '' if none has."""
    close = difflib.get_close_matches(word, list(choices), n=1, cutoff=share)
    return close[0] if close else ""


def did_you_mean(word: str, choices: Iterable[str], otherwise: str, prefix: str = "") -> str:
    """Hint for a word that is not in `choices`: the nearest choice, or `otherwise`."""
    close = nearest(word, choices, 0.5)
    return f"did you mean {prefix}{close}" if close else otherwise
