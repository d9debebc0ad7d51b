"""Commands of fablint in Markdown and in files of integrations/: code blocks and words in backticks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^\s*```")
_INLINE = re.compile(r"`(fablint [^`]+)`")
_ENDS = {"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1", ")"}  # of a command in a shell
_LEADING = {"salloc", "srun", "sbatch", "timeout", "sudo", "$", "if", "!", "&&", "||", ";", "|", "time"}
_PROGRAM = re.compile(r"(?:\S*/)?fablint")


class Command(NamedTuple):
    """Words behind `fablint`, and where they are written."""

    where: str
    words: tuple[str, ...]
    in_prose: bool = False


def documents() -> list[Path]:
    """Pages of the documentation, and the README files."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "integrations").rglob("*.md"))]


def code_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines of code blocks with their numbers: fenced, or indented by four blanks after an empty line."""
    fenced = indented = False
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif fenced:
            yield number, line
        elif line.startswith("    ") and (indented or not before.strip()):
            indented = True
            yield number, line.strip()
        else:
            indented = False
        before = line


def commands(page: Path) -> Iterator[Command]:
    """Commands of fablint on a page."""
    text = page.read_text()
    name = str(page.relative_to(ROOT))
    in_code = set()
    for number, line in code_lines(text):
        in_code.add(number)
        for words in commands_of_line(line):
            yield Command(f"{name}:{number}", words)
    for number, line in enumerate(text.splitlines(), 1):
        if number not in in_code:
            for match in _INLINE.finditer(line):
                for words in commands_of_line(match[1]):
                    yield Command(f"{name}:{number}", words, in_prose=True)


def commands_of_line(line: str) -> Iterator[tuple[str, ...]]:
    """Words of each command of fablint in a line of a shell; a line that is output of a program has none."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # a quotation mark that is not closed: prose, or output
        return
    start = 0
    while start < len(words):
        ends = (i for i in range(start, len(words)) if words[i] in _ENDS)
        end = next(ends, len(words))
        command = words[start:end]
        at = next((i for i, word in enumerate(command) if _PROGRAM.fullmatch(word)), None)
        if at is not None and (at == 0 or command[0] in _LEADING or "*" in command[0]):
            last = command[at + 1 :]
            yield tuple(last[:-1] if end < len(words) and last and last[-1] == "2" else last)
        start = end + 1
