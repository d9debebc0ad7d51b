"""Cables that run at less than their like: narrower, or at a lower speed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

LEAST_OTHERS = 2


@dataclass(frozen=True)
class Trained:
    """What a cable runs at. `a` and `b` are switches or `HOST/NIC`s."""

    a: str
    b: str
    rate: str  # as people write it: `4xEDR`
    bytes_per_second: float
    a_port: str = ""
    b_port: str = ""
    to_host: bool = False

    @property
    def ends(self) -> str:
        """`leaf2 port 21 to spine1 port 3`."""
        return f"{_end(self.a, self.a_port)} to {_end(self.b, self.b_port)}"


class Slow(NamedTuple):
    """A cable below its like."""

    cable: Trained
    usual: float  # bytes per second of its like
    others: str  # `5 other cables of leaf2 at 4xEDR`
    sure: bool  # like in kind and place, not only in kind


def slow_cables(trained: Iterable[Trained]) -> list[Slow]:
    """Cables below what most of their like run at: the other cables of the kind at either end, else in the fabric.

    At an end the others are of the same make, so that it is sure; in the whole fabric there may be older parts.
    """
    every = list(trained)
    speed = {cable.rate: cable.bytes_per_second for cable in every}
    at_end: dict[tuple[str, bool], Counter[str]] = defaultdict(Counter)
    fabric: dict[bool, Counter[str]] = defaultdict(Counter)
    for cable in every:
        fabric[cable.to_host][cable.rate] += 1
        for end in {cable.a, cable.b}:
            at_end[end, cable.to_host][cable.rate] += 1
    found = []
    for cable in every:
        around = [(f"cables of {end}", _usual(cable, at_end[end, cable.to_host])) for end in (cable.a, cable.b)]
        sure = any(usual for _, (usual, _) in around)
        if not sure:
            around = [("cables of the fabric", _usual(cable, fabric[cable.to_host]))]
        less = [(words, *like) for words, like in around if cable.bytes_per_second < speed.get(like[0], 0.0)]
        if less:
            words, usual, count = less[0]
            found.append(Slow(cable, speed[usual], f"{count} other {words} at {usual}", sure))
    return found


def _usual(cable: Trained, rates: Counter[str]) -> tuple[str, int]:
    """What most of the others run at, and how many they are; an empty name without a clear majority."""
    others = rates - Counter([cable.rate])
    if not others:
        return "", 0
    rate, count = others.most_common(1)[0]
    return (rate, count) if count >= LEAST_OTHERS and 2 * count > others.total() else ("", 0)


def _end(name: str, port: str) -> str:
    return f"{name} port {port}" if port else name
