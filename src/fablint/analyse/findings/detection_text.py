"""Text about what a view detected: the size of an effect, and the evidence for a component."""

from __future__ import annotations

import math

from fablint.analyse.detect.search import Detection
from fablint.analyse.detect.view import Quantity, ViewResult
from fablint.text import units
from fablint.text.names import plural


def relative(loss: float, quantity: Quantity) -> float:
    """Relative change of the quantity for a log-effect on time: 0.105 is 10 % less bandwidth or 11 % more latency."""
    return math.expm1(-loss) if quantity == "bandwidth" else math.expm1(loss)


def view_text(view: ViewResult) -> str:
    """`bandwidth 1 MiB`."""
    return f"{view.row} {units.size(view.size)}"


def detection_text(view: ViewResult, detection: Detection) -> str:
    """What one view saw of a culprit."""
    lower, middle, upper = (relative(loss, view.quantity) for loss in detection.loss)
    interval = f"{middle:+.1%} [{min(lower, upper):+.1%}, {max(lower, upper):+.1%}]"
    of = _clusters_text(detection)
    text = f"{view_text(view)}: {detection.slow} of {detection.pairs} pairs slow{of}, median {interval}"
    text += f", noise of a pair {math.expm1(view.fit.noise):.1%}"
    if detection.late is not None:
        return (
            f"{view_text(view)}: {detection.slow} of {detection.pairs} pairs that may cross it have late messages,"
            f" about {detection.late:.0%} of those that do, median {interval}"
        )
    return "; ".join(filter(None, (text, detection.when, detection.shared)))


def _clusters_text(detection: Detection) -> str:
    """`, 16 partners, 3 stretches of time`: what the pairs share counts once."""
    texts = [plural(detection.partners, "host pair" if detection.kind == "cable" else "partner")]
    if detection.stretches is not None:
        texts.append(f"{plural(detection.stretches, 'stretch')} of time")
    return "".join(f", {text}" for text in texts if detection.partners)
