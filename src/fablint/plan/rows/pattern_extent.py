"""How much a pattern measures in one repeat."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Extent:
    """Rounds and groups of one repeat of a pattern.

    A group is an unordered pair, a star or the world; in serial order the groups of a round take turns. `fan` is how
    many ranks share the busiest rank of a group.
    """

    rounds: int
    groups: int
    fan: int = 1
