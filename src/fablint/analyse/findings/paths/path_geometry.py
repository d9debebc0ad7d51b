"""Latency of links and cables that the geometry of the network explains: a longer cable, or more switches.

A constant that messages of any size take longer is not a fault of a path whose streams are as fast as others. Where no
streams were measured, it may be one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Self

import numpy as np

from fablint.analyse.explain.search import Detection
from fablint.analyse.explain.view import ViewResult
from fablint.model import ComponentRef, Finding, Note
from fablint.text import notes as noted


@dataclass(frozen=True)
class Geometry:
    """What the geometry of a network explains."""

    extra_s: Mapping[ComponentRef, float]  # s, of what is late by the medians of its pairs without slow streams
    most_s: float  # s by which messages across a cable may be later; 0 where no streams were measured

    @classmethod
    def of(cls, views: Sequence[ViewResult]) -> Self:
        """Return that of a run."""
        of_latency, streams = ([view for view in views if view.quantity == name] for name in ("latency", "bandwidth"))
        slow = {case.component() for view in streams for case in _cases(view)}
        late = [(case.component(), view.added_s(case)) for view in of_latency for case in _cases(view)]
        extra_s = {component: added for component, added in sorted(late, key=itemgetter(1)) if component not in slow}
        most_s = min((view.geometry_s for view in of_latency), default=0.0) if streams else 0.0
        return cls(extra_s, most_s)

    def note(self, claim: Finding) -> Note | None:
        """Return the note on what geometry explains; None if it does not explain the claim."""
        if claim.quantity != "latency" or claim.component not in ("link", "cable"):
            return None
        extra_s = self.extra_s.get(claim.components[0], np.inf)
        return noted.later_by_geometry(claim.name, extra_s * 1e9) if extra_s <= self.most_s else None


def _cases(view: ViewResult) -> list[Detection]:
    """Return what is slow in a view, or may be, by the medians of its pairs."""
    return [case for case in (*view.detections, *view.candidates) if case.late is None]
