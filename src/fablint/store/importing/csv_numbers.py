"""Figures of CSV files as people and spreadsheets write them: which mark is that of the decimals, and which groups.

`12.345` is either. A figure that can be read in one form only, as `12.345,6`, decides for all figures of its file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_MARKS = ".,"
_EITHER = re.compile(r"[-+]?[0-9]{1,3}[.,][0-9]{3}")
_NUMERIC = re.compile(r"[-+]?[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?")
_WRITTEN = {  # by the mark of the decimals
    mark: re.compile(
        rf"[-+]?(?:[0-9]*|[0-9]{{1,3}}(?:{re.escape(other)}[0-9]{{3}})+)(?:{re.escape(mark)}[0-9]*)?(?:[eE][-+]?[0-9]+)?"
    )
    for mark, other in (".,", ",.")
}


def decimal_mark(figures: Iterable[str]) -> str:
    """Return the mark of the decimals that figures show; '' if they show none, or both."""
    shown = {mark for text in figures if (mark := _shown(text))}
    return shown.pop() if len(shown) == 1 else ""


def plain_figure(text: str, mark: str, *, between_commas: bool) -> str:
    """Return a figure with a decimal point and without marks of groups; unchanged if it is none.

    Parameters
    ----------
    text
        A cell.
    mark
        That of the decimals in its file; '' if the file does not show it.
    between_commas
        Whether commas separate columns: a quoted one marks groups, elsewhere it marks the decimals.
    """
    mark = _shown(text) or mark or ("," if "," in text and not between_commas else ".")
    if not _WRITTEN[mark].fullmatch(text):
        return text
    return text.replace(_MARKS.replace(mark, ""), "").replace(mark, ".")


def _shown(text: str) -> str:
    """Return the mark of the decimals that a figure shows; '' if it shows none."""
    marks = [letter for letter in text if letter in _MARKS]
    if not marks or _EITHER.fullmatch(text) or not _NUMERIC.fullmatch(text):
        return ""
    if len(marks) > 1 and len({*marks}) == 1:  # 1,234,567
        return _MARKS.replace(marks[0], "")
    return marks[-1]
