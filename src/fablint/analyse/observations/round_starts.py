"""When the round of each measurement began: pairs of a round are measured at one time."""

from __future__ import annotations

import numpy as np

from fablint.analyse.observations.samples import Flows
from fablint.model.arrays import Floats


def round_starts(flows: Flows) -> Floats | None:
    """Return the (n, m) start in s of the round of each cell, or of the cell itself if that is not known.

    None: no start is known.
    """
    started = flows.started
    if started is None or (flows.rounds is None and flows.observations.partner is None):
        return started
    columns = np.broadcast_to(np.arange(started.shape[1]), started.shape)
    number = columns if flows.rounds is None else flows.rounds[0]
    in_round = np.isfinite(started) & (number >= 0)
    first = np.full(int(number.max(initial=0)) + 1, np.inf)
    np.minimum.at(first, number[in_round], started[in_round])
    return np.where(in_round, first[np.maximum(number, 0)], started)
