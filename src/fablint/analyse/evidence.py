"""What one measured pair says for "5 % slower than noise explains": a bounded bet against the fabric's own noise.

The noise is the pool of what the model leaves over, per scope. f0 is the share of the pool in each of 50 bins, f1
the share after shifting the pool by the smallest fault worth a ticket. The gain of a pair is log(f1 / f0), made
monotone (slower is never better), clipped, and normalised to E0[exp(gain)] = 1, so that the product over pairs of a
part is an e-value: under the null it exceeds c with probability at most 1 / c (Ville; Wang and Ramdas 2022). No
distribution is assumed, and no single pair can convict.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from fablint.analyse.fit import FINEST_NOISE, Effects, healthy_scatter, leftover, pair_scopes
from fablint.analyse.pairs import Cells, Pairs, Values
from fablint.analyse.places import Codes, Places
from fablint.analyse.settings import Settings
from fablint.model import SCOPES

UNITS_PER_NAT = 32  # gains are whole numbers of 1/32 nat: they fit a byte and their sums are exact
LARGEST_GAIN = 2.5  # nats, before normalisation
SMALLEST_POOL = 30  # values without which the noise is not known
OWN_POOL = 200  # values from which a scope has a null of its own
LEVELS = 256

Gains = npt.NDArray[np.int8]
Sums = npt.NDArray[np.int64]


@dataclass
class Evidence:
    """Gains of all pairs in 1/32 nat, and their sums. 0: missing, or explained by a part found already."""

    pairs: Pairs
    places: Places
    gain: Gains  # (n, m)
    sent: Sums  # (n,) per sender
    received: Sums  # (n,) per receiver
    between: Sums  # (S, S) per source and destination switch

    def remove(self, cells: Cells) -> None:
        """These pairs are explained: they speak for and against nobody any more."""
        gone = self.gain[cells].astype(np.int64)
        to = self.pairs.destination(cells)
        np.subtract.at(self.sent, cells[0], gone)
        np.subtract.at(self.received, to, gone)
        if self.places.switches:
            a, b = self.places.switch[cells[0]], self.places.switch[to]
            known = (a >= 0) & (b >= 0)
            np.subtract.at(self.between, (a[known], b[known]), gone[known])
        self.gain[cells] = 0


def gather(effects: Effects, places: Places, settings: Settings) -> Evidence | None:
    """Gains of all pairs; None where too little was measured to know the noise."""
    scatter, scopes = healthy_scatter(effects, places)
    if scatter.size < SMALLEST_POOL:
        return None
    grid = _grid(scatter)
    pooled = gain_table(scatter, grid, settings.smallest_fault)
    tables = np.tile(pooled, (len(SCOPES), 1))
    for code in np.unique(scopes):
        own = scatter[scopes == code]
        if own.size >= OWN_POOL:
            tables[code] = gain_table(own, grid, settings.smallest_fault)

    pairs = effects.residual
    gain = np.zeros(pairs.value.shape, dtype=np.int8)
    for rows in pairs.blocks():
        left = leftover(effects, places, rows, cap=True)
        found = tables[pair_scopes(pairs, places, rows), levels(left, grid)]
        found[np.isnan(left)] = 0
        gain[rows] = found
    return _summed(pairs, places, gain)


def gain_table(pool: Values, grid: tuple[float, float], shift: float) -> Gains:
    """(LEVELS,) gain of a value at each level of the grid, in 1/32 nat rounded down. `pool` is the noise."""
    low, step = grid
    centre = low + step * (np.arange(LEVELS) + 0.5)
    level = levels(pool, grid)
    pool = centre[level]  # so that a value and its level are in the same bin
    edges = np.unique(np.quantile(pool, np.linspace(0.02, 0.98, 49), method="nearest"))
    bins = edges.size + 1
    f0 = np.bincount(np.searchsorted(edges, pool), minlength=bins) + 0.5
    f1 = np.bincount(np.searchsorted(edges, pool + shift), minlength=bins) + 0.5
    raw = np.clip(np.log(f1 / f0), -LARGEST_GAIN, LARGEST_GAIN)
    monotone = isotonic_regression(raw, weights=f0).x
    table = monotone[np.searchsorted(edges, centre)]
    table -= np.log(np.mean(np.exp(table[level])))
    units = np.minimum(np.floor(table * UNITS_PER_NAT), np.iinfo(np.int8).max)
    return np.where(units == 0, -1, units).astype(np.int8)  # 0 is kept for "says nothing"


def levels(values: Values, grid: tuple[float, float]) -> npt.NDArray[np.uint8]:
    """Position of each value on the grid; NaN anywhere."""
    low, step = np.float32(grid[0]), np.float32(grid[1])
    with np.errstate(invalid="ignore"):
        level: npt.NDArray[np.uint8] = np.clip(np.nan_to_num((values - low) / step), 0, LEVELS - 1).astype(np.uint8)
    return level


def _grid(pool: Values) -> tuple[float, float]:
    """Lower end and step of the levels: they span the pool but for its outermost hundredths."""
    low, high = np.quantile(pool, (0.01, 0.99))
    step = max(float(high - low), FINEST_NOISE) / (LEVELS - 2)
    return float(low) - step, step


def _summed(pairs: Pairs, places: Places, gain: Gains) -> Evidence:
    n, size = pairs.ranks, max(1, len(places.switches))
    sent, received, between = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros((size, size), np.int64)
    for rows in pairs.blocks():
        block = gain[rows]
        sent[rows] = block.sum(axis=1, dtype=np.int64)
        if pairs.partner is None:
            received += block.sum(axis=0, dtype=np.int64)
        else:
            np.add.at(received, pairs.partners(rows), block)
    for switch in range(len(places.switches)):
        members = np.nonzero(places.switch == switch)[0]
        between[switch] = _per_switch(pairs, places, gain, members, size)
    return Evidence(pairs, places, gain, sent, received, between)


def _per_switch(pairs: Pairs, places: Places, gain: Gains, members: Codes, size: int) -> Sums:
    """(S,) gains of what these ranks sent, by the destination's switch."""
    block = gain[members]
    other = places.switch[pairs.partners(members)]
    if pairs.partner is None:
        block, other = block.sum(axis=0, dtype=np.int64), other[0]
    known = other >= 0
    return np.bincount(other[known], weights=block[known], minlength=size).astype(np.int64)
