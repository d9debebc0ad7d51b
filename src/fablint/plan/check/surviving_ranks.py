"""A stage for the ranks that are left: what a launch measures after hosts were lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fablint.model import PlanRow, Slots
from fablint.model.arrays import RankPairs
from fablint.plan.check.stages import Stage

HostPair = frozenset[str]


def narrowed(
    stage: Stage,
    slots: Sequence[Slots],
    left_out: Collection[str],
    apart: Collection[HostPair] = (),
    wanted: Mapping[str, Sequence[int]] | None = None,
) -> Stage | None:
    """Return the same rows and rounds without the pairs that cannot be measured; None where nothing is left.

    Rounds keep their numbers, so that the cells find their places in the run: a round without a pair is written
    with one that is not measured. Ranks are counted anew, without those of the hosts left out.

    Parameters
    ----------
    stage
        Rows of rounds.
    slots
        Where its ranks are.
    left_out
        Hosts that are not launched.
    apart
        Pairs of hosts that are not measured with each other.
    wanted
        Rounds to measure, per row name; None: all of all rows. Rows without an entry are left out.
    """
    hosts = [slot.host for slot in slots for _ in range(slot.ranks)]
    number = np.full(len(hosts), -1, dtype=np.int32)
    here = [rank for rank, host in enumerate(hosts) if host not in left_out]
    number[here] = range(len(here))
    if len(here) < 2:
        return None
    rounds = {
        file: [_remaining(pairs, number, hosts, apart) for pairs in planned] for file, planned in stage.rounds.items()
    }
    rows = []
    for row in stage.plan.rows:
        pairs_of_rounds = rounds[str(row.spec.rounds_file)]
        indices = range(len(pairs_of_rounds)) if wanted is None else wanted.get(str(row.spec.name), ())
        left = [index for index in indices if len(pairs_of_rounds[index])]
        if left:
            spec = replace(row.spec, only_rounds=tuple(left))
            rows.append(PlanRow(spec, len(left), row.predicted_s * len(left) / max(1, row.rounds)))
    if not rows:
        return None
    idle = np.array([[0, 1]], dtype=np.int32)
    filled = {
        file: tuple(pairs if len(pairs) else idle for pairs in pairs_of_file) for file, pairs_of_file in rounds.items()
    }
    kept = tuple(slot for slot in slots if slot.host not in left_out)
    return Stage(replace(stage.plan, ranks=len(here), rows=tuple(rows), slots=kept), filled)


def _remaining(pairs: RankPairs, number: np.ndarray, hosts: Sequence[str], apart: Collection[HostPair]) -> RankPairs:
    """The pairs both of whose ranks are there and may meet, renumbered."""
    met = [
        (number[a], number[b])
        for a, b in pairs.tolist()
        if number[a] >= 0 and number[b] >= 0 and frozenset((hosts[a], hosts[b])) not in apart
    ]
    return np.array(met, dtype=np.int32).reshape(-1, 2)
