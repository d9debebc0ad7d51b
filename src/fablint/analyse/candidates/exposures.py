"""Probabilities with which messages cross links and switches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fablint.analyse.null_model.effects import Effects
from fablint.model import Placement
from fablint.model.arrays import Cells, Codes, Floats, Mask, Values
from fablint.topology.routing import Routes

SAME = 1e-6  # relative difference of sums of probabilities that is rounding


@dataclass(frozen=True)
class Exposures:
    """Probabilities that messages of cells cross components: the links, then the switches.

    The arrays are flat: cell, component, probability.
    """

    routes: Routes
    cell: Codes
    part: Codes
    share: Floats
    is_bidirectional: bool

    @property
    def parts(self) -> int:
        """Number of components."""
        return len(self.routes.ends) + len(self.routes.switches)

    @cached_property
    def signature(self) -> Floats:
        """(components,) numbers that are equal for components that the same messages cross with the same probability.

        A number is a sum over the cells of the probability times a random number of the cell.
        """
        of_cells = np.random.default_rng(1).random(int(self.cell.max(initial=-1)) + 1)
        sums = np.bincount(self.part, weights=self.share * of_cells[self.cell], minlength=self.parts)
        return sums.astype(np.float64)

    def indistinguishable(self, part: int) -> Codes:
        """Return the other links that the same messages cross with the same probability; none of a switch."""
        of_links = self.signature[: len(self.routes.ends)]
        if part >= of_links.size:
            return np.empty(0, dtype=np.int64)
        same = np.flatnonzero(np.isclose(of_links, of_links[part], rtol=SAME, atol=0))
        others: Codes = same[same != part].astype(np.int64)
        return others

    def has_uniform_links(self, end: int, placement: Placement) -> Mask:
        """(n,) whether the links that start (0) or end (1) at the switch of a rank are all indistinguishable.

        A cable of round trips starts and ends at both of its switches.
        """
        of_links = self.signature[: len(self.routes.ends)]
        least, most = np.full((2, len(self.routes.switches)), [[np.inf], [0.0]])
        crossed = of_links > 0
        for side in (0, 1) if self.is_bidirectional else (end,):
            switch = self.routes.ends[crossed, side]
            np.minimum.at(least, switch, of_links[crossed])
            np.maximum.at(most, switch, of_links[crossed])
        is_uniform = np.append(most <= least * (1 + SAME), False)
        return np.asarray(is_uniform[_switch_of_ranks(self.routes, placement)])

    def around(self, switch: int) -> Codes:
        """Return the switch and its links, as components."""
        return np.append(np.flatnonzero((self.routes.ends == switch).any(axis=1)), len(self.routes.ends) + switch)


def exposures_of_components(
    routes: Routes, placement: Placement, effects: Effects, cells: Cells, *, least: float
) -> Exposures:
    """Return the probabilities above `least` of crossing links and switches."""
    to = effects.residual.destination(cells)
    cell, link, share = _exposures(routes, placement, cells[0], to)
    if effects.bidirectional:  # the path back is late as well, and the two are indistinguishable
        back = _exposures(routes, placement, to, cells[0])
        cell, link, share = (np.concatenate(both) for both in zip((cell, link, share), back, strict=True))
    leaves = routes.ends[link, 0] if len(routes.ends) else link
    if effects.bidirectional:
        link = link - link % 2
    # A message leaves a switch once: each message that leaves by a link of the switch crosses the switch.
    key = cell.astype(np.int64) * len(routes.switches) + leaves
    unique, inverse = np.unique(key, return_inverse=True)
    through = np.minimum(np.bincount(inverse, weights=share, minlength=unique.size), 1.0)
    cell = np.concatenate([cell, (unique // len(routes.switches)).astype(np.int32)])
    part = np.concatenate([link, (len(routes.ends) + unique % len(routes.switches)).astype(np.int32)])
    chance = np.concatenate([share.astype(np.float64), through])
    is_likely = chance > least
    return Exposures(routes, cell[is_likely], part[is_likely], chance[is_likely], effects.bidirectional)


def _exposures(routes: Routes, placement: Placement, src: Codes, dst: Codes) -> tuple[Codes, Codes, Values]:
    """Return flat lists: pair of ranks, link, probability that a message of the pair crosses the link."""
    switch = _switch_of_ranks(routes, placement)
    return routes.exposure(switch[src], switch[dst])


def _switch_of_ranks(routes: Routes, placement: Placement) -> Codes:
    """Return the (n,) switches of the ranks as the routes number them; -1: unknown."""
    switch: Codes = np.append(routes.codes(placement.switches), np.int32(-1))[placement.switch]
    return switch
