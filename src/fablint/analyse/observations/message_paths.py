"""Paths that messages take between switches: all pairs whose messages cross the same links share one path.

A path is a row of segments. Segments are the directed links of the topology. If the links that a message crosses are
unknown (no cables declared, several shortest paths, adaptive routing), one segment stands for everything between the
two switches. Paths keep the evidence small: a matrix of n x n pairs has at most switches x hosts paths.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fablint.analyse.observations.pair_matrix import Pairs
from fablint.model import Placement
from fablint.model.arrays import Cells, Codes, Mask, Values
from fablint.model.figures.distinct_codes import distinct_codes
from fablint.model.figures.grouped_values import GroupedValues
from fablint.topology.routing import Routes, codes_of

MOST_UNKNOWN = 1 << 20  # most pairs of switches for which segments of unknown paths are kept
SORTED_VALUES = 1 << 21  # values of segments that are sorted at a time
BY_HOST = frozenset({"d-mod-k", "tables"})  # routings in which the path depends on the destination host


@dataclass(frozen=True)
class MessagePaths:
    """Paths of the pairs of one row. The last path has no segments: it belongs to pairs whose path is unknown."""

    routes: Routes | None
    segments: Codes  # (W, H) segments of each path, -1: none
    known_links: int  # segments below this number are directed links, the others stand for unknown paths
    count: int  # of segments
    switch: Codes  # (n,) code of each rank's switch, -1 unknown
    key: Codes  # (n,) code of the destination that decides on the path: its switch, or its host
    keys: int  # number of different values of `key`
    listed: Codes | None  # sorted codes of the paths; None: all possible codes
    cells: Codes | None  # (n, m) path of each cell of a list of rounds
    # (S,) position of each switch of the run among the switches of the routes
    codes: Codes = field(default_factory=lambda: np.empty(0, np.int32))

    @property
    def is_symmetric(self) -> bool:
        """True if the path back crosses the same cables."""
        return self.routes is None or self.routes.routing.kind not in BY_HOST

    def between(self, src: Codes, dst: Codes) -> Codes:
        """Return the path of each pair of ranks; `src` and `dst` are broadcast against each other."""
        code = self.switch[src] * self.keys + self.key[dst]
        last = self.segments.shape[0] - 1
        has_switches = (self.switch[src] >= 0) & (self.key[dst] >= 0)
        if self.listed is None:
            return np.where(has_switches, code, last).astype(np.int32)
        place = np.minimum(np.searchsorted(self.listed, code), max(0, self.listed.size - 1))
        is_listed = has_switches & (self.listed[place] == code) if self.listed.size else np.zeros_like(has_switches)
        return np.where(is_listed, place, last).astype(np.int32)

    def of_rows(self, pairs: Pairs, rows: slice | Codes) -> Codes:
        """Return the (rows, m) path of each cell of these rows."""
        if self.cells is not None:
            return self.cells[rows]
        return self.between(np.arange(pairs.ranks)[rows][:, None], pairs.partners(rows))

    def of_cells(self, pairs: Pairs, cells: Cells) -> Codes:
        """Return the (k,) path of each of these cells."""
        return self.between(cells[0], pairs.destination(cells)) if self.cells is None else self.cells[cells]

    def crossing(self, segments: Codes) -> Mask:
        """Return a (W,) mask of the paths that contain one of these segments."""
        crossing = np.zeros(len(self.segments), dtype=bool)
        if segments.size == 1:  # a fifth of the time of the table, and most components are one segment
            crossing[np.flatnonzero(self.segments.ravel() == segments[0]) // self.segments.shape[1]] = True
            return crossing
        is_wanted = np.zeros(self.count + 1, dtype=bool)
        is_wanted[segments] = True
        for hop in self.segments.T:  # several times as fast as any() over a short axis
            crossing |= is_wanted[hop]
        return crossing

    def cells_on(self, chosen: Mask) -> Cells:
        """Return the cells whose messages take one of the paths of a (W,) mask."""
        if self.cells is not None:
            row, column = np.nonzero(chosen[self.cells])
            return row, column
        table = chosen[:-1].reshape(-1, self.keys)
        rows = np.flatnonzero(np.append(table.any(axis=1), False)[self.switch])
        columns = np.flatnonzero(np.append(table.any(axis=0), False)[self.key])
        row, column = np.nonzero(table[self.switch[rows]][:, self.key[columns]])
        return rows[row], columns[column]

    @cached_property
    def possible(self) -> Codes:
        """(segments,) number of pairs of ranks that cross each segment if all pairs are measured; 0 if unknown."""
        if self.listed is not None:
            return np.full(self.count, 0, dtype=np.int64)
        sources = np.bincount(
            self.switch[self.switch >= 0], minlength=(self.segments.shape[0] - 1) // max(1, self.keys)
        )
        targets = np.bincount(self.key[self.key >= 0], minlength=self.keys)
        return self.totals(np.append(np.outer(sources, targets).ravel(), 0))

    def of_messages(self, pairs: Pairs, cells: Cells, *, bidirectional: bool) -> list[Codes]:
        """Return the (k,) path of each of these cells, and of bidirectional messages that of the path back."""
        back = [self.between(pairs.destination(cells), cells[0])] if bidirectional else []
        return [self.of_cells(pairs, cells), *back]

    def on_segments(self, pairs: Pairs, cells: Cells, values: Codes | None = None, *, bidirectional: bool) -> Codes:
        """Return the (segments,) sum of the values of cells over those whose messages cross each segment.

        Parameters
        ----------
        pairs
            A matrix or a list of rounds.
        cells
            (k,) cells.
        values
            (k,) values; None: the cells are counted.
        bidirectional
            Whether the messages cross the path back as well.
        """
        sums = np.zeros(len(self.segments), dtype=np.int64)
        for path in self.of_messages(pairs, cells, bidirectional=bidirectional) if self.count else ():
            sums += np.bincount(path, weights=values, minlength=sums.size).astype(np.int64)
        return self.totals(sums)

    def on_each(
        self, pairs: Pairs, cells: Cells, values: Values, *, bidirectional: bool
    ) -> Iterator[tuple[slice, GroupedValues]]:
        """Yield ranges of segments, and the values of the cells whose messages cross each segment of the range.

        Arguments are those of `on_segments`. The ranges limit the number of values that are sorted at a time.
        """
        paths = self.of_messages(pairs, cells, bidirectional=bidirectional)
        hops = [hop[path] for path in paths for hop in self.segments.T]
        step = -(-self.count * SORTED_VALUES // max(1, values.size * len(hops)))
        for first in range(0, self.count, step):
            last = min(first + step, self.count)
            chosen = [(hop >= first) & (hop < last) for hop in hops]
            segment = np.concatenate([hop[is_chosen] for hop, is_chosen in zip(hops, chosen, strict=True)])
            value = np.concatenate([values[is_chosen] for is_chosen in chosen])
            yield slice(first, last), GroupedValues.of(value, segment - first, last - first)

    def totals(self, values: Codes) -> Codes:
        """Return the (segments,) sum of (W,) values over the paths that contain each segment."""
        total, paths = np.zeros(self.count, dtype=np.int64), np.flatnonzero(values)
        for hop in self.segments.T:
            segment = hop[paths]
            used = segment >= 0
            total += np.bincount(segment[used], weights=values[paths[used]], minlength=self.count).astype(np.int64)
        return total


class SharedPaths:
    """Paths of the pairs of several rows and sizes: of equal pairs they are looked up once."""

    def __init__(self, placement: Placement, routes: Routes | None) -> None:
        self._placement, self._routes = placement, routes
        self._last: tuple[Codes | None, MessagePaths] | None = None

    def of(self, pairs: Pairs) -> MessagePaths:
        """Return the paths of the pairs of a row."""
        if self._last is None or not _are_equal(self._last[0], pairs.partner):
            self._last = pairs.partner, find_message_paths(pairs, self._placement, self._routes)
        return self._last[1]


def _are_equal(partners: Codes | None, others: Codes | None) -> bool:
    if partners is None or others is None:
        return partners is others
    return np.array_equal(partners, others)


def find_message_paths(pairs: Pairs, placement: Placement, routes: Routes | None) -> MessagePaths:
    """Return the paths of the pairs of a row.

    Parameters
    ----------
    pairs
        A matrix or a list of rounds.
    placement
        Switches of the ranks; without switches no path has segments.
    routes
        Links that messages cross; None if no cables are known.
    """
    switch = np.asarray(placement.switch, dtype=np.int64)
    size = len(placement.switches)
    if not size:
        return MessagePaths(
            None, np.full((1, 0), -1, np.int32), 0, 0, switch, switch, 1, np.zeros(0, np.int64), _nowhere(pairs)
        )
    by_host = routes is not None and routes.routing.kind in BY_HOST
    key = _endpoints(placement) if by_host else switch
    keys = int(key.max(initial=0)) + 1 if by_host else size
    if pairs.partner is None:
        listed, cells = None, None
        codes: Codes = np.arange(size * keys, dtype=np.int64)
    else:
        ranks = np.arange(pairs.ranks)[:, None]
        to = np.maximum(pairs.partner, 0)
        has_switches = (pairs.partner >= 0) & (switch[ranks] >= 0) & (key[to] >= 0)
        path_codes = np.where(has_switches, switch[ranks] * keys + key[to], -1)
        numbered, cell, _ = distinct_codes(path_codes.ravel() + 1)
        cells, codes = cell.reshape(path_codes.shape).astype(np.int32), numbered - 1
        if codes.size and codes[0] < 0:
            cells, codes = np.where(cells == 0, codes.size - 1, cells - 1).astype(np.int32), codes[1:]
        listed = codes
    segments, links, count = _segments(codes, key, keys, placement, routes)
    return MessagePaths(routes, segments, links, count, switch, key, keys, listed, cells, _codes(placement, routes))


def _codes(placement: Placement, routes: Routes | None) -> Codes:
    """Return the (S,) position of each switch of the run among the switches of the routes."""
    return codes_of(placement.switches, {name: index for index, name in enumerate(routes.switches)} if routes else {})


def _nowhere(pairs: Pairs) -> Codes | None:
    return None if pairs.partner is None else np.zeros(pairs.partner.shape, dtype=np.int32)


def _endpoints(placement: Placement) -> Codes:
    """Return the (n,) code of each rank's host and switch, -1: unknown. A host with several NICs has several
    switches.
    """
    has_switch = placement.switch >= 0
    pair = placement.host[has_switch].astype(np.int64) * len(placement.switches) + placement.switch[has_switch]
    codes = np.full(has_switch.size, -1, dtype=np.int64)
    codes[has_switch] = np.unique(pair, return_inverse=True)[1]
    return codes


def _segments(
    codes: Codes, key: Codes, keys: int, placement: Placement, routes: Routes | None
) -> tuple[Codes, int, int]:
    """Return the (W + 1, H) segments of the paths with these codes, the number of links, and the number of segments."""
    size = len(placement.switches)
    has_switch = key >= 0
    home, number = np.full(keys, -1, dtype=np.int64), np.full(keys, -1, dtype=np.int32)
    home[key[has_switch]], number[key[has_switch]] = (
        placement.switch[has_switch],
        placement.location[has_switch],
    )
    start, end, host = codes // keys, home[codes % keys], number[codes % keys]
    links = 0
    hops: Codes = np.full((codes.size, 0), -1, dtype=np.int32)
    if routes is not None:
        links = len(routes.ends)
        code = _codes(placement, routes)
        hops = routes.hops(code[start], np.where(end < 0, -1, code[end]), host)
    hops = hops if hops.shape[1] else np.full((codes.size, 1), -1, dtype=np.int32)
    unknown = (hops[:, 0] < 0) & (start != end) & (end >= 0)
    count = links
    if unknown.any() and size * size <= MOST_UNKNOWN:
        hops[unknown, 0] = links + start[unknown] * size + end[unknown]
        count = links + size * size
    return np.vstack([hops, np.full((1, hops.shape[1]), -1, dtype=np.int32)]), links, count
