"""How many rounds and groups a pattern has: the planning side of engine/patterns/.

The engine decides which ranks communicate. Here only the counts matter, and rounds of a file or option are checked
before a launch.
"""

from __future__ import annotations

import re

from fablint.errors import UsageError
from fablint.model.row import RowSpec
from fablint.plan.rows.pattern_extent import Extent
from fablint.plan.rows.refusals import refuse_ranks, victim_pairs

Rounds = list[list[tuple[int, int]]]


def extent(row: RowSpec, ranks: int, rounds: Rounds | None = None) -> Extent:
    """Rounds and groups of a row's pattern for `ranks` ranks; `rounds` is what `parse_rounds` made of its rounds.

    Of fan-in and fan-out only the engine knows the groups, since they follow the hosts: they count as one star.

    Raises
    ------
    UsageError
        Too few ranks, or too many.
    """
    refuse_ranks(row, ranks)
    half = ranks // 2
    match row.pattern:
        case "pair":
            return Extent(1, 1)
        case "pairs":
            return Extent(1, half)
        case "all-pairs":  # 1-factorisation of the complete graph: with n odd one rank is idle in every round
            return Extent(ranks - 1 if ranks % 2 == 0 else ranks, ranks * (ranks - 1) // 2)
        case "bisection":
            return Extent(ranks - half, half * (ranks - half))
        case "random":
            return Extent(row.matchings, row.matchings * half)
        case "fan-in" | "fan-out" | "world":
            return Extent(1, 1, max(1, ranks - 1))
        case "clients-servers":
            clients = ranks - row.servers
            return Extent(row.servers, row.servers * min(clients, row.servers), -(-clients // row.servers))
        case "victim-aggressor":  # alone, then beside the aggressors
            return Extent(2, 2 * victim_pairs(row, ranks))
        case _:
            rounds = rounds or []
            return Extent(len(rounds), sum(len(pairs) for pairs in rounds))


def parse_rounds(text: str, ranks: int, source: str) -> Rounds:
    """The rounds of a rounds file: one round per line, pairs as `0-1 2-3`, `#` comments.

    Raises
    ------
    UsageError
        Naming the line: not a pair, a rank that does not exist, a rank twice in a round, no round at all.
    """
    rounds = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if words:
            rounds.append(_parse_round(words, ranks, f"{source}:{number}"))
    if not rounds:
        raise UsageError(f"{source}: no round in the file", "write one round per line, such as 0-1 2-3")
    return rounds


def parse_inline_rounds(text: str, ranks: int) -> Rounds:
    """The rounds of `--rounds`: `0-1,2-3;4-5`, a semicolon between rounds.

    Raises
    ------
    UsageError
        As `parse_rounds`, naming the round.
    """
    rounds = [part.split(",") for part in text.split(";")]
    return [_parse_round(words, ranks, f"--rounds: round {number}") for number, words in enumerate(rounds)]


def _parse_round(words: list[str], ranks: int, where: str) -> list[tuple[int, int]]:
    pairs = []
    seen: set[int] = set()
    for word in words:
        match = re.fullmatch(r"([0-9]+)-([0-9]+)", word)
        if not match:
            raise UsageError(f"{where}: '{word}' is not a pair", "write it as 0-1")
        for rank in (int(match[1]), int(match[2])):
            if rank >= ranks:
                raise UsageError(f"{where}: rank {rank} does not exist", f"this run has ranks 0-{ranks - 1}")
            if rank in seen:
                raise UsageError(f"{where}: rank {rank} appears twice", "a rank has one partner per round")
            seen.add(rank)
        pairs.append((int(match[1]), int(match[2])))
    return pairs
