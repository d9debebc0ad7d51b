"""Load of each pair: how many messages shared its links and NICs when it was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from fablint.analyse.observations.message_paths import MessagePaths
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.settings import SMALL_SHARE
from fablint.model import Placement
from fablint.model.arrays import Cells, Codes, Ints, Mask
from fablint.model.run import median_of_repeats
from fablint.topology.contention import detour_links, fair_shares, flows_on_busiest, flows_on_links, turns

UNCERTAIN = frozenset({"ecmp", "adaptive"})  # routings in which the path of a message is not known
EXPECTED = np.array([1.05, 1.6, 2.1, 3.1, 4.1, 6.1, 8.1, 12.1, 16.1, 24.1])  # as STEPS, for expected numbers of flows
# flows on the busiest link, or parts of the rate of a NIC, from which a pair is in the next class
_BETWEEN = (1.1, 1.3, 1.45, 1.55, 1.65, 1.8, 1.95, 2.1, 2.3, 2.45, 2.55, 2.75, 2.9, 3.1, 3.25, 3.4, 3.55, 3.7, 3.9)
STEPS = np.array([*_BETWEEN, 4.2, *range(5, 17), 18, 20, 22, 25, 29, 33])
ROUNDING = 1e-6  # of a computed number of flows


@dataclass(frozen=True)
class NicLoad:
    """Messages that share the NICs of their ranks."""

    step: Ints  # (n, m) step of load
    sender: Mask  # (n, m) cells whose rate the NIC of the sender determines
    receiver: Mask

    @classmethod
    def of_repeats(cls, repeats: Sequence[Self | None], rounds: Codes | None) -> Self | None:
        """Return the load of the median of repeats; an end determines the rate of a cell if it does so in each."""
        steps = median_of_loads([None if each is None else each.step for each in repeats], rounds)
        shared = [each for each in repeats if each is not None]
        if steps is None:
            return None
        return cls(
            steps, *(np.logical_and.reduce([vars(each)[end] for each in shared]) for end in ("sender", "receiver"))
        )


def nic_load(
    pairs: Pairs, placement: Placement, concurrent: Mask, rounds: Codes | None, *, at_once: bool = False
) -> NicLoad | None:
    """Return how shared the NICs of each pair were when it was measured; None if no NIC was shared, or if unknown.

    Parameters: as of `loads`.
    """
    if np.unique(placement.nic_or_host).size == placement.ranks:
        return None
    cells, turn = _turns(pairs, concurrent, rounds, at_once=at_once)
    to = pairs.destination(cells)
    between = placement.host[cells[0]] != placement.host[to]
    cells, to, turn = (cells[0][between], cells[1][between]), to[between], turn[between]
    shares = fair_shares((placement.nic_or_host[cells[0]], placement.nic_or_host[to]), turn)
    step = np.zeros(pairs.value.shape, dtype=np.uint8)
    step[cells] = np.searchsorted(STEPS, shares.flows + ROUNDING, side="right")
    by_sender, by_receiver = (np.ones(pairs.value.shape, dtype=bool) for _ in range(2))
    by_sender[cells], by_receiver[cells] = shares.by_sender, shares.by_receiver
    return NicLoad(step, by_sender, by_receiver) if step.any() else None


def median_of_loads(loads_of_repeats: Sequence[Ints | None], rounds: Codes | None) -> Ints | None:
    """Return the step of load of the median of the repeats, which stands for a cell; `rounds` as in `Flows`."""
    if rounds is None or len(rounds) == 1 or all(load is None for load in loads_of_repeats):
        return loads_of_repeats[0]
    steps = [np.zeros(rounds[0].shape, np.uint8) if load is None else load for load in loads_of_repeats]
    of_repeats = np.where(rounds >= 0, np.stack(steps), np.float32(np.nan))
    return np.asarray(np.nan_to_num(median_of_repeats(of_repeats)), dtype=np.uint8)


def loads(
    pairs: Pairs, message_paths: MessagePaths, concurrent: Mask, rounds: Codes | None, *, at_once: bool = False
) -> Ints | None:
    """Return the (n, m) step of load: how shared the busiest link of each pair was when the pair was measured.

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
    at_once
        Whether the messages of a round run at the same time, and the slower direction of a pair determines the time of
        both. Otherwise the two directions take turns.

    Returns
    -------
    Loads or None
        None if no link was shared, or if it is unknown.
    """
    load = _loads(pairs, message_paths, concurrent, rounds, at_once=at_once)
    return load if load is None or not at_once else np.maximum(load, _of_other_ends(pairs, load))


def never_shared(pairs: Pairs, message_paths: MessagePaths, concurrent: Mask, rounds: Codes | None) -> Mask:
    """Return the (n, m) cells across whose links no other message of their round went, in either direction.

    Pairs of a round run free: where one is delayed, its second message may meet the first ones of others. Parameters:
    as of `loads`, with the (k, n, n) `rounds` of all repeats.
    """
    isolated = np.ones(pairs.value.shape, dtype=bool)
    for of_repeat in (None,) if rounds is None else rounds:
        load = loads(pairs, message_paths, concurrent, of_repeat, at_once=True)
        isolated &= True if load is None else load == 0
    return isolated


def _of_other_ends(pairs: Pairs, values: Ints) -> Ints:
    """Return for each (n, m) cell the value of the message in the other direction."""
    if pairs.partner is None:
        return values.T
    return np.where(pairs.partner >= 0, np.take_along_axis(values, np.maximum(pairs.partner, 0), axis=0), 0)


def _loads(
    pairs: Pairs, message_paths: MessagePaths, concurrent: Mask, rounds: Codes | None, *, at_once: bool
) -> Ints | None:
    """Return the (n, m) step of load of each message by itself; see `loads`."""
    if (
        message_paths.routes is not None
        and message_paths.known_links
        and message_paths.routes.routing.kind in UNCERTAIN
    ):
        return _expected(pairs, message_paths, concurrent, rounds, at_once=at_once)
    if message_paths.routes is None or not message_paths.known_links:
        return _without_routes(pairs, concurrent)
    load = np.zeros(pairs.value.shape, dtype=np.uint8)
    if pairs.partner is not None:
        for column in np.flatnonzero(concurrent):
            row = np.flatnonzero(pairs.partner[:, column] >= 0)
            to = pairs.partner[row, column]
            turn = turns(row, to, np.zeros_like(row), at_once=at_once)
            _share(load, (row, np.full(row.size, column)), turn, message_paths, pairs)
        return load if load.any() else None
    if rounds is None:
        return None
    order = np.argsort(rounds, axis=None, kind="stable")
    starts = np.searchsorted(rounds.ravel()[order], np.arange(int(rounds.max(initial=-1)) + 2))
    for first, last in pairwise(starts.tolist()):
        at, to = np.divmod(order[first:last], pairs.ranks)
        _share(load, (at, to), turns(at, to, np.zeros_like(at), at_once=at_once), message_paths, pairs)
    return load if load.any() else None


def _without_routes(pairs: Pairs, concurrent: Mask) -> Ints | None:
    """Return two steps of load where shared links are unknown: pairs measured at once, and pairs measured one by
    one.
    """
    if pairs.partner is None or concurrent.all() or not concurrent.any():
        return None
    return np.where(concurrent, np.uint8(len(STEPS)), np.uint8(0))[None, :].repeat(pairs.ranks, axis=0)


def _expected(
    pairs: Pairs, message_paths: MessagePaths, concurrent: Mask, rounds: Codes | None, *, at_once: bool
) -> Ints | None:
    """Return the (n, m) step of the expected flows on the busiest link, where messages choose between several paths.

    Pairs that were measured at once with ends that the topology does not know get the last step. Messages on a detour
    are spread evenly over all links.
    """
    assert message_paths.routes is not None
    cells, turn = _turns(pairs, concurrent, rounds, at_once=at_once)
    load = np.zeros(pairs.value.shape, dtype=np.uint8)
    a, b = message_paths.switch[cells[0]], message_paths.switch[pairs.destination(cells)]
    has_switches = (a >= 0) & (b >= 0)
    load[cells[0][~has_switches], cells[1][~has_switches]] = len(STEPS)
    row, column, turn, a, b = (values[has_switches] for values in (*cells, turn, a, b))
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
    likely = share >= SMALL_SHARE
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


def _turns(pairs: Pairs, concurrent: Mask, rounds: Codes | None, *, at_once: bool) -> tuple[Cells, Codes]:
    """Return the cells that were measured at once with others, and a number that cells of one turn have in common."""
    if pairs.partner is not None:
        row, column = np.nonzero((pairs.partner >= 0) & concurrent[None, :])
        return (row, column), turns(row, pairs.partner[row, column], column, at_once=at_once)
    if rounds is None:
        empty = np.empty(0, dtype=np.int64)
        return (empty, empty), empty
    row, column = np.nonzero(rounds >= 0)
    return (row, column), turns(row, column, rounds[row, column], at_once=at_once)


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
