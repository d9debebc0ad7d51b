"""Latency of links and cables that the geometry of the network explains: a longer cable, or more switches.

A constant that messages of any size take longer is not a fault of a path whose streams are as fast as others. Where no
streams were measured, it may be one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from fablint.analyse.explain.search import Detection
from fablint.analyse.explain.view import ViewResult
from fablint.model import ComponentRef, Finding, Note
from fablint.text import notes as noted


@dataclass(frozen=True)
class Geometry:
    """What the geometry of a network explains."""

    components: frozenset[ComponentRef]  # that are late by the medians of their pairs, and whose streams are not slow
    most_s: float  # s by which messages across a cable may be later; 0 where no streams were measured
    far_s: float  # s of a message

    @classmethod
    def of(cls, views: Sequence[ViewResult]) -> Self:
        """Return that of a run."""
        late, slow = (
            frozenset(case.component() for view in views if view.quantity == quantity for case in _cases(view))
            for quantity in ("latency", "bandwidth")
        )
        of_latency = [view for view in views if view.quantity == "latency"]
        times = [list(view.fit.class_time.values()) for view in of_latency]
        far_s = [float(np.median(of_row)) for of_row in times if of_row]  # of a row of which little was measured: none
        has_streams = any(view.quantity == "bandwidth" for view in views)
        most_s = min((view.geometry_s for view in of_latency), default=0.0) if has_streams else 0.0
        return cls(late - slow, most_s, min(far_s, default=np.inf))

    def note(self, claim: Finding) -> Note | None:
        """Return the note on what geometry explains; None if it does not explain the claim."""
        if claim.quantity != "latency" or claim.component not in ("link", "cable"):
            return None
        extra_s = (claim.effect or 0.0) * self.far_s
        is_explained = claim.components[0] in self.components and extra_s <= self.most_s
        return noted.later_by_geometry(claim.name, extra_s * 1e9) if is_explained else None


def _cases(view: ViewResult) -> list[Detection]:
    """Return what is slow in a view, or may be, by the medians of its pairs."""
    return [case for case in (*view.detections, *view.candidates) if case.late is None]
