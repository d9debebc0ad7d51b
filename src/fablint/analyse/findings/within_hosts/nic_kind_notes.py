"""Notes on kinds of NICs that differ by design: each NIC is compared with its kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.analyse.detect.view import ViewResult
from fablint.analyse.findings.detection_text import relative
from fablint.model import Placement
from fablint.model.facts.nic_kinds import NicKind
from fablint.model.names import plural
from fablint.text import units


def nic_kind_notes(views: Sequence[ViewResult], placement: Placement, tolerance: float) -> list[str]:
    """Return a note for each kind of NICs whose log-effect exceeds the tolerance in some view."""
    return [
        note
        for number in range(1, len(placement.nic_kinds))
        if (note := _note(number, views, placement, tolerance)) is not None
    ]


def _note(number: int, views: Sequence[ViewResult], placement: Placement, tolerance: float) -> str | None:
    """Return the note on one kind, with its largest effect on each quantity; None if it differs from no other."""
    largest: dict[str, float] = {}
    for view in views:
        effects = None if view.nic_offsets is None else view.nic_offsets.of_kinds()
        effect = 0.0 if effects is None or number >= effects.size else float(effects[number])
        if abs(effect) > tolerance:
            relative_effect = relative(effect, view.quantity)
            largest[view.quantity] = max(largest.get(view.quantity, 0.0), relative_effect, key=abs)
    if not largest:
        return None
    kind, usual = placement.nic_kinds[number], placement.nic_kinds[0]
    at = placement.nic_kind == number
    nics = plural(int(np.unique(placement.nic_or_host[at]).size), "NIC")
    hosts = plural(int(np.unique(placement.host[at]).size), "host")
    effects_text = ", ".join(f"{quantity} {units.percent(effect)}" for quantity, effect in sorted(largest.items()))
    return f"{nics} of {hosts} {_difference(kind, usual)}: {effects_text} (by design; compared with NICs of their kind)"


def _difference(kind: NicKind, usual: NicKind) -> str:
    """Return what distinguishes a kind of NICs from the most frequent one."""
    parts = []
    if kind.speed_mbps != usual.speed_mbps:
        parts.append(f"declare {_speed(kind)}, others {_speed(usual)}")
    if kind.is_far != usual.is_far:
        parts.append(f"are on {'another NUMA node than' if kind.is_far else 'the NUMA node of'} their ranks")
    return " and ".join(parts)


def _speed(kind: NicKind) -> str:
    return "no speed" if kind.speed_mbps is None else f"{kind.speed_mbps / 1000:g} Gb/s"
