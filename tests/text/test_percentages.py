"""Percentages have one form, `61 %`, made by two functions of `text/units.py`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src/fablint"


def format_specs(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and format of each value of an f-string, and of each field of a text that is formatted."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(str(part.value) for part in node.format_spec.values if isinstance(part, ast.Constant)),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from ((node.lineno, spec) for spec in re.findall(r"\{\w*:([^{}]*%)\}", node.value))


def test_no_number_is_formatted_as_a_percentage_by_python():
    """`{x:.1%}` writes `47.8%`; `{x:%}` and `{x:+%}` of sentences are those of `sentence_words`."""
    found = [
        f"{path.relative_to(SOURCES)}:{line}: {spec}"
        for path in SOURCES.rglob("*.py")
        for line, spec in format_specs(ast.parse(path.read_text()))
        if spec.endswith("%") and spec not in ("%", "+%")
    ]
    assert not found
