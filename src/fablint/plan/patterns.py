"""How many rounds and pairs a pattern has: the planning side of engine/pattern.hpp.

Who meets whom is the engine's business; here only the counts matter, and a rounds file is checked before it is
shipped to the nodes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fablint.errors import UsageError


@dataclass(frozen=True)
class Extent:
    """Rounds and unordered pairs of one repeat of a pattern."""

    rounds: int
    pairs: int


def extent(
    pattern: str, ranks: int, *, matchings: int = 8, rounds: list[list[tuple[int, int]]] | None = None
) -> Extent:
    """Rounds and pairs of `pattern` for `ranks` ranks; `rounds` is what `parse_rounds` made of the rounds file.

    Raises:
        UsageError: fewer than two ranks.
    """
    if ranks < 2:
        raise UsageError(f"pattern {pattern} needs at least 2 ranks, this run has {ranks}", "start more ranks")
    half = ranks // 2
    match pattern:
        case "pair":
            return Extent(1, 1)
        case "pairs":
            return Extent(1, half)
        case "all-pairs":  # 1-factorisation of the complete graph: with n odd one rank is idle in every round
            return Extent(ranks - 1 if ranks % 2 == 0 else ranks, ranks * (ranks - 1) // 2)
        case "bisection":
            return Extent(ranks - half, half * (ranks - half))
        case "random":
            return Extent(matchings, matchings * half)
        case _:
            rounds = rounds or []
            return Extent(len(rounds), sum(len(pairs) for pairs in rounds))


def parse_rounds(text: str, ranks: int, source: str) -> list[list[tuple[int, int]]]:
    """The rounds of a rounds file: one round per line, pairs as `0-1 2-3`, `#` comments.

    Raises:
        UsageError: naming the line: not a pair, a rank that does not exist, a rank twice in a round, no round at all.
    """
    rounds = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if words:
            rounds.append(_parse_round(words, ranks, f"{source}:{number}"))
    if not rounds:
        raise UsageError(f"{source}: no round in the file", "write one round per line, such as 0-1 2-3")
    return rounds


def _parse_round(words: list[str], ranks: int, where: str) -> list[tuple[int, int]]:
    pairs = []
    seen: set[int] = set()
    for word in words:
        match = re.fullmatch(r"([0-9]+)-([0-9]+)", word)
        if not match:
            raise UsageError(f"{where}: '{word}' is no pair", "write it as 0-1")
        for rank in (int(match[1]), int(match[2])):
            if rank >= ranks:
                raise UsageError(f"{where}: rank {rank} does not exist", f"this run has ranks 0-{ranks - 1}")
            if rank in seen:
                raise UsageError(f"{where}: rank {rank} appears twice", "a rank has one partner per round")
            seen.add(rank)
        pairs.append((int(match[1]), int(match[2])))
    return pairs
