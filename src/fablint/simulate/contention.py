"""How many flows share the links of a round."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fablint.simulate.faults import Condition, Floats
from fablint.simulate.message_costs import Cells, Nature
from fablint.simulate.simulated_fabric import Index


def loads(links: Index, cells: Cells, count: int, *, at_once: bool) -> Floats:
    """(k, H) flows on each link of each cell's way at the same time: in both directions where they run at once."""
    phase = _phase(cells, at_once=at_once)
    key = phase[:, None] * (count + 1) + links
    flows = np.bincount(key.ravel())
    return np.asarray(np.where(links < count, flows[key], 1).astype(np.float64))


def crowding(nature: Nature, condition: Condition, cells: Cells, *, at_once: bool) -> Floats:
    """(k,) time per byte that the links between switches leave to each cell, adaptive routing.

    A link is as crowded as the messages that cross it on shortest ways make it; those on detours are spread evenly.
    """
    cell, link, share = nature.exposure(cells)
    phase = _phase(cells, at_once=at_once)
    links, phases = nature.fabric.switch_links, int(phase.max(initial=0)) + 1
    load = np.bincount(phase[cell] * links + link, weights=share, minlength=phases * links).astype(np.float64)
    if nature.detour_share:
        out, back, row = nature.detours
        src, dst = (row[nature.port_switch[port]] for port in nature.ports(cells))
        hops = np.where(src != dst, out.sum(axis=1)[src] + back.sum(axis=1)[dst], 0.0)
        spread = np.bincount(phase, weights=hops, minlength=phases) * nature.detour_share / max(1, links)
        load += np.repeat(spread, links)
    per_byte = condition.per_byte * (condition.duplex if at_once else 1.0)
    place = condition.state[cells.round[cell]].astype(np.int64) * per_byte.shape[1] + link
    worst = np.zeros(cells.src.size)
    np.maximum.at(worst, cell, per_byte.ravel()[place] * load[phase[cell] * links + link])
    return worst


def _phase(cells: Cells, *, at_once: bool) -> npt.NDArray[np.int64]:
    """(k,) numbers from 0, the same for the cells that run at the same time: those of a round, and of one direction
    where one follows the other."""
    number = cells.round.astype(np.int64) - int(cells.round[0] if cells.round.size else 0)
    return number if at_once else 2 * number + (cells.src < cells.dst)
