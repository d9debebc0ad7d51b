"""Classes of comparable pairs: by the distance of their ends and by the load of the links between them.

The distance is the scope, and within it the number of cables between the two switches: one to three between groups of a
dragonfly, each of which adds to the time of a small message. Pairs that are measured at once share cables, and are
slower for it in a healthy fabric. Where the links of each message and the rounds of the pairs are known, a pair is
compared with pairs that share links as much.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from fablint.analyse.data.message_paths import MOST_UNKNOWN, MessagePaths
from fablint.analyse.data.pair_matrix import Pairs
from fablint.model import SCOPES, Placement, Scope
from fablint.model.arrays import Cells, Codes, Floats, Ints, Mask
from fablint.topology.contention import detour_links, flows_on_busiest, flows_on_links, turns
from fablint.topology.routing import Routes

SMALLEST_SHARED = 4096  # bytes: smaller messages do not fill a link
SMALL_CLASS = 0.05  # share of the pairs at the same distance, up to which most pairs of a class may be faulty
FEWEST_FREE = 3  # pairs of a host that shared no link, from which the other pairs are not needed
UNCERTAIN = frozenset({"ecmp", "adaptive"})  # routings in which the path of a message is not known
LEAST_SHARE = 0.05  # smallest share of a pair's messages for which a link counts
EXPECTED = np.array([1.05, 1.6, 2.1, 3.1, 4.1, 6.1, 8.1, 12.1, 16.1, 24.1])  # as STEPS, for expected numbers of flows
STEPS = np.array([2, 3, 4, 5, 7, 9, 13, 17, 25, 33])  # flows on the busiest link from which a pair is in the next class


MOST_CODES = 255  # class codes fit a byte


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

    def informative(self, pairs: Pairs, offsets: Mapping[int, float], tolerance: float) -> Mask | None:
        """Return the (n, m) cells that show how fast their ends are; None: all.

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
        return free if np.median(np.count_nonzero(counted, axis=1)) >= FEWEST_FREE else None

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
            large = SMALL_CLASS * sum(counts[code] for code in codes)
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
        return MOST_CODES // (len(SCOPES) * (1 if self.load is None else len(STEPS) + 1)) - 1

    @property
    def count(self) -> int:
        """Number of possible codes."""
        return self._kinds * (1 if self.load is None else len(STEPS) + 1)

    def of_rows(self, pairs: Pairs, rows: slice | Codes) -> Ints:
        """Return the (rows, m) class of each pair."""
        kinds = self._distances(np.arange(pairs.ranks)[rows][:, None], pairs.partners(rows))
        return kinds if self.load is None else kinds + np.uint8(self._kinds) * self.load[rows]

    def of_cells(self, pairs: Pairs, cells: Cells) -> Ints:
        """Return the (k,) class of each of these cells."""
        kinds = self._distances(cells[0], pairs.destination(cells))
        return kinds if self.load is None else kinds + np.uint8(self._kinds) * self.load[cells]

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


def loads(pairs: Pairs, message_paths: MessagePaths, concurrent: Mask, rounds: Codes | None) -> Ints | None:
    """Return the (n, m) step of load: how shared the busiest link of each pair was when the pair was measured.

    Within a round the two directions of a pair take turns, from the lower ranks to the higher first.

    Parameters
    ----------
    pairs
        A matrix or a list of rounds.
    message_paths
        Links that the messages cross.
    concurrent
        (m,) columns of a list whose pairs were measured at once.
    rounds
        (n, n) round of each cell of a matrix whose rounds were measured at once; None otherwise.

    Returns
    -------
    Loads or None
        None if no link was shared, or if it is unknown.
    """
    if (
        message_paths.routes is not None
        and message_paths.known_links
        and message_paths.routes.routing.kind in UNCERTAIN
    ):
        return _expected(pairs, message_paths, concurrent, rounds)
    if message_paths.routes is None or not message_paths.known_links:
        return _without_routes(pairs, concurrent)
    load = np.zeros(pairs.value.shape, dtype=np.uint8)
    if pairs.partner is not None:
        for column in np.flatnonzero(concurrent):
            row = np.flatnonzero(pairs.partner[:, column] >= 0)
            to = pairs.partner[row, column]
            _share(load, (row, np.full(row.size, column)), turns(row, to, np.zeros_like(row)), message_paths, pairs)
        return load if load.any() else None
    if rounds is None:
        return None
    order = np.argsort(rounds, axis=None, kind="stable")
    starts = np.searchsorted(rounds.ravel()[order], np.arange(int(rounds.max(initial=-1)) + 2))
    for first, last in pairwise(starts.tolist()):
        at, to = np.divmod(order[first:last], pairs.ranks)
        _share(load, (at, to), turns(at, to, np.zeros_like(at)), message_paths, pairs)
    return load if load.any() else None


