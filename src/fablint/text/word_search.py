"""Search of long texts for many words at once.

`str.find` reads a text once for each word; a fleet has 10,000 kernel logs and the checks search for more than a
hundred words. This module reads a text once: six letters of each word, its anchor, are looked up as three pairs in
tables, and the word is compared only where all pairs of a group of words occur. The positions are those that `str.find`
finds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fablint.model.arrays import Bits, Mask

_SHORT = 10_000  # letters of a text that is not worth the tables
_FEW = 4  # words that are not worth the tables
_PAIRS = 1 << 16  # of octets
_FREQUENT = " etaoinsrlcdupm:0123f"  # letters of logs, the most frequent first; others are rarer
_PAIR, _ANCHOR = 2, 6  # letters
_GROUPS = 64  # of words, one bit each


class WordSearch:
    """Positions of words in texts. Words are ASCII and have two letters or more."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(dict.fromkeys(words))

    def places(self, text: str) -> Mapping[str, Sequence[int]]:
        """Positions at which each word begins that occurs, in order; occurrences of a word may overlap."""
        if len(text) < _SHORT or len(self.words) < _FEW:
            return {word: places for word in self.words if (places := list(_places(text, word)))}
        positions: dict[str, list[int]] = defaultdict(list)
        for at in self._candidates(text):
            for offset, word in self._by_pair.get(text[at : at + _PAIR], ()):
                if at >= offset and text.startswith(word, at - offset):
                    positions[word].append(at - offset)
        return positions

    def _candidates(self, text: str) -> list[int]:
        """Positions of the pairs by which words are found, in order."""
        import numpy as np

        begins, tables = self._tables
        last = len(tables) - 1
        octets = text.encode("latin-1", "replace") + bytes(_ANCHOR)  # one octet a letter
        candidates = []
        for start in (0, 1):
            pairs = np.frombuffer(octets, dtype="<u2", offset=start, count=(len(octets) - start) // _PAIR)
            at = np.flatnonzero(begins.take(pairs[:-last], mode="clip"))  # no pair is cut off; the default is slower
            groups = tables[0][pairs[at]]
            for number, table in enumerate(tables[1:], 1):
                groups &= table[pairs[at + number]]
            at = at[groups != 0]
            candidates.append(_PAIR * at + start)
        places: list[int] = np.sort(np.concatenate(candidates)).tolist()
        return places

    @cached_property
    def _by_pair(self) -> Mapping[str, Sequence[tuple[int, str]]]:
        """Words by the first pair of their rarest letters, an anchor, with its position in the word."""
        by_pair: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for word in self.words:
            starts = reversed(range(max(len(word) - _ANCHOR, 0) + 1))
            offset = min(starts, key=lambda at: _frequency(word[at : at + _ANCHOR]))
            by_pair[word[offset : offset + _PAIR]].append((offset, word))
        return by_pair

    @cached_property
    def _tables(self) -> tuple[Mask, Sequence[Bits]]:
        """First pairs of words, and for each pair of the anchor the groups of the words that have it there.

        A group has the words of every 64th first pair. A word without a pair has all pairs there.
        """
        import numpy as np

        tables = [np.zeros(_PAIRS, dtype=np.uint64) for _ in range(_ANCHOR // _PAIR)]
        for index, (first, words) in enumerate(self._by_pair.items()):
            group = np.uint64(1 << (index % _GROUPS))
            tables[0][_code(first)] |= group
            for offset, word in words:
                for number, table in enumerate(tables[1:], 1):
                    pair = word[offset + number * _PAIR :][:_PAIR]
                    table[_code(pair) if len(pair) == _PAIR else slice(None)] |= group
        return tables[0] != 0, tables


def _frequency(letters: str) -> tuple[int, int]:
    """Frequency of a pair of letters in logs, and of all letters; for comparison only."""
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
