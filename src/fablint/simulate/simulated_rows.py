"""Rows of a simulated run and their facts, docs/reference/run-format.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fablint.model.arrays import Codes, Floats, Ints
from fablint.model.facts.row_attributes import (
    CarrierFacts,
    ResultFacts,
    RowFacts,
    SamplingFacts,
    ScheduleFacts,
    StoppingRule,
)
from fablint.model.facts.run_attributes import HostNic, Instrument, LaunchFacts, Mpi, PortCounters, RunFacts
from fablint.simulate.messages.times import AT_ONCE, MESSAGES, Kernel
from fablint.simulate.simulated_fabric import Fabric
from fablint.version import __version__

ROUND_S = 1e-3  # recorded duration of a pair, and of a round in which all pairs are measured at once
WINDOW = 64
STREAMS = frozenset({"bandwidth", "bibandwidth"})


@dataclass(frozen=True)
class SimulatedRow:
    """Measurement of every pair, in both directions.

    `histogram` stores every pair's messages in buckets; `statistics` are those of `min median mean p99 max` to store.
    `serial` measures one pair at a time, so that no pair shares a link with another.
    """

    kernel: Kernel
    sizes: tuple[int, ...]
    order: Literal["parallel", "serial"] = "parallel"
    histogram: bool = False
    statistics: tuple[str, ...] = ("median",)

    @property
    def simple(self) -> bool:
        """True if only the median is requested."""
        return not self.histogram and self.statistics == ("median",)


CHECK_ROWS = (SimulatedRow("latency", (8,)), SimulatedRow("bandwidth", (1 << 20,)))


def seconds_of(row: SimulatedRow, pairs: Codes) -> float:
    """Recorded duration of the rounds of a row; `pairs` (rounds,)."""
    return float(pairs.sum() if row.order == "serial" else pairs.size) * ROUND_S


def row_facts(row: SimulatedRow, layout: Literal["matrix", "list"], pairs: Codes, seed: int) -> RowFacts:
    """Facts of a row of `pairs` (rounds,) pairs in each round."""
    sizes, pattern = ",".join(map(str, row.sizes)), "all-pairs" if layout == "matrix" else "rounds"
    is_stream = row.kernel in STREAMS
    cells = (2 * pairs).tolist()
    words = [row.kernel, "--pattern", pattern, "--sizes", sizes, "--order", row.order, "--samples", str(MESSAGES)]
    words += ["--histogram"] if row.histogram else []
    return RowFacts(
        kernel=row.kernel,
        options=" ".join([*words, "--seed", str(seed), "--transport", "null"]),
        purpose="measure",
        quantity="bandwidth" if is_stream else "latency",
        payload="src" if row.kernel == "bandwidth" else "both",
        carrier=CarrierFacts(transport="null"),
        schedule=ScheduleFacts(
            pattern=pattern,
            order=row.order,
            layout=layout,
            directions="both",
            rounds=int(pairs.size),
            cells_per_round=cells[0] if len(set(cells)) == 1 else cells,
            seed=seed,
        ),
        sampling=SamplingFacts(
            windows=[WINDOW if is_stream else 1] * len(row.sizes),
            warmups=[0] * len(row.sizes),
            stop=StoppingRule(MESSAGES, None, None, None),
            buffers="distinct" if is_stream else "",
            barrier="start",
            mean="samples",
        ),
        result=ResultFacts(measuring_s=seconds_of(row, pairs), wall_s=seconds_of(row, pairs)),
    )


def started(row: SimulatedRow, src: Ints, dst: Ints, number: Ints, turn: Ints) -> Floats:
    """Start of each cell, s since the begin of the row.

    Parameters
    ----------
    row
        Parallel or serial.
    src, dst
        Ranks; the lower one leads first in even rounds, as in the engine.
    number
        Round of each cell.
    turn
        Position of the pair among all of the row; used for serial rows.
    """
    second = 0.0 if row.kernel in AT_ONCE else ((src < dst) != (number % 2 == 0)) / 2
    return np.asarray(((turn if row.order == "serial" else number) + second) * ROUND_S)


def run_facts(fabric: Fabric, names: list[str], ranks_per_host: int, truth: dict[str, Any]) -> RunFacts:
    """Facts of the run."""
    hosts, rails = len(fabric.hosts), fabric.rails
    ranks = hosts * ranks_per_host
    nics = [HostNic(name, kind="simulated", state="up", speed_mbps=200000, mtu=9000, numa=0) for name in fabric.nics]
    return RunFacts(
        rows=names,
        ranks=ranks,
        hosts=list(fabric.hosts),
        rank_host=np.repeat(np.arange(hosts), ranks_per_host).tolist(),
        rank_cores=[str(rank % ranks_per_host) for rank in range(ranks)],
        rank_numa=[0] * ranks,
        rank_nic=[fabric.nics[rank % ranks_per_host % rails] for rank in range(ranks)],
        rank_pid=[rank + 1 for rank in range(ranks)],
        nics=dict.fromkeys(fabric.hosts, nics),
        counters=PortCounters({}, {}),
        instrument=Instrument("simulated", 1e-9, 0.0, 0.0, 0.0, 0.0),
        simulated=truth,
        launch=LaunchFacts(
            creator=f"fablint {__version__}",
            command=["fablint", "simulate"],
            started="1970-01-01T00:00:00Z",
            started_epoch_s=0.0,
            mpi=Mpi("none (simulated)", "0.0"),
            environment={},
        ),
    )
