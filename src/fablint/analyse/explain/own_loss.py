"""Whether the loss of a component is its own, or that of a component behind it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.analyse.candidates.components import ComponentType, Endpoints
from fablint.analyse.explain.evidence import Evidence
from fablint.analyse.null_model.effects import Effects
from fablint.analyse.observations.binomial import upper_tail
from fablint.analyse.settings import CHANCE, HALF
from fablint.model.arrays import Cells, Codes


def find_open_cells(component_type: ComponentType, part: int, sides: Sequence[int], evidence: Evidence) -> Cells:
    """Return the measured cells of the component that are not explained yet, each once."""
    width = evidence.gain.shape[1]
    keys = []
    for side in sides:
        row, column = component_type.cells(part, side)
        is_open = evidence.gain[row, column] != 0
        keys.append(row[is_open].astype(np.int64) * width + column[is_open])
    key = np.unique(np.concatenate(keys)) if len(keys) > 1 else keys[0]
    return key // width, key % width


def is_own_loss(
    component_type: ComponentType, part: int, side: int, cells: Cells, evidence: Evidence, effects: Effects
) -> bool:
    """Return whether the loss is the component's own: towards all switches, and no user shows it to be healthy."""
    if not cells[0].size:
        return True  # one round trip per pair: the other direction has the evidence
    placement, to = evidence.placement, evidence.pairs.destination(cells)
    gain = evidence.gain[cells].astype(np.int64)
    if isinstance(component_type, Endpoints):
        near_switch, far_switch = (placement.switch[ends] for ends in ((cells[0], to) if side == 0 else (to, cells[0])))
        is_remote = (far_switch >= 0) & (
            (far_switch != near_switch) | (not component_type.inside)
        )  # of a switch: to other switches
        if is_remote.any():
            totals = np.bincount(far_switch[is_remote], weights=gain[is_remote], minlength=len(placement.switches))
            elsewhere = is_remote & (far_switch != int(np.argmax(totals)))
            if elsewhere.any() and int(gain[elsewhere].sum()) <= 0:
                return False  # slow to one switch only
        if not component_type.inside:
            # Streams on a switch show the speed of a host: if they are fast, the slow component is behind the switch.
            is_near = (far_switch == near_switch) & (far_switch >= 0) & (placement.host[cells[0]] != placement.host[to])
            return not _contradicts(is_near.astype(np.int64), cells, evidence, effects, most=1)
        is_inside = (
            (component_type.code[cells[0]] == part) & (component_type.code[to] == part) & (not component_type.outward)
        )
        if _contradicts(is_inside.astype(np.int64), cells, evidence, effects, most=1):
            return False
        is_outside = np.logical_not(is_inside)
        cells, to = (cells[0][is_outside], cells[1][is_outside]), to[is_outside]
        if _is_healthy_host(component_type, part, side, evidence, effects):
            return False
    return not any(_contradicts(placement.host[end] + 1, cells, evidence, effects) for end in (cells[0], to))


def _is_healthy_host(switches: Endpoints, part: int, side: int, evidence: Evidence, effects: Effects) -> bool:
    """Return whether a host of a switch is fast with hosts outside of it: it shows that the switch is healthy.

    Cells that are not informative count as well: what was fast among other messages is not slow.
    """
    cells = find_open_cells(switches, part, (side,), evidence)
    ends = (cells[0], evidence.pairs.destination(cells))
    outside = (switches.code[ends[0]] != part) | (switches.code[ends[1]] != part)
    user = np.where(outside, evidence.placement.host[ends[side]] + 1, 0)
    return _contradicts(user, cells, evidence, effects, most=evidence.pairs.ranks)


def _contradicts(user: Codes, cells: Cells, evidence: Evidence, effects: Effects, *, most: int = 0) -> bool:
    """Return whether a user shows the component to be healthy, or most users do not show it slow.

    A user contradicts a component if more of its cells lose less than half of the typical loss than noise explains, by
    a binomial test. What the load costs a cell counts as a loss as well: a share of a link shows no faster component.

    Parameters
    ----------
    user
        (k,) user of each cell, 0: none that counts.
    cells
        Cells of the component.
    evidence
        Evidence and noise.
    effects
        Fitted model.
    most
        With at most so many users the majority is not considered.
    """
    users, inverse, measured = np.unique(user, return_inverse=True, return_counts=True)
    counts = users > 0
    if not counts.any():
        return False
    loss = effects.residual.value[cells]
    cost = effects.classes.cost_of_load(effects.residual, cells, effects.class_log_time)
    typical = float(np.median(loss))
    healthy = np.bincount(inverse, weights=loss + cost < HALF * typical)
    by_chance = upper_tail(healthy, measured, evidence.chance_below((HALF - 1) * typical))
    if (counts & (2 * healthy > measured) & (by_chance < CHANCE / np.count_nonzero(counts))).any():
        return True
    total = np.bincount(inverse, weights=evidence.gain[cells])
    return bool(counts.sum() > max(most, 2) and 2 * np.count_nonzero(total[counts] > 0) <= counts.sum())
