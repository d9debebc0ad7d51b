"""Sentences that tests expect, one file per folder of tests: tests/sentences/AREA.toml; `make sentences` renews them.

A test module takes its own with `PINNED = pinned_by("AREA.toml", __file__)`. `assert text == PINNED["no such NIC"]`
compares with the sentence of that name, and fails when the product says something else. With `--renew-sentences` what
the product says replaces the sentence in the file; the test still fails, and passes when it is started again.
"""

from __future__ import annotations

import difflib
import fcntl
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "sentences"
SIMILAR = 0.5  # least similarity of a sentence and its successor inside a longer text
OPTION = "--renew-sentences"

_renewing = False


class Pinned(str):
    """A sentence with its place: the file, and section and key in it."""

    file: Path
    section: str
    key: str
    values: dict[str, str]

    def filled(self, **values: object) -> Pinned:
        """Return the sentence with values in the place of `{name}`."""
        text = str(self)
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", str(value))
        return placed(text, self.file, self.section, self.key, {name: str(value) for name, value in values.items()})

    def begins(self, text: str) -> bool:
        """Return whether a text begins with the sentence."""
        if not text.startswith(self) and (part := similar_part(self, text)):
            renew([(self, text[: text.index(part) + len(part)])])
        return text.startswith(self)

    def ends(self, text: str) -> bool:
        """Return whether a text ends with the sentence."""
        if not text.endswith(self) and (part := similar_part(self, text)):
            renew([(self, text[text.rindex(part) :])])
        return text.endswith(self)


def placed(text: str, file: Path, section: str, key: str, values: dict[str, str]) -> Pinned:
    """Return a sentence with its place and the values that were put into it."""
    pinned = Pinned(text)
    pinned.file, pinned.section, pinned.key, pinned.values = file, section, key, values
    return pinned


class Sentences(Mapping[str, Pinned]):
    """The sentences of a test module, by their names."""

    def __init__(self, file: Path, section: str) -> None:
        self.file, self.section = file, section

    def __getitem__(self, key: str) -> Pinned:
        try:
            return placed(area(self.file)[self.section][key], self.file, self.section, key, {})
        except KeyError:
            raise KeyError(f"{self.file.name} has no sentence {key!r} of {self.section}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(area(self.file).get(self.section, {}))

    def __len__(self) -> int:
        return len(area(self.file).get(self.section, {}))


@cache
def area(file: Path) -> dict[str, dict[str, str]]:
    """Return the sentences of a folder of tests, by module and name."""
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def pinned_by(name: str, module: str) -> Sentences:
    """Return the sentences of a test module, by the name of the file that has them and the file of the module."""
    return Sentences(FOLDER / name, Path(module).stem)


def quoted(text: str) -> Any:
    """Return a text as TOML: lines as lines, unless blanks at their ends would not be seen."""
    import tomlkit

    if "\n" in text.rstrip("\n") and not re.search(r"[ \t\r]$", text, re.MULTILINE):
        return tomlkit.value('"""\n' + tomlkit.string(text, multiline=True).as_string().removeprefix('"""'))
    is_literal = '"' in text and "'" not in text and text.isprintable()
    return tomlkit.string(text, literal=is_literal)


def similar_part(sentence: str, text: str) -> str | None:
    """Return the part of a text, whole words, that is most similar to a sentence; None if there is nothing similar."""
    words = list(re.finditer(r"\S+", text))
    number = len(sentence.split())
    matcher = difflib.SequenceMatcher(None, "", sentence, autojunk=False)

    def similarity(part: tuple[int, int]) -> float:
        matcher.set_seq1(text[words[part[0]].start() : words[part[1] - 1].end()])
        return matcher.ratio()

    names = set(sentence.split())
    common = [word.group() in names for word in words]
    starts = range(max(1, len(words) - number + 1))
    start = max(starts, key=lambda place: sum(common[place : place + number]), default=0)
    near = range(max(0, start - number), min(len(words), start + number))
    ends = range(start + 1, min(len(words), start + 2 * number) + 1)
    parts = [(first, last) for first in near for last in ends if first < last]
    best = max(parts, key=similarity, default=None)
    if best is None or similarity(best) < SIMILAR:
        return None
    return text[words[best[0]].start() : words[best[1] - 1].end()]


def successors(left: object, right: object, is_part: bool) -> Iterator[tuple[Pinned, str | None]]:
    """Yield the sentences in one of two values that were compared, each with what the other has in its place."""
    if isinstance(right, Pinned) and not isinstance(left, Pinned):
        left, right = right, left
    if isinstance(left, Pinned):
        yield left, successor(left, right, is_part)
    elif isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in left.keys() & right.keys():
            yield from successors(left[key], right[key], False)
    elif isinstance(left, set | frozenset) and isinstance(right, set | frozenset):
        for text in left ^ right:
            if isinstance(text, Pinned):
                yield text, successor(text, (left ^ right) - {text}, True)
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
        for first, second in zip(left, right, strict=False):
            yield from successors(first, second, False)


def successor(pinned: Pinned, other: object, is_part: bool) -> str | None:
    """Return what a value has in the place of a sentence: the value, a part of it, or the most similar of its texts."""
    if isinstance(other, str):
        return similar_part(pinned, other) if is_part else other
    texts = [text for text in other if isinstance(text, str)] if isinstance(other, Collection) else []
    return next(iter(difflib.get_close_matches(pinned, texts, 1, SIMILAR)), None)


def renew(changes: Collection[tuple[Pinned, str | None]]) -> None:
    """Write sentences with their successors into their files, if pytest was started for that."""
    import tomlkit

    for pinned, text in changes if _renewing else ():
        if text is None or text == pinned:
            continue
        for name, value in pinned.values.items():
            text = text.replace(value, f"{{{name}}}")
        with pinned.file.open("r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # several workers of pytest
            document: Any = tomlkit.parse(file.read())
            document[pinned.section][pinned.key] = quoted(text)
            file.seek(0)
            file.truncate()
            file.write(tomlkit.dumps(document))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that renews sentences."""
    parser.addoption(OPTION, action="store_true", help="write what the product says into tests/sentences")


def pytest_configure(config: pytest.Config) -> None:
    """Note whether sentences are renewed."""
    global _renewing
    _renewing = config.getoption("renew_sentences")


def pytest_assertrepr_compare(op: str, left: object, right: object) -> None:
    """Renew the sentences of a comparison that failed."""
    if op in ("==", "in"):
        renew(list(successors(left, right, op == "in")))
