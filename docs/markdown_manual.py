"""Markdown -> lines of a man page: the headings, paragraphs, lists, tables and blocks of docs/reference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from manual_text import escaped, filled, verbatim
from markdown_it import MarkdownIt
from markdown_it.token import Token

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_MARKUP = re.compile(r"`|\*\*|(?<!\w)\*(?=\S)|(?<=\S)\*(?!\w)")


def body(markdown: str) -> list[str]:
    """Lines of a page after its head; the first heading is the title, which the page does not repeat."""
    lines = [*_lines(MarkdownIt("commonmark").enable("table").parse(markdown))]
    before = [".SH", *lines]
    return [line for line, last in zip(lines, before, strict=False) if line != ".PP" or last[:3] not in (".SH", ".SS")]


def _lines(tokens: Sequence[Token]) -> Iterator[str]:
    depth = 0
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.type == "heading_open":
            yield from _heading(token, tokens[at + 1])
            at += 2
        elif token.type == "table_open":
            end = next(index for index in range(at, len(tokens)) if tokens[index].type == "table_close")
            yield from _table(tokens[at:end])
            at = end
        elif token.type in ("bullet_list_open", "ordered_list_open"):
            yield from [".RS"] * (depth > 0)
            depth += 1
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            depth -= 1
            yield from [".RE"] * (depth > 0)
        elif token.type == "list_item_open":
            yield r".IP \(bu 2"
        elif token.type in ("fence", "code_block"):
            yield from verbatim(token.content.rstrip("\n"))
        elif token.type == "inline":
            if not depth:
                yield ".PP"
            yield filled(plain(token.content))
        at += 1


def _heading(token: Token, words: Token) -> Iterator[str]:
    if token.tag != "h1":
        yield f"{'.SH' if token.tag == 'h2' else '.SS'} {escaped(plain(words.content))}"


def _table(tokens: Sequence[Token]) -> Iterator[str]:
    """A line in bold for the first cell of a row, then the other cells with the title of their column."""
    cells = [token.content for token in tokens if token.type == "inline"]
    width = sum(token.type == "th_open" for token in tokens)
    titles = [plain(cell) for cell in cells[:width]]
    for at in range(width, len(cells), width):
        first, *others = (plain(cell) for cell in cells[at : at + width])
        named = (f"{title}: {cell}" if title else cell for title, cell in zip(titles[1:], others, strict=True) if cell)
        yield from (".TP", f"\\fB{escaped(first)}\\fR", filled("; ".join(named)) or "\\&")


def plain(text: str) -> str:
    """Text without links and marks of emphasis, in one line."""
    return " ".join(_MARKUP.sub("", _LINK.sub(r"\1", text)).split())
