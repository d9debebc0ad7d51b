"""Compact pickling of the results of a check.

Results are pickled by column: pickle writes an object once, and then its number. Most hosts of a fleet have the same
outcome, message and value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import repeat
from operator import is_
from typing import Any

from fablint.model.preflight_results import Result

_TEXTS = [Result._fields.index(name) for name in ("target", "message", "value")]  # which checks format for each host
_result = partial(tuple.__new__, Result)  # twice as fast as Result._make


class Batch:
    """The results of a check, in order."""

    def __init__(self, results: Sequence[Result]) -> None:
        self.results = results

    def __reduce__(self) -> tuple[Any, ...]:
        columns: list[Iterable[Any]] = [_repeated(column) for column in zip(*self.results, strict=True)]
        for index in _TEXTS if columns else ():
            columns[index] = columns[index] if isinstance(columns[index], repeat) else _shared(columns[index])
        return _batch, (columns,)


def _batch(columns: Sequence[Iterable[Any]]) -> Batch:
    return Batch(list(map(_result, zip(*columns, strict=True))))


def _repeated(column: Sequence[Any]) -> Iterable[Any]:
    """Return a column; if all its values are one object, as a repetition of it, which is a third of the octets."""
    same = all(map(is_, column, repeat(column[0])))
    return repeat(column[0], len(column)) if same else column


def _shared(column: Iterable[Any]) -> list[Any]:
    """Return a column with one object for equal texts."""
    shared = dict[str, str]().setdefault
    return [shared(value, value) if isinstance(value, str) else value for value in column]
