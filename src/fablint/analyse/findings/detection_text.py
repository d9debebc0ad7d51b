"""Text about what a view detected: the size of an effect, and the evidence for a component."""

from __future__ import annotations

import math

from fablint.analyse.detect.search import Conviction
from fablint.analyse.detect.view import Judged, Quantity
from fablint.analyse.phrasing import size_text
from fablint.text.names import plural


def relative(loss: float, quantity: Quantity) -> float:
    """Relative change of the quantity for a log-effect on time: 0.105 is 10 % less bandwidth or 11 % more latency."""
    return math.expm1(-loss) if quantity == "bandwidth" else math.expm1(loss)


def view_text(view: Judged) -> str:
    """`bandwidth 1 MiB`."""
    return f"{view.row} {size_text(view.size)}"


def conviction_text(view: Judged, conviction: Conviction) -> str:
    """What one view saw of a culprit."""
    lower, middle, upper = (relative(loss, view.quantity) for loss in conviction.loss)
    interval = f"{middle:+.1%} [{min(lower, upper):+.1%}, {max(lower, upper):+.1%}]"
    of = _clusters_text(conviction)
    text = f"{view_text(view)}: {conviction.slow} of {conviction.pairs} pairs slow{of}, median {interval}"
    text += f", noise of a pair {math.expm1(view.fit.noise):.1%}"
    if conviction.late is not None:
        return (
            f"{view_text(view)}: {conviction.slow} of {conviction.pairs} pairs that may cross it have late messages,"
            f" about {conviction.late:.0%} of those that do, median {interval}"
        )
    return "; ".join(filter(None, (text, conviction.when, conviction.shared)))


def _clusters_text(conviction: Conviction) -> str:
    """`, 16 partners, 3 stretches of time`: what the pairs share counts once."""
    texts = [plural(conviction.partners, "host pair" if conviction.kind == "cable" else "partner")]
    if conviction.stretches is not None:
        texts.append(f"{plural(conviction.stretches, 'stretch')} of time")
    return "".join(f", {text}" for text in texts if conviction.partners)
