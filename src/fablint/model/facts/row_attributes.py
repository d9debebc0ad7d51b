"""Facts of a row of a run: the attributes of a row group. Names of fields are the keys there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fablint.model.facts.json_objects import GROUP
from fablint.model.facts.run_attributes import NOT_COUNTED, PortCounters, RunState
from fablint.model.row import Medium


@dataclass(frozen=True)
class StoppingRule:
    """When the samples of a pair were enough; None: not a reason."""

    samples: int | None
    budget_s: float | None
    precision: float | None
    iterations: Sequence[int] | None  # per size


@dataclass(frozen=True)
class DamagedPayload:
    """A payload that arrived changed; `src` is -1 if several ranks contributed to it."""

    src: int
    dst: int
    size: int
    message: int | None = None
    offset: int | None = None


@dataclass(frozen=True)
class TcpSegments:
    """TCP segments between hosts; `pairs`: [from, to, sent, again, spurious], positions in `ends` and segments."""

    ends: Sequence[str]  # HOST/INTERFACE
    sent: Sequence[int]
    received: Sequence[int]
    pairs: Sequence[Sequence[int]]
    left_out: int
    knows_spurious: bool


@dataclass(frozen=True)
class CarrierFacts:
    """How the messages travelled, and where their bytes were. '' and None: no such option."""

    transport: str = Medium.transport
    memory: str = Medium.memory
    peer_memory: str = ""  # of the second half of the ranks, if it is another one
    gpu_path: str = ""  # `direct`, or `staged` through host memory
    device: str = ""
    streams: int | None = None
    ofi_provider: str = ""
    gid_index: int | None = None
    service_level: str = ""
    mtu: str = ""
    reconnect: int | None = None  # passes over the pattern that connections served; 0: all
    devices: Mapping[str, str] | None = None  # what the library has chosen, and the ranks that have it

    @property
    def medium(self) -> Medium:
        """Return how the bytes travelled, and where they were."""
        return Medium.of(vars(self))


@dataclass(frozen=True)
class ScheduleFacts:
    """Pairs of a row and the rounds that measure them."""

    pattern: str = ""
    order: str = ""  # `parallel`, `serial`, `unknown`
    layout: str = "matrix"  # or `list`
    directions: str = ""  # `both`, `single`, `one`
    rounds: int = 0
    cells_per_round: int | Sequence[int] = 0
    repeats: int = 1
    seed: int = 0
    servers: int | None = None
    aggressor: str = ""
    aggressors: Sequence[int] = ()  # ranks that generated traffic in the odd rounds
    retest_of: str = ""  # row whose slowest pairs this row measured again
    planned_pairs: str = ""  # of an imported row: `all`, `between hosts`
    pairs: int | None = None  # of an imported row: pairs behind one figure
    collective_ranks: int | None = None  # of an imported collective: ranks that take part in one

    @property
    def planned_cells(self) -> list[int]:
        """Number of cells of each round."""
        cells = self.cells_per_round
        return [cells] * self.rounds if isinstance(cells, int) else list(cells)


@dataclass(frozen=True)
class SamplingFacts:
    """How a cell was measured. '', None and (): the kernel has no such option."""

    windows: Sequence[int] = ()  # per size
    warmup: int = 0
    warmups: Sequence[int] = ()  # per size
    stop: StoppingRule = field(default_factory=lambda: StoppingRule(None, None, None, None))
    validate: bool = False
    buffers: str = ""
    barrier: str = ""
    mean: str = ""
    copy: str = ""
    win: str = ""
    sync: str = ""
    in_place: bool | None = None
    compute: str = ""
    tests: int | None = None
    batch: int | None = None
    workers: Sequence[int] = ()  # senders, receivers
    server_flight: int | None = None


@dataclass(frozen=True)
class ResultFacts:
    """What the measurement of a row took, and what went wrong in it."""

    measuring_s: float | None = None
    wall_s: float | None = None
    cpu_wait_s: Sequence[float | None] = ()  # per rank
    corrupt: Sequence[DamagedPayload] = ()
    counters: PortCounters = NOT_COUNTED
    tcp: TcpSegments | None = None


@dataclass(frozen=True)
class RowFacts:
    """Facts of a row."""

    kernel: str
    options: str = ""  # the complete plan line
    state: RunState = "complete"
    reason: str = ""  # of an imported row that is interrupted
    purpose: str = ""
    variant: str = ""  # of an imported row
    condition: str = ""  # of a part of a row that was measured under several
    quantity: str = ""
    payload: str = ""
    carrier: CarrierFacts = field(default_factory=CarrierFacts, metadata=GROUP)
    schedule: ScheduleFacts = field(default_factory=ScheduleFacts, metadata=GROUP)
    sampling: SamplingFacts = field(default_factory=SamplingFacts, metadata=GROUP)
    result: ResultFacts = field(default_factory=ResultFacts, metadata=GROUP)
    source: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
