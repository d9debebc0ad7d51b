"""Flows per link: number of messages in flight on each directed link at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fablint.model.arrays import Codes, Floats, Mask, RankPairs, Values
from fablint.topology.routed_placement import RoutedPlacement
from fablint.topology.routing import Routes

_FULL = 1e-9  # share of the rate of a NIC below which nothing is left of it


def turns(
    src: Codes,
    dst: Codes,
    number: Codes,
    *,
    at_once: bool = False,
) -> Codes:
    """(k,) turn of each message: messages of equal turn are in flight at the same time.

    Parameters
    ----------
    src, dst
        (k,) sender and receiver of each message.
    number
        (k,) round of each message.
    at_once
        Whether the two directions of a pair run at the same time. Otherwise the engine sends one after the other: the
        messages from lower ranks to higher ones of round r have turn 2 r + 1, the others 2 r.
    """
    rounds = number.astype(np.int64)
    return rounds if at_once else 2 * rounds + (src < dst)


def flows_on_links(
    link: Codes,
    links: int,
    share: Values | Floats | None = None,
    turn: Codes | None = None,
    count: int = 1,
) -> Floats:
    """(count, links) flows on each link in each turn.

    Parameters
    ----------
    link
        Flat: one entry for each link that a message may cross.
    links
        Number of links.
    share
        Probability that the message crosses the link; None: 1.
    turn
        Turn of the message, below `count`; None: all in one.
    """
    key = link if turn is None else turn * links + link
    return np.bincount(key, weights=share, minlength=count * links).astype(np.float64).reshape(count, links)


def flows_on_busiest(message: Codes, flows: Floats | Values, messages: int) -> Floats:
    """(messages,) largest of the values on the links that each message may cross; 0 for a message that crosses no link.

    Parameters
    ----------
    message
        Flat: one entry for each link that a message may cross.
    flows
        Flows on that link, or their cost.
    messages
        Number of messages.
    """
    busiest = np.zeros(messages)
    np.maximum.at(busiest, message, flows)
    return busiest


@dataclass(frozen=True)
class FairShares:
    """Max-min fair shares of messages that share the NICs at their ends."""

    flows: Floats  # (k,) inverse of the share: 2.0 for half of the rate of a NIC
    by_sender: Mask  # (k,) whether the NIC of the sender is full, and determines the share
    by_receiver: Mask


def fair_shares(ends: tuple[Codes, Codes], turn: Codes) -> FairShares:
    """Return the share of each message: those of a turn grow together, and each keeps its rate once a NIC is full.

    Parameters
    ----------
    ends
        (k,) number of the NIC that sends each message, and of the NIC that receives it.
    turn
        (k,) messages of equal turn are in flight at the same time.
    """
    turns_of, number = np.unique(turn, return_inverse=True)
    nics = max(int(end.max(initial=0)) for end in ends) + 1
    crossed = [(number * 2 + side) * nics + end for side, end in enumerate(ends)]
    size = turns_of.size * 2 * nics
    rate, room = np.zeros(turn.size), np.ones(size)
    growing, is_full = np.ones(turn.size, dtype=bool), np.zeros((2, turn.size), dtype=bool)
    while growing.any():
        load = sum((np.bincount(nic[growing], minlength=size) for nic in crossed), np.zeros(size))
        left = np.where(load > 0, room / np.maximum(load, 1), np.inf).reshape(turns_of.size, -1).min(axis=1)
        rate[growing] += left[number][growing]
        room -= load * np.repeat(np.where(np.isfinite(left), left, 0.0), 2 * nics)
        for side, nic in enumerate(crossed):
            is_full[side, growing] = room[nic[growing]] < _FULL
        growing &= ~is_full.any(axis=0)
    return FairShares(1.0 / rate, is_full[0], is_full[1])


def detour_links(routes: Routes) -> float:
    """Mean number of links on a detour: two shortest paths in series, with all detours equally likely."""
    if routes.routing.kind != "adaptive":
        return 0.0
    apart = routes.distances(np.arange(len(routes.switches), dtype=np.int32))
    return (1.0 - routes.routing.minimal_share) * 2.0 * float(apart[apart > 0].mean()) if (apart > 0).any() else 0.0


def link_flows(pairs: RankPairs, placement: RoutedPlacement) -> Values:
    """(2, links) messages on each directed link when all pairs send at once: one direction, then the other.

    A message whose path is not known counts on each link with the probability that it crosses the link.
    """
    links = len(placement.routes.ends) if placement.routes else 0
    flows = np.zeros((2, links), dtype=np.float32)
    for direction in (0, 1):
        _, link, share = placement.crossings_of_pairs(pairs, direction)
        flows[direction] = flows_on_links(link, links, share)[0]
    return flows


def most_flows(rounds: Sequence[RankPairs], placement: RoutedPlacement) -> list[float]:
    """Largest number of messages that cross one directed link at once, per round."""
    return [float(link_flows(pairs, placement).max(initial=0.0)) for pairs in rounds]
