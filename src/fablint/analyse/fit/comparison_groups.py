"""What pairs are compared within: how far apart their ends are, and how much else the links between them carried.

Far apart means the scope, and within it how many cables lie between the two switches: between groups of a dragonfly
one to three, each of which a small message takes its time to cross. Pairs that are measured at once share cables, and
are slower for it on the healthiest of fabrics. Where it is known which links each message crosses and which pairs met
in which round, a pair is compared with those that collided alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.message_paths import MOST_UNKNOWN, MessagePaths
from fablint.analyse.data.pair_matrix import Cells, Codes, Pairs
from fablint.model import SCOPES, Placement, Scope
from fablint.topology.contention import Turns, detour_links, flows_on_busiest, flows_on_links, turns
from fablint.topology.routing import Routes

Loads = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

SMALLEST_SHARED = 4096  # bytes: smaller messages do not fill a link
SMALL_CLASS = 0.05  # of the pairs at the same distance, up to which a class may consist of suspects
FEWEST_FREE = 3  # pairs of a host that shared no link, from which the others are not needed
UNCERTAIN = frozenset({"ecmp", "adaptive"})  # routings in which nobody knows a message's way
LEAST_SHARE = 0.05  # of a pair's messages, that a link counts for
EXPECTED = np.array([1.05, 1.6, 2.1, 3.1, 4.1, 6.1, 8.1, 12.1, 16.1, 24.1])  # as STEPS, of flows to be expected
STEPS = np.array([2, 3, 4, 5, 7, 9, 13, 17, 25, 33])  # flows on the busiest link from which a pair is in the next class


MOST_CODES = 255  # they fit a byte


@dataclass(frozen=True)
class Classes:
    """Class codes of the pairs.

    Position of the scope in SCOPES, plus their number times the cables beyond the fewest of the scope, plus the
    number of all these times the load's step. Codes below the number of scopes are the nearest of each scope.
    """

    placement: Placement
    load: Loads | None = None  # (n, m) step of each cell; None: not known, or it does not matter
    beyond: Loads | None = None  # (S, S) cables beyond the fewest of the scope; None: not known, or the same for all
    stream: bool = False  # is a healthy pair as fast over many cables as over one?

    def informative(self, pairs: Pairs, offsets: Mapping[int, float], tolerance: float) -> Mask | None:
        """(n, m) cells that tell how fast their ends are; None: all.

        A stream that shares a link with others is as fast as its part of that link, and no end that can do as much is
        seen to be slow by it. Where sharing costs nothing (`offsets` are the classes' log times), or where too few
        others were measured, all do. Of streams far pairs are compared with near ones: all of them may share.
        """
        if self.load is None:
            return None
        costly = self._extra(offsets, everywhere=True) > tolerance
        if not costly.any():
            return None
        cheap = np.logical_not(costly).ravel()
        free = np.concatenate([cheap[self.of_rows(pairs, rows)] for rows in pairs.blocks()])
        each = np.count_nonzero(free & ~np.isnan(pairs.value), axis=1)
        return free if np.median(each) >= FEWEST_FREE else None

    def unshared(self, offsets: Mapping[int, float], tolerance: float) -> Mask | None:
        """(n, m) cells whose messages no other pair made late, None: all.

        They were alone on their links; or all were as fast as those at the same distance that were alone, or, where
        none was, as fast as any stream.
        """
        if self.load is None:
            return None
        times = self._times(offsets)
        usual = np.where(np.isnan(times[0]), self._fastest(times), times[0])
        return np.asarray(self.load == 0) if (times[1:] > usual + tolerance).any() else None

    def plausible(self, offsets: Mapping[int, float], counts: Mapping[int, int]) -> dict[int, float]:
        """The same log times, where a small class is no slower than a large one at the same distance that shared more.

        Suspects are measured again among few others: pairs that are sick may be most of their class.
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
        """Least and most time of pairs that shared a link, in that of pairs that did not; None: it costs nothing."""
        extra = self._extra(offsets) if self.load is not None else np.zeros(1)
        costly = extra[extra > tolerance]
        return (float(np.exp(costly.min())), float(np.exp(costly.max()))) if costly.size else None

    def _extra(self, offsets: Mapping[int, float], *, everywhere: bool = False) -> npt.NDArray[np.float64]:
        """(steps, kinds) log time of each class beyond the fastest at the same distance, 0 where there is none.

        `everywhere`: beyond the fastest at any distance, but for messages inside a host.
        """
        times = self._times(offsets)
        fastest = self._fastest(times) if everywhere else np.fmin.reduce(times, axis=0)
        beyond: npt.NDArray[np.float64] = np.nan_to_num(times - fastest)
        return beyond

    def _fastest(self, times: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """(kinds,) of streams the fastest class at any distance but inside a host, else that at the same distance."""
        fastest = np.fmin.reduce(times, axis=0)
        if self.stream:
            fabric = np.arange(self._kinds) % len(SCOPES) != SCOPES.index(Scope.INTRA_NODE)
            fastest[fabric] = np.fmin.reduce(fastest[fabric])
        return np.asarray(fastest, dtype=np.float64)

    def _times(self, offsets: Mapping[int, float]) -> npt.NDArray[np.float64]:
        """(steps, kinds) log time of each class, NaN where there is none."""
        times = np.full((len(STEPS) + 1, self._kinds), np.nan)
        for code, time in offsets.items():
            times[divmod(code, self._kinds)] = time
        return times

    @property
    def _kinds(self) -> int:
        """Scopes times distances."""
        most = 0 if self.beyond is None else int(self.beyond.max(initial=0))
        return len(SCOPES) * (1 + min(most, self._farthest))

    @property
    def _farthest(self) -> int:
        """Most cables beyond the fewest that there are codes for; what is farther counts as that."""
        return MOST_CODES // (len(SCOPES) * (1 if self.load is None else len(STEPS) + 1)) - 1

    @property
    def count(self) -> int:
        """How many codes there may be."""
        return self._kinds * (1 if self.load is None else len(STEPS) + 1)

    def of_rows(self, pairs: Pairs, rows: slice | Codes) -> npt.NDArray[np.uint8]:
        """(rows, m) class of each pair."""
        kinds = self._distances(np.arange(pairs.ranks)[rows][:, None], pairs.partners(rows))
        return kinds if self.load is None else kinds + np.uint8(self._kinds) * self.load[rows]

    def of_cells(self, pairs: Pairs, cells: Cells) -> npt.NDArray[np.uint8]:
        """(k,) class of each of these cells."""
        kinds = self._distances(cells[0], pairs.destination(cells))
        return kinds if self.load is None else kinds + np.uint8(self._kinds) * self.load[cells]

    def _distances(self, src: Codes, dst: Codes) -> npt.NDArray[np.uint8]:
        """Scope and distance of pairs of ranks, which broadcast against each other."""
        scopes = self.placement.scopes(src, dst)
        if self.beyond is None:
            return scopes
        steps: Loads = self._steps_beyond[self.placement.switch[src], self.placement.switch[dst]]
        return scopes + steps

    @cached_property
    def _steps_beyond(self) -> Loads:
        """(S + 1, S + 1) what the distance adds to a code; the last row and column are of switches nobody knows."""
        assert self.beyond is not None
        return np.pad(np.minimum(self.beyond, self._farthest) * np.uint8(len(SCOPES)), (0, 1)).astype(np.uint8)


def cables_beyond(placement: Placement, routes: Routes | None) -> Loads | None:
    """(S, S) cables between the run's switches, beyond the fewest of their scope.

    None where no cables are known, or where all ways of a scope are equally long.
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


def _cables(placement: Placement, routes: Routes) -> npt.NDArray[np.int8]:
    """(S, S) cables that messages cross: on a shortest way, or on that of forwarding tables; -1 where there is none."""
    size = len(placement.switches)
    code = routes.codes(placement.switches)
    apart = routes.distances(code)
    if routes.routing.kind == "tables" and size * size <= MOST_UNKNOWN:
        host = np.full(size, -1, dtype=np.int32)  # one that stands for those on the same switch
        host[placement.switch[placement.switch >= 0]] = placement.location[placement.switch >= 0]
        src, dst = (index.ravel() for index in np.indices((size, size)))
        told = np.count_nonzero(routes.hops(code[src], code[dst], host[dst]) >= 0, axis=1).reshape(apart.shape)
        apart = np.where(told > 0, told, apart).astype(np.int8)
    return apart


def loads(
    pairs: Pairs, message_paths: MessagePaths, concurrent: npt.NDArray[np.bool_], rounds: Codes | None
) -> Loads | None:
    """(n, m) how shared the busiest link of each pair was when it was measured.

    `concurrent` says of each column of a list whether its pairs were measured at once; `rounds` (n, n) gives the round
    of each cell of a matrix whose rounds were. The two directions of a pair take turns, all lower ranks first.
    """
    if (
        message_paths.routes is not None
        and message_paths.known_links
        and message_paths.routes.routing.kind in UNCERTAIN
    ):
        return _expected(pairs, message_paths, concurrent, rounds)
    if message_paths.routes is None or not message_paths.known_links:
        return _alone(pairs, concurrent)
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


def _alone(pairs: Pairs, concurrent: npt.NDArray[np.bool_]) -> Loads | None:
    """Where nobody knows who shares a link: pairs that were measured alone are not compared with the others."""
    if pairs.partner is None or concurrent.all() or not concurrent.any():
        return None
    return np.where(concurrent, np.uint8(len(STEPS)), np.uint8(0))[None, :].repeat(pairs.ranks, axis=0)


def _expected(pairs: Pairs, message_paths: MessagePaths, concurrent: Mask, rounds: Codes | None) -> Loads | None:
    """Where messages choose their way: steps of the flows to be expected on the busiest link of each pair.

    Pairs that were measured at once with ends that the topology does not know get the last step. Messages that take a
    detour go anywhere and back: they are spread evenly over all links.
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
        here = order[first:last]
        messages = np.bincount(inverse[here], minlength=unique.size)
        flows = flows_on_links(link, len(message_paths.routes.ends), share * messages[query])[0]
        busiest = flows_on_busiest(query[likely], flows[link[likely]], unique.size)
        busiest += np.where(busiest > 0, detours[inverse[here]].sum(), 0.0)
        load[row[here], column[here]] = np.searchsorted(EXPECTED, busiest[inverse[here]], side="right")
    return load if load.any() else None


def _turns(pairs: Pairs, concurrent: Mask, rounds: Codes | None) -> tuple[Cells, Codes]:
    """Cells that were measured at once with others, and a number that those have in common that were so together."""
    if pairs.partner is not None:
        row, column = np.nonzero((pairs.partner >= 0) & concurrent[None, :])
        return (row, column), turns(row, pairs.partner[row, column], column)
    if rounds is None:
        empty = np.empty(0, dtype=np.int64)
        return (empty, empty), empty
    row, column = np.nonzero(rounds >= 0)
    return (row, column), turns(row, column, rounds[row, column])


def _share(load: Loads, cells: Cells, turn: Turns, message_paths: MessagePaths, pairs: Pairs) -> None:
    """Write the steps of cells that were measured in one round, in the turns 0 and 1."""
    segments = message_paths.segments[message_paths.of_cells(pairs, cells)]
    unknown: Mask = np.asarray((segments >= message_paths.known_links).any(axis=1))
    segments[unknown] = -1
    cell, hop = np.nonzero(segments >= 0)
    link, when = segments[cell, hop], turn[cell]
    flows = flows_on_links(link, message_paths.known_links, turn=when, count=2)
    step = np.searchsorted(STEPS, flows_on_busiest(cell, flows[when, link], unknown.size), side="right")
    load[cells] = np.where(unknown, len(STEPS), step)  # no topology says what it shared
