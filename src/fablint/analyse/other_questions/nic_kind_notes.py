"""Notes on kinds of NICs that differ by design: each NIC is compared with its kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.detection_text import relative
from fablint.model import Note, Placement
from fablint.text import notes as noted


def nic_kind_notes(views: Sequence[ViewResult], placement: Placement, tolerance: float) -> list[Note]:
    """Return a note for each kind of NICs whose log-effect exceeds the tolerance in some view."""
    return [
        note
        for number in range(1, len(placement.nic_kinds))
        if (note := _note(number, views, placement, tolerance)) is not None
    ]


def _note(number: int, views: Sequence[ViewResult], placement: Placement, tolerance: float) -> Note | None:
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
    quantities, effects_of = zip(*sorted(largest.items()), strict=True)
    return noted.nics_of_a_kind(
        nics=int(np.unique(placement.nic_or_host[at]).size),
        hosts=int(np.unique(placement.host[at]).size),
        quantities=quantities,
        effects=effects_of,
        far=kind.is_far,
        others_far=usual.is_far,
        mbps=kind.speed_mbps,
        others_mbps=usual.speed_mbps,
    )
