"""The format of sentences about evidence and actions: counts with their nouns, folded names, times."""

from __future__ import annotations

from string import Formatter
from typing import Any

from fablint.model.names import fold, plural
from fablint.text.units import percent, share_text


def microseconds(seconds: float) -> str:
    """Return a time: `1.23 us`."""
    return f"{seconds * 1e6:.2f} us"


def ratio_text(ratio: float) -> str:
    """Return a ratio without insignificant digits: `1.5`, `12`."""
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


class Words(Formatter):
    """`str.format` with `{n:#pair}` for a count, `{hosts:fold}` for a list of names, `{seconds:us}` for a time.

    `{change:+%}` is a change, `{share:%}` a share of a whole, in percent.
    """

    def format_field(self, value: Any, format_spec: str) -> str:
        """One value in words."""
        if format_spec.startswith("#"):
            return plural(value, format_spec[1:])
        if format_spec == "fold":
            return fold(value)
        if format_spec == "list":
            return ", ".join(value)
        if format_spec == "and":
            return " and ".join(value)
        if format_spec == "us":
            return microseconds(value)
        if format_spec == "times":
            return ratio_text(value)
        if format_spec == "+%":
            return percent(value)
        if format_spec == "%":
            return share_text(value)
        return str(super().format_field(value, format_spec))


WORDS = Words()
