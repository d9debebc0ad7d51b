"""The places of words in long texts are those that `str.find` finds, whatever the words and the texts."""

from __future__ import annotations

import random

import pytest

from fablint.preflight import CHECKS
from fablint.snapshot.parsers.kernel_log import WATCHED, KernelLog
from fablint.text.word_search import WordSearch

assert CHECKS  # whose modules register the words of events
WORDS = sorted(WATCHED)


def found(text: str, word: str) -> list[int]:
    return [at for at in range(len(text)) if text.startswith(word, at)]


def text_of(chance: random.Random, letters: str, words: list[str], count: int) -> str:
    parts = []
    while sum(map(len, parts)) < count:
        noise = "".join(chance.choices(letters, k=chance.randrange(1, 200)))
        parts += [noise, chance.choice(words), chance.choice(words)[chance.randrange(3) :]]
    return "".join(parts)[-count:]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("letters", ["ab", "abcdefgh \n[#rormnoplx5_", "aé中\n:# "])
def test_places_are_those_of_str_find(letters: str, seed: int) -> None:
    chance = random.Random(seed)
    words = ["".join(chance.choices("ab[#rox", k=chance.randrange(2, 7))) for _ in range(20)]
    text = text_of(chance, letters, [*words, words[0] * 2], 10_000 + seed)
    places = WordSearch(words).places(text)
    assert {word: list(at) for word, at in places.items()} == {word: at for word in words if (at := found(text, word))}
    assert places


@pytest.mark.parametrize("odd", [0, 1])
def test_words_at_both_ends_of_a_text(odd: int) -> None:
    words = ["[#", "nvme nvme", "rror", "EDAC MC"]
    for word in words:
        text = word + "." * (20_000 + odd) + word
        assert list(WordSearch(words).places(text)[word]) == [0, len(text) - len(word)]


def test_a_log_has_the_same_lines_for_all_words_at_once_and_for_each() -> None:
    chance = random.Random(7)
    lines = []
    for number in range(4000):
        word = WORDS[number // 5 % len(WORDS)] if number % 5 == 0 else ""
        before, behind = ("x" * chance.randrange(40), "y" * chance.randrange(40))
        lines.append(f"<{chance.randrange(9)}>[{number:12.6f}] {before}{word} {behind}")
    text = "\n".join(lines)
    log = KernelLog(text)
    for word in WORDS:
        expected = [line for line in lines if word in line and not line.startswith("<8>")]
        assert len(log.lines_with([word])) == len(expected) > 0
