"""Cables that run at less than their like, as findings."""

from __future__ import annotations

from collections.abc import Iterable

from fablint.model import Finding, State
from fablint.snapshot.cable_speeds import Slow, Trained, slow_cables


def judge_cables(trained: Iterable[Trained]) -> list[Finding]:
    """A fault where the like cables are at one of its ends, which are of the same make; else a suspect."""
    return [_finding(slow) for slow in slow_cables(trained)]


def _finding(slow: Slow) -> Finding:
    cable = slow.cable
    a, b = (cable.b.partition("/")[0], cable.a) if cable.to_host else (cable.a, cable.b)
    return Finding(
        state=State.FAULT if slow.sure else State.SUSPECT,
        component="cable",
        name=f"{a}={b}",
        quantity="bandwidth",
        effect=cable.bytes_per_second / slow.usual - 1,
        evidence=f"{cable.ends} runs at {cable.rate}, {slow.others}",
        next_step="reseat the cable, then replace it",
    )
