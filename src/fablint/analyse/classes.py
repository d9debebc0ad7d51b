"""What pairs are compared within: how far apart their ends are, and how much else the links between them carried.

Pairs that are measured at once share cables, and are slower for it on the healthiest of fabrics. Where it is known
which links each message crosses and which pairs met in which round, a pair is compared with those that collided alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from fablint.analyse.pairs import Cells, Pairs
from fablint.analyse.places import Codes, Places
from fablint.analyse.ways import Ways
from fablint.model import SCOPES

Loads = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

SMALLEST_SHARED = 4096  # bytes: smaller messages do not fill a link
FEWEST_FREE = 6  # pairs of a host that shared no link, from which the others are not needed
STEPS = np.array([2, 3, 4, 5, 7, 9, 13, 17, 25, 33])  # flows on the busiest link from which a pair is in the next class


@dataclass(frozen=True)
class Classes:
    """Class codes of the pairs: position of the scope in SCOPES, plus the load's step times their number."""

    places: Places
    load: Loads | None = None  # (n, m) step of each cell; None: not known, or it does not matter

    def telling(self, pairs: Pairs, offsets: Mapping[int, float], tolerance: float) -> Mask | None:
        """(n, m) cells that tell how fast their ends are; None: all.

        A stream that shares a link with others is as fast as its part of that link, and no end that can do as much is
        seen to be slow by it. Where sharing costs nothing (`offsets` are the classes' log times), or where too few
        others were measured, all do.
        """
        if self.load is None:
            return None
        costly = self._extra(offsets) > tolerance
        if not costly.any():
            return None
        free = np.concatenate([~costly.ravel()[self.of_rows(pairs, rows)] for rows in pairs.blocks()])
        each = np.count_nonzero(free & ~np.isnan(pairs.value), axis=1)
        return free if np.median(each) >= FEWEST_FREE else None

    def sharing(self, offsets: Mapping[int, float], tolerance: float) -> tuple[float, float] | None:
        """Least and most time of pairs that shared a link, in that of pairs that did not; None: it costs nothing."""
        extra = self._extra(offsets) if self.load is not None else np.zeros(1)
        costly = extra[extra > tolerance]
        return (float(np.exp(costly.min())), float(np.exp(costly.max()))) if costly.size else None

    def _extra(self, offsets: Mapping[int, float]) -> npt.NDArray[np.float64]:
        """(steps, scopes) log time of each class beyond the fastest of its scope, 0 where there is none."""
        extra = np.zeros((len(STEPS) + 1, len(SCOPES)))
        for scope in range(len(SCOPES)):
            steps = [step for step in range(len(STEPS) + 1) if scope + step * len(SCOPES) in offsets]
            times = np.array([offsets[scope + step * len(SCOPES)] for step in steps])
            extra[steps, scope] = times - times.min(initial=np.inf)
        return extra

    @property
    def count(self) -> int:
        """How many codes there may be."""
        return len(SCOPES) * (1 if self.load is None else len(STEPS) + 1)

    def of_rows(self, pairs: Pairs, rows: slice | Codes) -> npt.NDArray[np.uint8]:
        """(rows, m) class of each pair."""
        scopes = self.places.placement.scopes(np.arange(pairs.ranks)[rows][:, None], pairs.partners(rows))
        return scopes if self.load is None else scopes + np.uint8(len(SCOPES)) * self.load[rows]

    def of_cells(self, pairs: Pairs, cells: Cells) -> npt.NDArray[np.uint8]:
        """(k,) class of each of these cells."""
        scopes = self.places.placement.scopes(cells[0], pairs.destination(cells))
        return scopes if self.load is None else scopes + np.uint8(len(SCOPES)) * self.load[cells]


def loads(pairs: Pairs, ways: Ways, concurrent: npt.NDArray[np.bool_], rounds: Codes | None) -> Loads | None:
    """(n, m) how shared the busiest link of each pair was when it was measured.

    `concurrent` says of each column of a list whether its pairs were measured at once; `rounds` (n, n) gives the round
    of each cell of a matrix whose rounds were. The two directions of a pair take turns, all lower ranks first.
    """
    if ways.routes is None or not ways.known_links or not ways.routes.certain:
        return _alone(pairs, concurrent)
    load = np.zeros(pairs.value.shape, dtype=np.uint8)
    if pairs.partner is not None:
        for column in np.flatnonzero(concurrent):
            row = np.flatnonzero(pairs.partner[:, column] >= 0)
            to = pairs.partner[row, column]
            _share(load, (row, np.full(row.size, column)), row < to, ways, pairs)
        return load if load.any() else None
    if rounds is None:
        return None
    order = np.argsort(rounds, axis=None, kind="stable")
    starts = np.searchsorted(rounds.ravel()[order], np.arange(int(rounds.max(initial=-1)) + 2))
    for first, last in pairwise(starts.tolist()):
        at, to = np.divmod(order[first:last], pairs.ranks)
        _share(load, (at, to), at < to, ways, pairs)
    return load if load.any() else None


def _alone(pairs: Pairs, concurrent: npt.NDArray[np.bool_]) -> Loads | None:
    """Where nobody knows who shares a link: pairs that were measured alone are not compared with the others."""
    if pairs.partner is None or concurrent.all() or not concurrent.any():
        return None
    return np.where(concurrent, np.uint8(len(STEPS)), np.uint8(0))[None, :].repeat(pairs.ranks, axis=0)


def _share(load: Loads, cells: Cells, first: npt.NDArray[np.bool_], ways: Ways, pairs: Pairs) -> None:
    """Write the steps of cells that were measured in one round; `first` had their turn before the others."""
    for turn in (first, ~first):
        some = cells[0][turn], cells[1][turn]
        segments = ways.segments[ways.of_cells(pairs, some)]
        segments = np.where(segments < ways.known_links, segments, -1)  # of what is not known, nothing is
        flows = np.bincount(segments[segments >= 0], minlength=ways.known_links + 1)
        flows[-1] = 0
        load[some] = np.searchsorted(STEPS, flows[segments].max(axis=1), side="right")
