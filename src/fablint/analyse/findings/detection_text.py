"""Text about what a view detected: the size of an effect, and the evidence for a component."""

from __future__ import annotations

import math
from typing import TypeVar

from fablint.analyse.explain.search import Detection, Loss
from fablint.analyse.explain.view import ViewResult
from fablint.model import EvidenceRecord
from fablint.model.registry import Quantity
from fablint.model.verdict import Statement
from fablint.text import evidence as seen

S = TypeVar("S", bound=Statement)


def relative(loss: float, quantity: Quantity) -> float:
    """Relative change of the quantity for a log-effect on time: 0.105 is 10 % less bandwidth or 11 % more latency."""
    return math.expm1(-loss) if quantity == "bandwidth" else math.expm1(loss)


def relative_interval(loss: Loss, quantity: Quantity) -> tuple[float, tuple[float, float]]:
    """Return the relative change for a loss, and its interval, the smaller end first."""
    lower, middle, upper = (relative(value, quantity) for value in loss)
    return middle, (min(lower, upper), max(lower, upper))


def seen_in(view: ViewResult, statement: S) -> S:
    """Return evidence, or a note, as that of one view."""
    return statement.measured_in(view.row, view.size)


def detection_evidence(view: ViewResult, detection: Detection) -> list[EvidenceRecord]:
    """Return what one view shows of a faulty component."""
    losses = detection.losses
    middle, (low, high) = relative_interval(losses.both if losses else detection.loss, view.quantity)
    effect: seen.EffectFields = {"effect": middle, "low": low, "high": high}
    slow, pairs, count = detection.slow, detection.pairs, detection.share
    if count is not None:
        record = seen.slow_share(
            slow=count.slow,
            measured=count.measured,
            others_slow=count.others_slow,
            others=count.others,
            share=count.slow / count.measured,
            pairs=detection.partners,
            **effect,
        )
        return [seen_in(view, record), *detection.circumstances]
    if detection.late is not None:
        return [seen_in(view, seen.late_pairs(late=detection.late, slow=slow, pairs=pairs, **effect))]
    record = seen.slow_pairs(
        partner="host pair" if detection.kind == "cable" else "partner",
        noise=math.expm1(view.fit.noise),
        partners=detection.partners,
        stretches=detection.stretches,
        slow=slow,
        pairs=pairs,
        **effect,
    )
    if losses is None:
        return [seen_in(view, record), *detection.circumstances]
    sending, receiving = (relative_interval(loss, view.quantity) for loss in (losses.sending, losses.receiving))
    unequal = seen.unequal_directions(sending=(sending[0], *sending[1]), receiving=(receiving[0], *receiving[1]))
    return [seen_in(view, record), seen_in(view, unequal), *detection.circumstances]
