"""Suggestions that an error message offers instead of a wrong word."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def alternatives(choices: Iterable[str]) -> str:
    """Enumeration: `a, b or c`."""
    *first, last = choices
    return f"{', '.join(first)} or {last}" if first else last


def nearest(word: str, choices: Iterable[str], share: float) -> str:
    """Return the choice that has most letters of a word in their order; '' if none has enough.

    Parameters
    ----------
    word
        What was written.
    choices
        What there is.
    share
        Least share of the letters.
    """
    close = difflib.get_close_matches(word, list(choices), n=1, cutoff=share)
    return close[0] if close else ""


def did_you_mean(word: str, choices: Iterable[str], otherwise: str, prefix: str = "") -> str:
    """Return a hint with the choice that is nearest to a word.

    Parameters
    ----------
    word
        What was written.
    choices
        What there is.
    otherwise
        Hint if no choice is near.
    prefix
        Text before the choice in the hint, such as `--`.
    """
    close = nearest(word, choices, 0.5)
    return f"did you mean {prefix}{close}" if close else otherwise
