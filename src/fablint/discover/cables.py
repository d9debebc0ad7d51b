"""Cables that run at less than their like: narrower, or at a lower speed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from fablint.discover.facts import Trained
from fablint.model import Finding, State

LEAST_OTHERS = 2


def judge_cables(trained: Iterable[Trained]) -> list[Finding]:
    """Cables below what most of their like run at: the other cables of the kind at either end, else in the fabric.

    At an end the others are of the same make, so that it is a fault; in the whole fabric there may be older parts.
    """
    every = list(trained)
    speed = {cable.rate: cable.bytes_per_second for cable in every}
    at_end: dict[tuple[str, bool], Counter[str]] = defaultdict(Counter)
    fabric: dict[bool, Counter[str]] = defaultdict(Counter)
    for cable in every:
        fabric[cable.to_host][cable.rate] += 1
        for end in {cable.a, cable.b}:
            at_end[end, cable.to_host][cable.rate] += 1
    findings = []
    for cable in every:
        around = [(f"cables of {end}", _usual(cable, at_end[end, cable.to_host])) for end in (cable.a, cable.b)]
        state = State.FAULT
        if not any(usual for _, (usual, _) in around):
            around = [("cables of the fabric", _usual(cable, fabric[cable.to_host]))]
            state = State.SUSPECT
        less = [(words, *like) for words, like in around if cable.bytes_per_second < speed.get(like[0], 0.0)]
        if less:
            words, usual, count = less[0]
            findings.append(_finding(cable, state, speed[usual], f"{count} other {words} at {usual}"))
    return findings


def _usual(cable: Trained, rates: Counter[str]) -> tuple[str, int]:
    """What most of the others run at, and how many they are; an empty name without a clear majority."""
    others = rates - Counter([cable.rate])
    if not others:
        return "", 0
    rate, count = others.most_common(1)[0]
    return (rate, count) if count >= LEAST_OTHERS and 2 * count > others.total() else ("", 0)


def _finding(cable: Trained, state: State, usual: float, others: str) -> Finding:
    ends = f"{_end(cable.a, cable.a_port)} to {_end(cable.b, cable.b_port)}"
    a, b = (cable.b.partition("/")[0], cable.a) if cable.to_host else (cable.a, cable.b)
    return Finding(
        state=state,
        component="cable",
        name=f"{a}={b}",
        quantity="bandwidth",
        effect=cable.bytes_per_second / usual - 1,
        evidence=f"{ends} runs at {cable.rate}, {others}",
        next_step="reseat the cable, then replace it",
    )


def _end(name: str, port: str) -> str:
    return f"{name} port {port}" if port else name
