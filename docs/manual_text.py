"""Text of man pages: escapes, filled paragraphs, lines that stay as they are."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

_WIDTH = 72  # leaves room for the backslashes of escapes


def escaped(text: str) -> str:
    """Text in which troff sees no request and no escape, and a minus sign stays one."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", text, flags=re.M)


def filled(text: str) -> str:
    """Escaped text in lines of at most 80 letters."""
    return escaped(textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False))


def verbatim(text: str) -> Iterator[str]:
    yield from (".PP", ".nf", escaped(text), ".fi")
