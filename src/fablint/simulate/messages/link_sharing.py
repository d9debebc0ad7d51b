"""Bandwidth of links that messages share in a round."""

from __future__ import annotations

import numpy as np

from fablint.model.arrays import Codes, Floats
from fablint.simulate.faults import Condition
from fablint.simulate.messages.costs import ActualRouting, Measurements
from fablint.topology.contention import flows_on_busiest, flows_on_links, turns


def path_flows(links: Codes, cells: Measurements, count: int, *, at_once: bool) -> Floats:
    """(k, H) flows on each link of each cell's path at the same time; both directions if they run at once."""
    turn = _turns(cells, at_once=at_once)
    turn_of_link = np.repeat(turn, links.shape[1])
    flows = flows_on_links(links.ravel(), count + 1, turn=turn_of_link, count=int(turn.max(initial=0)) + 1)
    return np.asarray(np.where(links < count, flows[turn[:, None], links], 1.0))


def contended_time(actual: ActualRouting, condition: Condition, cells: Measurements, *, at_once: bool) -> Floats:
    """Return the (k,) seconds per byte of each cell on shared links between switches, with adaptive routing.

    `at_once`: both directions of a pair are measured together.

    A link carries the messages that cross it on shortest paths; messages on detours are spread evenly over all links.
    """
    cell, link, share = actual.exposure(cells)
    turn = _turns(cells, at_once=at_once)
    links, count = actual.fabric.switch_links, int(turn.max(initial=0)) + 1
    flows = flows_on_links(link, links, share, turn[cell], count)
    if actual.detour_share:
        out, back, row = actual.detours
        src, dst = (row[actual.port_switch[port]] for port in actual.ports(cells))
        hops = np.where(src != dst, out.sum(axis=1)[src] + back.sum(axis=1)[dst], 0.0)
        flows += (np.bincount(turn, weights=hops, minlength=count) * actual.detour_share / max(1, links))[:, None]
    per_byte = condition.per_byte * (condition.duplex if at_once else 1.0)
    slowed = per_byte[condition.state[cells.round[cell]], link] * flows[turn[cell], link]
    return flows_on_busiest(cell, slowed, cells.src.size)


def _turns(cells: Measurements, *, at_once: bool) -> Codes:
    """(k,) numbers from 0, equal for the cells that run at the same time."""
    return turns(cells.src, cells.dst, cells.round - (cells.round[0] if cells.round.size else 0), at_once=at_once)