def _without_routes(pairs: Pairs, concurrent: Mask) -> Ints | None:
    """Return two steps of load where shared links are unknown: pairs measured at once, and pairs measured one by
    one.
    """
    if pairs.partner is None or concurrent.all() or not concurrent.any():
        return None
    return np.where(concurrent, np.uint8(len(STEPS)), np.uint8(0))[None, :].repeat(pairs.ranks, axis=0)


def _expected(pairs: Pairs, message_paths: MessagePaths, concurrent: Mask, rounds: Codes | None) -> Ints | None:
    """Return the (n, m) step of the expected flows on the busiest link, where messages choose between several paths.

    Pairs that were measured at once with ends that the topology does not know get the last step. Messages on a detour
    are spread evenly over all links.
    """
    assert message_paths.routes is not None
    cells, turn = _turns(pairs, concurrent, rounds)
    load = np.zeros(pairs.value.shape, dtype=np.uint8)
    a, b = message_paths.switch[cells[0]], message_paths.switch[pairs.destination(cells)]
    known = (a >= 0) & (b >= 0)
    load[cells[0][~known], cells[1][~known]] = len(STEPS)
    row, column, turn, a, b = (values[known] for values in (*cells, turn, a, b))
    unique, inverse = np.unique(a * message_paths.keys + b, return_inverse=True)
    codes = message_paths.codes
    query, link, share = message_paths.routes.exposure(
        codes[unique // message_paths.keys], codes[unique % message_paths.keys]
    )
    detours = (
        detour_links(message_paths.routes)
        / max(1, len(message_paths.routes.ends))
        * (unique // message_paths.keys != unique % message_paths.keys)
    )
    likely = share >= LEAST_SHARE
    order = np.argsort(turn, kind="stable")
    bounds = np.flatnonzero(np.diff(turn[order], prepend=-1, append=-1))
    for first, last in pairwise(bounds.tolist()):
        cells_of_turn = order[first:last]
        messages = np.bincount(inverse[cells_of_turn], minlength=unique.size)
        flows = flows_on_links(link, len(message_paths.routes.ends), share * messages[query])[0]
        busiest = flows_on_busiest(query[likely], flows[link[likely]], unique.size)
        busiest += np.where(busiest > 0, detours[inverse[cells_of_turn]].sum(), 0.0)
        load[row[cells_of_turn], column[cells_of_turn]] = np.searchsorted(
            EXPECTED, busiest[inverse[cells_of_turn]], side="right"
        )
    return load if load.any() else None


def _turns(pairs: Pairs, concurrent: Mask, rounds: Codes | None) -> tuple[Cells, Codes]:
    """Return the cells that were measured at once with others, and a number that cells of one turn have in common."""
    if pairs.partner is not None:
        row, column = np.nonzero((pairs.partner >= 0) & concurrent[None, :])
        return (row, column), turns(row, pairs.partner[row, column], column)
    if rounds is None:
        empty = np.empty(0, dtype=np.int64)
        return (empty, empty), empty
    row, column = np.nonzero(rounds >= 0)
    return (row, column), turns(row, column, rounds[row, column])


def _share(load: Ints, cells: Cells, turn: Codes, message_paths: MessagePaths, pairs: Pairs) -> None:
    """Write the steps of cells that were measured in one round, in the turns 0 and 1."""
    segments = message_paths.segments[message_paths.of_cells(pairs, cells)]
    unknown: Mask = np.asarray((segments >= message_paths.known_links).any(axis=1))
    segments[unknown] = -1
    cell, hop = np.nonzero(segments >= 0)
    link, when = segments[cell, hop], turn[cell]
    flows = flows_on_links(link, message_paths.known_links, turn=when, count=2)
    step = np.searchsorted(STEPS, flows_on_busiest(cell, flows[when, link], unknown.size), side="right")
    load[cells] = np.where(unknown, len(STEPS), step)  # the shared links are not in the topology
