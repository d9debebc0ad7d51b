"""Blocks of code on the pages of the documentation, by what they hold: commands, Python, or what a program prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from documented_commands import ROOT

_FENCE = re.compile(r"^(\s*)```(\w*)$")
_PROGRAMS = re.compile(
    r"^(\$ )?(fablint(-engine)?|mpiexec|export|salloc|pip|make|git|man|scontrol|"
    r"\*/10 \S+ \S+ \S+ \S+ +root +fablint)\s(?!found)"
)
_PYTHON = re.compile(r"^(import |\w+ = run\[)")


class Block(NamedTuple):
    """Lines of a block of code: `kind` is `shell`, `python` or `text`."""

    page: str
    line: int
    kind: str
    lines: tuple[str, ...]


def blocks(page: Path) -> Iterator[Block]:
    """Blocks of a page: fenced, or indented by four blanks behind an empty line."""
    name = str(page.relative_to(ROOT))
    lines = page.read_text().splitlines()
    number = 0
    while number < len(lines):
        fence = _FENCE.match(lines[number])
        if fence:
            end = next(i for i in range(number + 1, len(lines)) if lines[i].strip() == "```")
            yield _block(name, number + 2, [line.removeprefix(fence[1]) for line in lines[number + 1 : end]])
            number = end + 1
        elif lines[number].startswith("    ") and not (number and lines[number - 1].strip()):
            end = number
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield _block(name, number + 1, [line[4:] for line in lines[number:end]])
            number = end
        else:
            number += 1


def _block(page: str, line: int, lines: list[str]) -> Block:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    kind = "shell" if _PROGRAMS.match(lines[0]) else "python" if _PYTHON.match(lines[0]) else "text"
    return Block(page, line, kind, tuple(lines))
