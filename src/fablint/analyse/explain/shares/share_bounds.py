"""Upper bounds of the share of slow measurements of hosts and links: a median does not show a share below a half."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fablint.analyse.explain.shares.slow_measurements import SlowMeasurements
from fablint.analyse.null_model.effects import Effects
from fablint.analyse.settings import CONFIDENCE, HALF, Settings
from fablint.model.arrays import Codes, Floats


@dataclass(frozen=True)
class ShareBounds:
    """Upper bounds; NaN where nothing was measured, or where the links that messages cross are not known."""

    hosts: Floats  # (hosts,)
    links: Floats  # (links,)


def share_bounds(measured: SlowMeasurements | None, effects: Effects, settings: Settings) -> ShareBounds | None:
    """Return the upper bounds of the shares of slow measurements; None if `measured` is."""
    placement, paths = effects.classes.placement, effects.message_paths
    hosts, links = len(placement.hosts), paths.known_links
    if measured is None:
        return None
    pairs = measured.pairs
    weight = (pairs.weight / np.bincount(pairs.of_cell))[pairs.of_cell]
    of_ends = placement.host[measured.ends].astype(np.int64).T.ravel()
    crossed = paths.of_messages(effects.residual, measured.cells, bidirectional=not measured.one_way)
    segments = np.concatenate([paths.segments[path] for path in crossed], axis=1)
    number, hop = np.nonzero((segments >= 0) & (segments < links))
    slow = np.ones_like(measured.slow) if measured.together else measured.slow  # single measurements are not known
    return ShareBounds(
        _bounds(of_ends, np.tile(weight, 2), np.tile(slow, 2), hosts),
        _bounds(segments[number, hop].astype(np.int64), weight[number], slow[number], links),
    )


def _bounds(component: Codes, weight: Floats, slow: np.ndarray, count: int) -> Floats:
    """Return the (count,) bound of each component by its measurements."""
    from scipy.special import betaincinv

    total = np.bincount(component, weights=weight, minlength=count)
    late = np.bincount(component, weights=weight * slow, minlength=count)
    measured = total > 0
    bound = np.full(count, np.nan)
    fast = np.maximum(total - late, 0.0)[measured] + 1e-9
    bound[measured] = np.minimum(betaincinv(late[measured] + 1.0, fast, CONFIDENCE), HALF)
    return bound
