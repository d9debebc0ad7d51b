"""Text about what a view detected: the size of an effect, and the evidence for a component."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from fablint.analyse.detect.search import Detection
from fablint.analyse.detect.view import Quantity, ViewResult
from fablint.model import EvidenceRecord
from fablint.model.verdict import seen
from fablint.text import units


def relative(loss: float, quantity: Quantity) -> float:
    """Relative change of the quantity for a log-effect on time: 0.105 is 10 % less bandwidth or 11 % more latency."""
    return math.expm1(-loss) if quantity == "bandwidth" else math.expm1(loss)


def view_text(view: ViewResult) -> str:
    """`bandwidth 1 MiB`."""
    return f"{view.row} {units.size(view.size)}"


def seen_in(view: ViewResult, kind: str, **values: Any) -> EvidenceRecord:
    """A piece of evidence of one view."""
    return seen(kind, row=view.row, size=view.size, **values)


def detection_evidence(view: ViewResult, detection: Detection) -> list[EvidenceRecord]:
    """What one view shows of a faulty component."""
    lower, middle, upper = (relative(loss, view.quantity) for loss in detection.loss)
    pairs = {"slow": detection.slow, "pairs": detection.pairs, "effect": middle}
    pairs |= {"low": min(lower, upper), "high": max(lower, upper)}
    if detection.share is not None:
        share = detection.share.slow / detection.share.measured
        counts = {**asdict(detection.share), "share": share, "pairs": detection.partners}
        effects = {name: pairs[name] for name in ("effect", "low", "high")}
        return [seen_in(view, "slow_share", **counts, **effects)]
    if detection.late is not None:
        return [seen_in(view, "late_pairs", late=detection.late, **pairs)]
    clusters = {"partners": detection.partners, "stretches": detection.stretches}
    partner = "host pair" if detection.kind == "cable" else "partner"
    noise = math.expm1(view.fit.noise)
    return [
        seen_in(view, "slow_pairs", partner=partner, noise=noise, **clusters, **pairs),
        *detection.circumstances,
    ]
