"""Search of long texts for many words at once.

`str.find` reads a text once for each word; a fleet has 10,000 kernel logs and the checks search for more than thirty
words. This module reads a text once: four letters of each word are looked up as two pairs in tables, and the word is
compared only where both pairs occur. The positions are those that `str.find` finds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fablint.model.arrays import Mask

_SHORT = 10_000  # letters of a text that is not worth the tables
_FEW = 4  # words that are not worth the tables
_PAIRS = 1 << 16  # of octets
_FREQUENT = " etaoinsrlcdupm:0123f"  # letters of logs, the most frequent first; others are rarer
_PAIR, _ANCHOR = 2, 4  # letters


class WordSearch:
    """Positions of words in texts. Words are ASCII and have two letters or more."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(dict.fromkeys(words))

    def places(self, text: str) -> Mapping[str, Sequence[int]]:
        """Positions at which each word begins, in order; occurrences of a word may overlap."""
        if len(text) < _SHORT or len(self.words) < _FEW:
            return {word: list(_places(text, word)) for word in self.words}
        positions: dict[str, list[int]] = {word: [] for word in self.words}
        for at in self._candidates(text):
            for offset, word in self._by_pair.get(text[at : at + _PAIR], ()):
                if at >= offset and text.startswith(word, at - offset):
                    positions[word].append(at - offset)
        return positions

    def _candidates(self, text: str) -> list[int]:
        """Positions of the pairs by which words are found, in order."""
        import numpy as np

        first, second, alone = self._tables
        octets = text.encode("latin-1", "replace") + bytes(_ANCHOR)  # one octet a letter
        candidates = []
        for start in (0, 1):
            pairs = np.frombuffer(octets, dtype="<u2", offset=start, count=(len(octets) - start) // _PAIR)
            at = np.flatnonzero(first.take(pairs[:-1], mode="clip"))  # no pair is cut off; the default is slower
            at = at[second[pairs[at + 1]] | alone[pairs[at]]]
            candidates.append(_PAIR * at + start)
        places: list[int] = np.sort(np.concatenate(candidates)).tolist()
        return places

    @cached_property
    def _by_pair(self) -> Mapping[str, Sequence[tuple[int, str]]]:
        """Words by the first pair of their rarest four letters, with its position in the word."""
        by_pair: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for word in self.words:
            starts = reversed(range(max(len(word) - _ANCHOR, 0) + 1))
            offset = min(starts, key=lambda at: _frequency(word[at : at + _ANCHOR]))
            by_pair[word[offset : offset + _PAIR]].append((offset, word))
        return by_pair

    @cached_property
    def _tables(self) -> tuple[Mask, ...]:
        """Tables of pairs of octets: first pair of a word's four letters, second pair, pair that needs no second."""
        import numpy as np

        first, second, alone = (np.zeros(_PAIRS, dtype=bool) for _ in range(3))
        for pair, words in self._by_pair.items():
            first[_code(pair)] = True
            for offset, word in words:
                behind = word[offset + _PAIR : offset + _ANCHOR]
                if len(behind) == _PAIR:
                    second[_code(behind)] = True
                else:
                    alone[_code(pair)] = True
        return first, second, alone


def _frequency(letters: str) -> tuple[int, int]:
    """Frequency of a pair of letters in logs, and of all four letters; for comparison only."""
    each = [len(_FREQUENT) - _FREQUENT.find(letter) if letter in _FREQUENT else 0 for letter in letters]
    return sum(each[:_PAIR]), sum(each)


def _code(pair: str) -> int:
    """Both octets as a number, the first letter lowest."""
    return int.from_bytes(pair.encode("ascii"), "little")


def _places(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)
