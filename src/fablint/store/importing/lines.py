"""Helpers of all readers of other tools' texts: numbered lines, numbers, and lines of other programs."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from fablint.errors import UsageError

NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?(?:nan|inf)"
PLAIN = r"[0-9]{1,18}(?:\.[0-9]{1,18})?"  # always finite
INTEGER = r"[0-9]{1,18}"  # at most 63 bits, and few enough digits for Python to convert


@dataclass(frozen=True)
class Foreign:
    """A line that is not part of the format: from another program, garbled, or cut off."""

    line: int  # counted from 1
    text: str


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers, from 1, without line ends."""
    for number, line in enumerate(text.split("\n"), 1):
        yield number, line.removesuffix("\r")


def figure(word: str) -> float | None:
    """Number that a word holds; None for `-`, nan and infinities: not measured."""
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


_ENDLESS = re.compile(r"[0-9]{100,}")


def text_of(data: bytes) -> str:
    """Text of a file. Bytes that are not UTF-8 become the replacement character, so that their line is still counted.

    So do very long numbers: no tool prints them, and Python refuses to convert more than some thousand digits.
    """
    return _ENDLESS.sub("\ufffd", data.decode("utf-8-sig", errors="replace"))


def second_of(what: str, number: int) -> UsageError:
    """Return the refusal of a file in which another `what` (`run of LinkTest`) begins at a line."""
    return UsageError(f"line {number}: a second {what}", "give the output of each run in its own file")


_JSON = re.compile(r"(?m)^\s*\{")


def json_of(text: str, hint: str) -> Any:
    """Return the value of a JSON text; lines of other programs may stand before and after it.

    Raises
    ------
    UsageError
        The text is not JSON; `hint` says what to give. Or a second document with the keys of the first follows.
    """
    decoder = json.JSONDecoder()
    try:
        value, end = decoder.raw_decode(text, start.start() if (start := _JSON.search(text)) else 0)
    except (ValueError, RecursionError):
        raise UsageError("the text begins as JSON but is not JSON", hint) from None
    for start in _JSON.finditer(text, end):
        with suppress(ValueError, RecursionError):
            other = decoder.raw_decode(text, start.start())[0]
            if isinstance(value, dict) and isinstance(other, dict) and other.keys() == value.keys():
                raise second_of("JSON document", text.count("\n", 0, start.end()) + 1)
    return value


def distinct_words(lines: Iterable[str]) -> Mapping[str, str]:
    """Return for each line its words that not all lines have: what distinguishes command lines of one program."""
    counts = {line: Counter(line.split()) for line in lines}
    shared = reduce(and_, counts.values(), next(iter(counts.values()), Counter()))
    words: dict[str, str] = {}
    for line in counts:
        rest = shared.copy()
        words[line] = " ".join(word for word in line.split() if rest.subtract([word]) or rest[word] < 0)
    return words


def marked(pattern: bytes) -> re.Pattern[bytes]:
    """Pattern of a line that begins with `pattern`, in the head of a file."""
    return re.compile(rb"(?m)^(?:" + pattern + rb")")


def figures(words: Sequence[str]) -> list[float] | None:
    """Numbers of a row of a matrix, nan where not measured; None if a word is not a number."""
    numbers = [math.nan if word in _NOTHING else figure(word) for word in words]
    return None if None in numbers else [math.nan if number is None else number for number in numbers]


_NOTHING = ("-", "nan", "-nan", "inf", "-inf")
