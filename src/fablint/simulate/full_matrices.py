"""Fast simulation of full matrices: the cost of a path depends only on the first switch and on the receiver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fablint.model.arrays import Codes, Floats, Values
from fablint.simulate.faults import Condition
from fablint.simulate.messages.costs import MEMORY_BANDWIDTH, SOFTWARE_S, ActualRouting
from fablint.simulate.messages.times import AT_ONCE, MESSAGES, times
from fablint.simulate.rounds import schedule
from fablint.simulate.simulated_rows import SimulatedRow, started

ROW_BLOCK = 256  # ranks simulated at a time; affects the random numbers of a seed


def tabulable(actual: ActualRouting) -> bool:
    """Tell whether all messages from one switch to one port take the same path."""
    return actual.fabric.topology.routing.kind not in ("adaptive", "ecmp")


def matrix_arrays(
    actual: ActualRouting,
    condition: Condition,
    row: SimulatedRow,
    ranks: int,
    scatter: Callable[[Codes, Codes], Values],
) -> dict[str, Any]:
    """Arrays of a full matrix of medians; `scatter` returns the log-factors of (sources, destinations)."""
    table = _Table.of(actual, condition, both_directions=row.kernel in AT_ONCE)
    rounds, index = schedule(ranks), np.arange(ranks)
    time = np.empty((1, ranks, ranks, len(row.sizes)), dtype=np.float32)
    when = np.empty((1, ranks, ranks))
    for first in range(0, ranks, ROW_BLOCK):
        src, dst = np.ix_(index[first : first + ROW_BLOCK], index)
        number = rounds[first : first + ROW_BLOCK]
        factor = np.exp(scatter(src, dst))
        direct, back = table.costs(src, dst, condition.state[number]), None
        if row.kernel != "bandwidth":
            back = table.costs(dst, src, condition.state[number])
        for position, size in enumerate(row.sizes):
            time[0, first : first + ROW_BLOCK, :, position] = _times_of_cells(row, size, direct, back) * factor
        when[0, first : first + ROW_BLOCK] = started(row, src, dst, number, number)
    time[0, index, index] = when[0, index, index] = np.nan
    return {
        "time_median": time,
        "count": np.where(np.isnan(time), np.uint32(0), np.uint32(MESSAGES)),
        "started": when,
        "round": rounds[None],
        "size": np.array(row.sizes, dtype=np.int64),
    }


def _times_of_cells(
    row: SimulatedRow, size: int, direct: tuple[Floats, Floats], back: tuple[Floats, Floats] | None
) -> Floats | Values:
    """Times of cells; the costs of the reverse direction are a separate argument."""
    if back is None:
        return times(row.kernel, size, *direct, np.zeros(0, np.int64))
    delay, per_byte = (np.stack(values) for values in zip(direct, back, strict=True))
    return np.asarray(times(row.kernel, size, delay, per_byte, np.array([1, 0]))[0])


@dataclass(frozen=True)
class _Table:
    """Delay and time per byte between a switch and a port (or its switch), without the links of hosts."""

    actual: ActualRouting
    condition: Condition
    per_byte: Floats  # (states, links + 1) of each link, under the load of this row
    row: Codes  # (switches,)
    column: Codes  # (ports,)
    delays: Floats  # (states, rows, columns)
    rates: Floats

    @classmethod
    def of(cls, actual: ActualRouting, condition: Condition, *, both_directions: bool) -> _Table:
        leaves, first, place = np.unique(actual.port_switch, return_index=True, return_inverse=True)
        by_port = actual.fabric.topology.routing.kind in ("d-mod-k", "tables")
        ports = np.arange(actual.fabric.ports, dtype=np.int32) if by_port else first.astype(np.int32)
        hops = actual.hops(np.repeat(first.astype(np.int32), ports.size), np.tile(ports, leaves.size))
        links = np.where(hops < 0, actual.fabric.links, hops)
        per_byte = condition.per_byte * (condition.duplex if both_directions else 1.0)
        shape = (len(per_byte), leaves.size, ports.size)
        delays, rates = np.zeros(shape), np.zeros(shape)
        for hop in range(links.shape[1]):
            link = links[:, hop].reshape(shape[1:])
            delays += condition.latency[:, link]
            np.maximum(rates, per_byte[:, link], out=rates)
        row = np.full(len(actual.fabric.routes.switches), -1, dtype=np.int32)
        row[leaves] = np.arange(leaves.size)
        column = np.arange(actual.fabric.ports, dtype=np.int32) if by_port else place.astype(np.int32).ravel()
        return cls(actual, condition, per_byte, row, column, delays, rates)

    def costs(self, src: Codes, dst: Codes, state: Codes) -> tuple[Floats, Floats]:
        """Delay (s) and time per byte (s) of the cells (src, dst), which are broadcast against each other."""
        fabric, port_of = self.actual.fabric, self.actual.port_of_rank
        src_port, dst_port = port_of[src], port_of[dst]
        dst_port = dst_port - dst_port % fabric.rails + src_port % fabric.rails
        _, rows, columns = self.delays.shape
        place = (state.astype(np.int64) * rows + self.row[self.actual.port_switch[src_port]]) * columns
        place = place + self.column[dst_port]
        up, down = fabric.switch_links + src_port, fabric.switch_links + fabric.ports + dst_port
        latency, per_byte = self.condition.latency, self.per_byte
        if len(latency) == 1:  # one state: the links of hosts need no look-up per cell
            ends = latency[0][up] + latency[0][down], np.maximum(per_byte[0][up], per_byte[0][down])
        else:
            ends = (
                latency[state, up] + latency[state, down],
                np.maximum(per_byte[state, up], per_byte[state, down]),
            )
        is_local = src_port // fabric.rails == dst_port // fabric.rails
        delay = np.where(is_local, 0.0, self.delays.ravel()[place] + ends[0]) + SOFTWARE_S
        rate = np.where(is_local, 1 / MEMORY_BANDWIDTH, np.maximum(self.rates.ravel()[place], ends[1]))
        return delay, rate
