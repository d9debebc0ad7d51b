"""Numbers on which a diagnosis depends, and by which a plan predicts what the diagnosis will detect."""

from __future__ import annotations

import math

TOLERANCE = 0.05  # healthy variation: a component may be this much slower than its peers
SMALLEST_FAULT = 0.02  # beyond the tolerance: what the evidence is tuned to distinguish from noise
ALPHA = 0.01  # chance of one false FAULT in a whole healthy run
FEWEST_LINK_PAIRS = 6  # measured pairs that cross a link which is judged: their median has a 95 % interval
HYPOTHESES = 3  # of a component: slow when it sends, when it receives, in both directions
# Shares of the chance of error of a run that the detectors may spend; the shares add up to 1. Each component is judged
# by one detector of the first kind: by the times of its pairs or, where no cable is known, by its late messages.
DETECTORS = {
    "components": 0.55,
    "slow shares": 0.05,
    "late messages": 0.2,
    "retransmissions": 0.05,
    "paths": 0.1,
    "wiring": 0.05,
}


def required_evidence(tests: int, alpha: float = ALPHA) -> float:
    """Return the evidence in nats that detects one of the components.

    Parameters
    ----------
    tests
        Number of hypotheses: HYPOTHESES x components x views.
    alpha
        Chance of a false FAULT in a healthy run.
    """
    return math.log(max(tests, 1) / (alpha * DETECTORS["components"]))
