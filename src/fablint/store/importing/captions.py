"""What a script prints between the tables of a program: headings and command lines, by which its measurements differ.

Tables below different captions are different measurements, and tables below equal ones are repeats. What only counts
the repeats (`run 3`, `iteration 2 of 10`) and times of day do not distinguish them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from fablint.store.importing.launcher_text import has_figures, is_noise
from fablint.store.importing.lines import distinct_words

_RULES = re.compile(r"^[-=*#~+> ]{2,}|[-=*#~+< ]{3,}$|^#+ *")
_REPEAT = re.compile(
    r"\b(run|iter|iteration|trial|rep|repeat|repetition|round|attempt|pass|try|loop)\b[ #:=]*\d+(?: *(?:of|/) *\d+)?",
    re.IGNORECASE,
)
_DURATION = re.compile(r"\b\d+(?:\.\d+)? ?(?:s|sec|seconds|ms)\b")
_CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?(?: ?[AP]M)?(?: ?(?:Z|[+-]\d{2}:?\d{2}|[A-Z]{3,4}\b))?"
_DAY = r"(?:[A-Z][a-z]{2} +\d{1,2}|\d{1,2}\.? +[A-Z][a-z]{2}(?: +\d{4})?)"
_TIME = re.compile(
    rf"\b(?:\d{{4}}-\d{{2}}-\d{{2}}[T ])?{_CLOCK}|(?:\b[A-Z][a-z]{{2}},? +)?\b{_DAY},? +{_CLOCK}(?: +\d{{4}})?"
)
_MOST_LINES, _MOST_LETTERS = 4, 120


class Captions:
    """Lines of a script since the last table; a new caption replaces that of the table before."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._command = ""

    def take(self, line: str, *, is_command: bool = False) -> None:
        """Take a line that is not part of a table; what launchers and libraries print is skipped."""
        text = _REPEAT.sub(r"\1", line if is_command else _RULES.sub("", _TIME.sub("", line.strip()))).strip()
        is_other = is_noise(line) or has_figures(text) or _DURATION.search(text) or not re.search("[A-Za-z]", text)
        if is_command:
            self._command = text
        elif text and not is_other:
            self._lines.append(text[:_MOST_LETTERS])

    def caption(self, before: str = "") -> str:
        """Return the caption of a table that begins here, the command last; `before` where nothing stands above it."""
        words = [*self._lines[-_MOST_LINES:], self._command]
        self._lines, self._command = [], ""
        return " ".join(filter(None, words)) or before


def distinct_captions(captions: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], str]:
    """Return, by title and caption of tables, the words of a caption that not all captions of the title have."""
    by_title: dict[str, list[str]] = {}
    for title, caption in captions:
        by_title.setdefault(title, []).append(caption)
    return {
        (title, caption): words for title, lines in by_title.items() for caption, words in distinct_words(lines).items()
    }
