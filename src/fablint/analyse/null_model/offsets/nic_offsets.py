"""Effects of the kinds of NICs on the times of pairs: by design, and not faults of their hosts or switches.

NICs that declare half the speed, or that are on another NUMA node than their ranks, are compared with NICs of their
kind. A declared speed explains no more than the ratio of the speeds: what a kind loses beyond it stays in the data. A
kind that makes up whole switches, and fewer than two of them, is not distinguishable from its switch: only a declared
speed explains its loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.settings import FEWEST_OF_CLASS, FEWEST_PEERS
from fablint.model import SCOPES, Placement
from fablint.model.arrays import Cells, Codes, Floats, Mask, Values
from fablint.model.facts.nic_kinds import NicKind
from fablint.model.figures.grouped_values import GroupedValues


@dataclass(frozen=True)
class NicOffsets:
    """Log-effects of the kinds of both NICs of a pair, relative to pairs of the most frequent kind."""

    placement: Placement
    kind: Codes  # (n,) kind of each rank; 0 also for kinds of few hosts
    offset: Values  # (scopes, kinds, kinds): of senders, of receivers

    def between(self, src: Codes, dst: Codes) -> Values:
        """Return the log-effect on each pair of ranks; `src` and `dst` are broadcast against each other."""
        return np.asarray(self.offset[self.placement.scopes(src, dst), self.kind[src], self.kind[dst]])

    def of_cells(self, pairs: Pairs, cells: Cells) -> Values:
        """Return the (k,) log-effect on each of these cells."""
        return self.between(cells[0], pairs.destination(cells))

    def shown_ends(self, pairs: Pairs, tolerance: float) -> tuple[Mask, Mask]:
        """Return the (n, m) cells of streams that show how fast the sender is, and the receiver.

        A stream is as fast as the slower of its NICs: the pair is slower than two NICs like the faster one.
        """
        each = np.diagonal(self.offset, axis1=1, axis2=2)  # (scopes, kinds)
        is_shown = [self.offset <= like + tolerance for like in (each[:, :, None], each[:, None, :])]
        shown: tuple[Mask, Mask] = (np.empty(pairs.value.shape, dtype=bool), np.empty(pairs.value.shape, dtype=bool))
        for rows in pairs.blocks():
            src, dst = np.arange(pairs.ranks)[rows][:, None], pairs.partners(rows)
            scope, kinds = self.placement.scopes(src, dst), (self.kind[src], self.kind[dst])
            for mask, table in zip(shown, is_shown, strict=True):
                mask[rows] = table[(scope, *kinds)]
        return shown

    def of_kinds(self) -> Floats:
        """Return the (kinds,) log-effect between two NICs of a kind: the median of the scopes that have one."""
        each = np.diagonal(self.offset, axis1=1, axis2=2)
        by_scope = np.where(each == 0, np.nan, each)
        return np.array([0.0 if np.isnan(values).all() else float(np.nanmedian(values)) for values in by_scope.T])


def fit_nic_offsets(pairs: Pairs, placement: Placement, *, is_stream: bool) -> NicOffsets | None:
    """Return the offsets of the kinds of NICs; None if all NICs are of one kind, or kinds do not differ.

    Parameters
    ----------
    pairs
        Log times.
    placement
        Hosts, switches and kinds of NICs of the ranks.
    is_stream
        Whether the declared speed of the slower NIC bounds the time of a pair.
    """
    kind = _frequent_kinds(placement)
    count = int(kind.max(initial=0)) + 1
    if count == 1:
        return None
    cells = pairs.sample_cells()
    to = pairs.destination(cells)
    value, scope = pairs.value[cells], placement.scopes(cells[0], to).astype(np.int64)
    between = placement.host[cells[0]] != placement.host[to]
    key = (scope * count + kind[cells[0]]) * count + kind[to]
    median = GroupedValues.of(value[between], key[between], len(SCOPES) * count**2).medians(FEWEST_OF_CLASS)
    of_kinds = median.reshape(len(SCOPES), count, count)
    measured = of_kinds - of_kinds[:, :1, :1]
    offset = np.zeros_like(measured)
    for a, b in product(range(count), repeat=2):
        low, high = _bounds(placement, kind, (a, b), is_stream=is_stream)
        offset[:, a, b] = np.clip(_of_all_scopes(measured[:, a, b]), low, high)
    return NicOffsets(placement, kind, offset.astype(np.float32)) if offset.any() else None


def subtract_nic_offsets(pairs: Pairs, offsets: NicOffsets | None) -> None:
    """Subtract the offsets from the log times, in place."""
    if offsets is not None:
        for rows in pairs.blocks():
            pairs.value[rows] -= offsets.between(np.arange(pairs.ranks)[rows][:, None], pairs.partners(rows))


def _frequent_kinds(placement: Placement) -> Codes:
    """Return the (n,) kind of each rank, kinds of fewer hosts than a mode needs as the most frequent one."""
    kind = placement.nic_kind.copy() if placement.nic_kind.size else np.zeros(placement.ranks, np.int64)
    for number in np.unique(kind):
        if np.unique(placement.host[kind == number]).size < FEWEST_PEERS:
            kind[kind == number] = 0
    return kind


def _of_all_scopes(measured: Floats) -> Floats:
    """Return the (scopes,) effects of a combination, where a scope has too few pairs that of the others."""
    is_measured = ~np.isnan(measured)
    return np.where(is_measured, measured, np.median(measured[is_measured]) if is_measured.any() else 0.0)


def _bounds(placement: Placement, kind: Codes, ends: tuple[int, int], *, is_stream: bool) -> tuple[float, float]:
    """Return the smallest and the largest log-effect that the design of two kinds explains."""
    usual, *both = (placement.nic_kinds[number] for number in (0, *ends))
    if not any(nic.is_far for nic in (usual, *both)) and is_stream:
        declared = _declared(usual, both)
        return min(declared, 0.0), max(declared, 0.0)
    is_explained = all(end == 0 or not _is_of_one_switch(placement, kind == end) for end in ends)
    return (-np.inf, np.inf) if is_explained else (0.0, 0.0)


def _declared(usual: NicKind, ends: list[NicKind]) -> float:
    """Return the log-effect of the slower of two declared speeds on a stream; 0 if a speed is not known."""
    speeds = [nic.speed_mbps for nic in (usual, *ends)]
    if not all(speeds):
        return 0.0
    rate, *of_ends = (float(speed or 0) for speed in speeds)
    return float(np.log(rate / min(of_ends)))


def _is_of_one_switch(placement: Placement, is_kind: Mask) -> bool:
    """Return whether the ranks of a kind make up one whole switch, and no more than that."""
    switches = np.unique(placement.switch[is_kind])
    return bool(switches.size == 1 and switches[0] >= 0 and is_kind[placement.switch == switches[0]].all())
