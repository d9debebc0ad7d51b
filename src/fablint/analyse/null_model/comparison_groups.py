"""Classes of comparable pairs: by the distance of their ends and by the load of the links between them.

The distance is the scope, and within it the number of cables between the two switches: one to three between groups of a
dragonfly, each of which adds to the time of a small message. Pairs that are measured at once share cables, and are
slower for it in a healthy fabric. Where the links of each message and the rounds of the pairs are known, a pair is
compared with pairs that share links as much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fablint.analyse.null_model.loads import STEPS, NicLoad
from fablint.analyse.null_model.offsets.nic_offsets import NicOffsets
from fablint.analyse.observations.message_paths import MOST_UNKNOWN
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.settings import FEWEST_PEERS, SMALL_SHARE
from fablint.model import SCOPES, Placement, Scope
from fablint.model.arrays import Cells, Codes, Floats, Ints, Mask
from fablint.topology.routing import Routes

EndMasks = tuple[Mask | None, Mask | None, Mask | None]  # of cells that count for both ends, sender, receiver
MOST_CODES = 255  # of scopes and distances: these fit a byte


@dataclass(frozen=True)
class Classes:
    """Class codes of the pairs.

    A code is the position of the scope in SCOPES, plus the number of scopes times the cables beyond the fewest of the
    scope, plus the number of all these times the step of the load. Codes below the number of scopes are the nearest
    pairs of each scope.
    """

    placement: Placement
    load: Ints | None = None  # (n, m) step of each cell; None: unknown, or without effect
    beyond: Ints | None = None  # (S, S) cables beyond the fewest of the scope; None: unknown, or 0 for all
    stream: bool = False  # whether a healthy pair is as fast over many cables as over one
    planned: Mask | None = None  # (m,) columns of a list that were planned before anything was measured; None: all
    nic_load: NicLoad | None = None  # of ranks that share a NIC, its steps are in `load`; None: no NIC is shared
    nic_offsets: NicOffsets | None = None  # of the kinds of NICs, subtracted from the values; None: none
    facts: Mapping[str, Sequence[str]] = field(default_factory=dict)  # what is recorded of each host, by its name

    def informative(self, pairs: Pairs, offsets: Mapping[int, float], tolerance: float) -> EndMasks:
        """Return the (n, m) cells that show how fast both ends, the sender, and the receiver are; None: all.

        A stream between NICs of different speeds shows the slower one, a stream among others shows the NIC that is
        full. If too few other cells were planned, every cell counts.

        Parameters
        ----------
        pairs
            Values of the cells; NaN where nothing was measured.
        offsets
            Log time of each class.
        tolerance
            Largest log-effect of sharing, or of the kind of a NIC, that is ignored.
        """
        free = self._free_of_load(pairs, offsets, tolerance)
        shown = []
        if self.stream and self.nic_offsets is not None:
            shown.append(self.nic_offsets.shown_ends(pairs, tolerance))
        if self.stream and self.nic_load is not None:
            shown.append((self.nic_load.sender, self.nic_load.receiver))
        if not shown:
            return free, free, free
        sender, receiver = (np.logical_and.reduce([masks[side] for masks in shown]) for side in (0, 1))
        if free is not None:
            sender, receiver = sender & free, receiver & free
        both = sender & receiver
        return (both, sender, receiver) if _are_enough(both & ~np.isnan(pairs.value)) else (free, free, free)

    def _free_of_load(self, pairs: Pairs, offsets: Mapping[int, float], tolerance: float) -> Mask | None:
        """Return the (n, m) cells that are not slow because they share a link; None: all.

        A stream that shares a link is as fast as its share of the link: an end that could send faster does not look
        slow. If sharing costs nothing, or if too few other cells were planned, every cell counts. Follow-up
        measurements do not decide it: few pairs that are measured again isolated would take all other measurements
        away. Streams of far pairs are compared with near pairs: all far pairs may share links.

        Parameters
        ----------
        pairs
            Values of the cells; NaN where nothing was measured.
        offsets
            Log time of each class.
        tolerance
            Largest log-effect of sharing that is ignored.
        """
        if self.load is None:
            return None
        costly = self._extra(offsets, everywhere=True) > tolerance
        if not costly.any():
            return None
        cheap = np.logical_not(costly).ravel()
        free = np.concatenate([cheap[self.of_rows(pairs, rows)] for rows in pairs.blocks()])
        counted = free & ~np.isnan(pairs.value)
        if self.planned is not None and self.planned.size:
            counted &= self.planned
        return free if _are_enough(counted) else None

    def unshared(self, offsets: Mapping[int, float], tolerance: float) -> Mask | None:
        """Return the (n, m) cells that no other pair delayed; None: all.

        The messages were isolated on their links; or all cells were as fast as isolated cells at the same distance, or,
        without such cells, as fast as any stream.
        """
        if self.load is None:
            return None
        times = self._times(offsets)
        usual = np.where(np.isnan(times[0]), self._fastest(times), times[0])
        return np.asarray(self.load == 0) if (times[1:] > usual + tolerance).any() else None

    def limit_small_classes(self, offsets: Mapping[int, float], counts: Mapping[int, int]) -> dict[int, float]:
        """Return the log times with limits for small classes.

        A small class is no slower than a large class at the same distance whose pairs shared more. Suspect components
        are measured again among few other pairs: most pairs of their class may be faulty.
        """
        bounded = dict(offsets)
        for kind in range(self._kinds if self.load is not None else 0):
            codes = [code for code in sorted(offsets) if code % self._kinds == kind]
            large = SMALL_SHARE * sum(counts[code] for code in codes)
            most = np.inf
            for code in reversed(codes):
                if counts[code] >= large:
                    most = min(most, offsets[code])
                bounded[code] = min(offsets[code], most) if counts[code] < large else offsets[code]
        return bounded

    def sharing(self, offsets: Mapping[int, float], tolerance: float) -> tuple[float, float] | None:
        """Return the smallest and largest factor by which sharing a link extends the time; None if it costs nothing."""
        extra = self._extra(offsets) if self.load is not None else np.zeros(1)
        costly = extra[extra > tolerance]
        return (float(np.exp(costly.min())), float(np.exp(costly.max()))) if costly.size else None

    def cost_of_load(self, pairs: Pairs, cells: Cells, offsets: Mapping[int, float]) -> Floats:
        """Return the (k,) log time that these cells lost to the load of their links."""
        if self.load is None:
            return np.zeros(cells[0].size)
        return np.asarray(self._extra(offsets).ravel()[self.of_cells(pairs, cells)], dtype=np.float64)

    def _extra(self, offsets: Mapping[int, float], *, everywhere: bool = False) -> Floats:
        """Return the (steps, kinds) log time of each class beyond the fastest at the same distance.

        With `everywhere`: beyond the fastest at any distance, except messages within a host. 0 for absent classes.
        """
        times = self._times(offsets)
        fastest = self._fastest(times) if everywhere else np.fmin.reduce(times, axis=0)
        beyond: Floats = np.nan_to_num(times - fastest)
        return beyond

    def _fastest(self, times: Floats) -> Floats:
        """Return the (kinds,) log time of the fastest class at the same distance.

        Of streams: at any distance outside hosts.
        """
        fastest = np.fmin.reduce(times, axis=0)
        if self.stream:
            fabric = np.arange(self._kinds) % len(SCOPES) != SCOPES.index(Scope.INTRA_NODE)
            fastest[fabric] = np.fmin.reduce(fastest[fabric])
        return np.asarray(fastest, dtype=np.float64)

    def _times(self, offsets: Mapping[int, float]) -> Floats:
        """Return the (steps, kinds) log time of each class, NaN for absent classes."""
        times = np.full((len(STEPS) + 1, self._kinds), np.nan)
        for code, time in offsets.items():
            times[divmod(code, self._kinds)] = time
        return times

    @property
    def _kinds(self) -> int:
        """Number of scopes times number of distances."""
        most = 0 if self.beyond is None else int(self.beyond.max(initial=0))
        return len(SCOPES) * (1 + min(most, self._farthest))

    @property
    def _farthest(self) -> int:
        """Largest number of additional cables that has a code; longer paths have the same code."""
        return MOST_CODES // len(SCOPES) - 1

    @property
    def count(self) -> int:
        """Number of possible codes."""
        return self._kinds * (1 if self.load is None else len(STEPS) + 1)

    def of_rows(self, pairs: Pairs, rows: slice | Codes) -> Ints:
        """Return the (rows, m) class of each pair."""
        kinds = self._distances(np.arange(pairs.ranks)[rows][:, None], pairs.partners(rows))
        return kinds if self.load is None else kinds + np.uint16(self._kinds) * self.load[rows]

    def of_cells(self, pairs: Pairs, cells: Cells) -> Ints:
        """Return the (k,) class of each of these cells."""
        kinds = self._distances(cells[0], pairs.destination(cells))
        return kinds if self.load is None else kinds + np.uint16(self._kinds) * self.load[cells]

    def _distances(self, src: Codes, dst: Codes) -> Ints:
        """Return the code of scope and distance of pairs of ranks; `src` and `dst` are broadcast against each other."""
        scopes = self.placement.scopes(src, dst)
        if self.beyond is None:
            return scopes
        steps: Ints = self._steps_beyond[self.placement.switch[src], self.placement.switch[dst]]
        return scopes + steps

    @cached_property
    def _steps_beyond(self) -> Ints:
        """(S + 1, S + 1) part of the code for the distance; the last row and column stand for unknown switches."""
        assert self.beyond is not None
        return np.pad(np.minimum(self.beyond, self._farthest) * np.uint8(len(SCOPES)), (0, 1)).astype(np.uint8)


def _are_enough(counted: Mask) -> bool:
    """Return whether ranks have enough of these (n, m) cells."""
    return bool(np.median(np.count_nonzero(counted, axis=1)) >= FEWEST_PEERS)


def cables_beyond(placement: Placement, routes: Routes | None) -> Ints | None:
    """Return the (S, S) number of cables between the run's switches, beyond the fewest of their scope.

    None if no cables are known, or if all paths of a scope have the same length.
    """
    if routes is None or not placement.switches:
        return None
    apart = _cables(placement, routes)
    group = np.full(len(placement.switches), -1)
    group[placement.switch[placement.switch >= 0]] = placement.group[placement.switch >= 0]
    near = group[:, None] == group[None, :]
    beyond = np.zeros(apart.shape, dtype=np.uint8)
    for scope in (near, np.logical_not(near)):
        inside = scope & (apart > 0)
        beyond[inside] = apart[inside] - apart[inside].min(initial=np.iinfo(np.int8).max)
    return beyond if beyond.any() else None


def _cables(placement: Placement, routes: Routes) -> Ints:
    """Return the (S, S) number of cables that messages cross, on the path of forwarding tables or a shortest path.

    -1: no path.
    """
    size = len(placement.switches)
    code = routes.codes(placement.switches)
    apart = routes.distances(code)
    if routes.routing.kind == "tables" and size * size <= MOST_UNKNOWN:
        host = np.full(size, -1, dtype=np.int32)  # one host of each switch
        host[placement.switch[placement.switch >= 0]] = placement.location[placement.switch >= 0]
        src, dst = (index.ravel() for index in np.indices((size, size)))
        hops = np.count_nonzero(routes.hops(code[src], code[dst], host[dst]) >= 0, axis=1).reshape(apart.shape)
        apart = np.where(hops > 0, hops, apart).astype(np.int8)
    return apart
