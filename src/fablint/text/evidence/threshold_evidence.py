"""Evidence about figures outside the thresholds of a site."""

from __future__ import annotations

from typing import NotRequired, TypedDict, Unpack

from fablint.model.names import plural
from fablint.model.registry import Quantity
from fablint.text.sentence_kind import Sentence

_UNITS = {"bandwidth": (1e6, "MB/s"), "latency": (1e-6, "us")}


class ThresholdFields(TypedDict):
    """Fields that all kinds of this family have: the pairs and limits of a threshold."""

    scope: str
    quantity: Quantity
    lowest: NotRequired[float | None]
    highest: NotRequired[float | None]
    source: str


@Sentence
def host_misses(*, median: float, missed: int, partners: int, **threshold: Unpack[ThresholdFields]) -> str:
    outside = f"outside the threshold with {missed} of {plural(partners, 'partner')}"
    return f"{outside}, median {_figure(threshold, median)}; {_limits(threshold)}"


@Sentence
def scope_misses(*, median: float, outside: int, pairs: int, **threshold: Unpack[ThresholdFields]) -> str:
    missed = f"{outside} of {pairs} {threshold['scope']} pairs are outside the threshold"
    return f"{missed}, median {_figure(threshold, median)}; {_limits(threshold)}"


@Sentence
def pair_misses(*, value: float, **threshold: Unpack[ThresholdFields]) -> str:
    return f"{_figure(threshold, value)}; {_limits(threshold)}"


def _limits(threshold: ThresholdFields) -> str:
    limits = [("at least", threshold.get("lowest")), ("at most", threshold.get("highest"))]
    words = " and ".join(f"{word} {_figure(threshold, limit)}" for word, limit in limits if limit is not None)
    return f"{threshold['scope']}: {words} ({threshold['source']})"


def _figure(threshold: ThresholdFields, value: float) -> str:
    scale, unit = _UNITS[threshold["quantity"]]
    shown = value / scale
    return f"{shown:.0f} {unit}" if shown >= 1000 else f"{shown:.3g} {unit}"
