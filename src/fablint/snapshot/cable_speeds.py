"""Detection of cables with a lower width or speed than comparable cables."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

LEAST_OTHERS = 2
_LEAST_DESIGN, _DESIGN = 3, 0.2  # number and share of cables at one rate that are a design, not faults
_WHOLE = 0.8  # of a class of hosts
_STEM = re.compile(r"[\d/]")


@dataclass(frozen=True)
class TrainedCable:
    """A cable with its trained rate. `a` and `b` are switches or `HOST/NIC`."""

    a: str
    b: str
    rate: str  # `4xEDR`
    bytes_per_second: float
    a_port: str = ""
    b_port: str = ""
    to_host: bool = False

    @property
    def kind(self) -> str:
        """Class of the host at the other end: the beginning of its name; '' for a switch."""
        return f"{_STEM.split(self.b, maxsplit=1)[0]}*" if self.to_host else ""

    @property
    def ends(self) -> str:
        """`leaf2 port 21 to spine1 port 3`."""
        return f"{_end(self.a, self.a_port)} to {_end(self.b, self.b_port)}"


class SlowCable(NamedTuple):
    """A cable below the rate of comparable cables."""

    cable: TrainedCable
    usual: float  # bytes per second of comparable cables
    others: str  # `5 other cables of leaf2 at 4xEDR`
    is_certain: bool  # compared at one of its ends, not only with the whole fabric


def slow_cables(trained: Iterable[TrainedCable]) -> list[SlowCable]:
    """Find cables below the rate of most comparable cables: of the same kind at either end, else in the fabric.

    The cables at one end are of the same generation, so that the result is certain; the whole fabric may have older
    components. The rate of a class of hosts is a design, such as half the width on splitter cables, and not slow.
    """
    cables = list(trained)
    like = _Like.of(cables)
    result = []
    for cable in cables:
        if cable.rate in like.designs[cable.kind] or cable.rate in like.designs_at[cable.a, cable.kind]:
            continue
        references = [(f"cables of {end}", like.usual_at(end, cable)) for end in (cable.a, cable.b)]
        sure = any(usual for _, (usual, _) in references)
        if not sure:
            references = [("cables of the fabric", _usual(cable, like.fabric[cable.to_host]))]
        less = [
            (words, *usual) for words, usual in references if cable.bytes_per_second < like.speed.get(usual[0], 0.0)
        ]
        if less:
            words, usual, count = less[0]
            result.append(SlowCable(cable, like.speed[usual], f"{count} other {words} at {usual}", sure))
    return result


@dataclass(frozen=True)
class _Like:
    """Number of cables by rate. A kind is a class of hosts; '' for cables between switches."""

    speed: Mapping[str, float]
    fabric: Mapping[bool, Counter[str]]
    at_end: Mapping[tuple[str, bool], Counter[str]]
    of_kind: Mapping[tuple[str, str], Counter[str]]  # by end and kind
    designs: Mapping[str, set[str]]  # rates of a kind
    designs_at: Mapping[tuple[str, str], set[str]]  # rates of a kind at a switch

    @classmethod
    def of(cls, cables: Sequence[TrainedCable]) -> _Like:
        fabric: dict[bool, Counter[str]] = defaultdict(Counter)
        at_end: dict[tuple[str, bool], Counter[str]] = defaultdict(Counter)
        of_kind: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        kinds: dict[str, Counter[str]] = defaultdict(Counter)
        for cable in cables:
            fabric[cable.to_host][cable.rate] += 1
            kinds[cable.kind][cable.rate] += 1
            for end in {cable.a, cable.b}:
                at_end[end, cable.to_host][cable.rate] += 1
                of_kind[end, cable.kind][cable.rate] += 1
        widest = max(map(_width, fabric[True]), default=0)
        designs = {kind: _designs(rates, widest, whole=len(kinds) > 1) for kind, rates in kinds.items()}
        designs_at = {key: _designs(rates, widest) for key, rates in of_kind.items()}
        designs[""] = set()  # all cables between switches should have the same rate
        designs_at |= {key: set() for key in designs_at if not key[1]}
        speed = {cable.rate: cable.bytes_per_second for cable in cables}
        return cls(speed, fabric, at_end, of_kind, designs, designs_at)

    def usual_at(self, end: str, cable: TrainedCable) -> tuple[str, int]:
        """Return rate and number of the other cables at an end, of the same kind if there are enough."""
        same = self.of_kind[end, cable.kind]
        return _usual(cable, same if same.total() > LEAST_OTHERS else self.at_end[end, cable.to_host])


def _designs(rates: Counter[str], widest: int, *, whole: bool = False) -> set[str]:
    """Return rates that are a design: shared by a fifth of the hosts, or with `whole` by nearly all of a class.

    Less than half of the width is never a design, since a faulty cable may have one of four lanes.
    """
    total = rates.total()
    able = {rate: count for rate, count in rates.items() if 2 * _width(rate) >= widest}
    shared = {rate for rate, count in able.items() if count >= _LEAST_DESIGN and count >= _DESIGN * total}
    return shared | {
        rate for rate, count in able.items() if whole and count >= LEAST_OTHERS and count >= _WHOLE * total
    }


def _usual(cable: TrainedCable, rates: Counter[str]) -> tuple[str, int]:
    """Return the rate of most other cables and their number; ('', 0) without a clear majority.

    All wider cables count together: one lane is too few compared with both two and four.
    """
    others = rates - Counter([cable.rate])
    if not others:
        return "", 0
    wider = Counter({rate: count for rate, count in others.items() if _width(rate) > _width(cable.rate)})
    rate, count = (wider if 2 * wider.total() > others.total() else others).most_common(1)[0]
    enough = wider.total() if rate in wider else count
    return (rate, count) if enough >= LEAST_OTHERS and 2 * enough > others.total() else ("", 0)


def _width(rate: str) -> int:
    """Return the lanes of `4xEDR`; 0 if unknown."""
    lanes = rate.partition("x")[0]
    return int(lanes) if lanes.isdecimal() and len(lanes) < 3 else 0


def _end(name: str, port: str) -> str:
    return f"{name} port {port}" if port else name
