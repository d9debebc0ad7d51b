"""Findings about cables that run below the rate of comparable cables."""

from __future__ import annotations

from collections.abc import Iterable

from fablint.model import ComponentRef, Finding, State
from fablint.model.host_name import NicRef
from fablint.snapshot.cable_speeds import SlowCable, TrainedCable, slow_cables
from fablint.text import actions as advise, evidence as seen


def judge_cables(trained: Iterable[TrainedCable]) -> list[Finding]:
    """Return a finding for each slow cable: a fault if the comparable cables share an end with it, else a suspect."""
    return [_finding(slow) for slow in slow_cables(trained)]


def _finding(slow: SlowCable) -> Finding:
    cable = slow.cable
    a, b = (NicRef(cable.b).host, cable.a) if cable.to_host else (cable.a, cable.b)
    return Finding(
        state=State.FAULT if slow.is_certain else State.SUSPECT,
        components=(ComponentRef.of("cable", a, b),),
        quantity="bandwidth",
        effect=cable.bytes_per_second / slow.usual - 1,
        evidence=(seen.cable_speed(cable.ends, str(cable.rate), slow.others),),
        next_step=advise.replace_cable(),
    )
