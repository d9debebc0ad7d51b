"""Words that an error message offers in the place of a wrong one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def alternatives(choices: Iterable[str]) -> str:
    """`a, b or c`."""
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last


def did_you_mean(word: str, choices: Iterable[str], otherwise: str, prefix: str = "") -> str:
    """The hint for a word that is not among `choices`."""
    close = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.5)
    return f"did you mean {prefix}{close[0]}" if close else otherwise
