"""Facts of a run: the attributes of the root group of a run directory. Names of fields are the keys there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from fablint.model.facts.failed_rank import FailedRank
from fablint.model.facts.json_objects import GROUP

RunState = Literal["measuring", "complete", "interrupted"]
CountersOfHosts = Mapping[str, Mapping[str, Mapping[str, int]]]  # by host, NIC and name


@dataclass(frozen=True)
class Mpi:
    """What the MPI library reports of itself; `init_s` is the duration of MPI_Init of each rank, s."""

    library: str = ""
    standard: str = ""
    thread_level: str = "single"
    init_s: Sequence[float] = ()


@dataclass(frozen=True)
class Instrument:
    """Properties of the instrument, s; None: not measured."""

    clock: str = ""
    resolution_s: float | None = None
    overhead_s: float | None = None
    empty_kernel_s: float | None = None
    barrier_skew_s: float | None = None
    clock_sync_s: float | None = None
    oversubscribed: bool = False  # some machine has more ranks than CPUs


@dataclass(frozen=True)
class Binding:
    """Binding of ranks to the CPUs next to their NICs; `notes` name the ranks that stayed on the launcher's CPUs."""

    ranks_per_nic: int = 0
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class HostNic:
    """A NIC of a host as sysfs shows it."""

    name: str
    kind: str = ""  # `cxi`, `infiniband`, `roce`, `ethernet`
    state: str = ""
    speed_mbps: int | None = None
    mtu: int | None = None
    numa: int | None = None
    physical: bool | None = None
    port_of: str = ""  # the bond, or of a virtual one the bridge, that it is a port of
    netdevs: Sequence[str] | None = None  # its network interfaces


@dataclass(frozen=True)
class PortCounters:
    """Port counters before and after a measurement; `after` is absent until its end."""

    before: CountersOfHosts | None = None
    after: CountersOfHosts | None = None


NOT_COUNTED = PortCounters()


@dataclass(frozen=True)
class ExcludedLine:
    """A line of an imported file that has no usable figures."""

    file: str
    line: int
    text: str
    why: str


@dataclass(frozen=True)
class Import:
    """Origin of a run that was imported from the output of another tool."""

    tool: str
    files: Sequence[str]
    lines_left_out: Sequence[ExcludedLine]
    missing: Sequence[str]  # why a file is incomplete
    not_judged: Sequence[str]  # why complete files allow no judgement of a host
    remedies: Sequence[str]  # what to give in their place
    launch: str  # `pair`: the program was started anew for every pair; else `all`


@dataclass(frozen=True)
class LaunchFacts:
    """Start of the ranks: program, command line, time, machine."""

    creator: str = ""  # program and version that wrote the run
    command: Sequence[str] = ()
    started: str = ""  # UTC, ISO 8601
    started_epoch_s: float | None = None  # the same; origin of all `started` cells
    mpi: Mpi | None = None  # None: the ranks were connected without MPI
    environment: Mapping[str, str] | None = None
    machines: int | None = None  # running kernels: fewer than hosts where hosts are containers of one machine
    binding: Binding = Binding()
    allocations: Sequence[Sequence[str]] = ()  # hosts of each job, the first is the host where it started
    shared_files: bool = True


@dataclass(frozen=True)
class RunFacts:
    """Facts of a run. Lists `rank_*` have a value for each rank, or none where it is not known."""

    state: RunState = "complete"
    rows: Sequence[str] = ()
    plan: Sequence[str] = ()  # complete plan lines of `rows`
    ranks: int = 0
    hosts: Sequence[str] = ()  # in order of their first rank
    rank_host: Sequence[int] = ()  # index into `hosts`
    rank_number: Sequence[int] = ()  # as imported files number the ranks, where each host begins with 0
    rank_cores: Sequence[str] = ()  # permitted CPUs: `0-3,8`
    rank_numa: Sequence[int] = ()
    rank_nic: Sequence[str] = ()
    rank_pid: Sequence[int] = ()
    rank_gpu: Sequence[str] = ()
    rank_gpu_model: Sequence[str] = ()
    rank_gpu_pci: Sequence[str] = ()
    nics: Mapping[str, Sequence[HostNic]] = field(default_factory=dict)
    counters: PortCounters = NOT_COUNTED
    instrument: Instrument = Instrument()
    lost: Sequence[FailedRank] = ()
    imported: Import | None = None
    simulated: Mapping[str, Any] | None = None  # settings of the simulation
    launch: LaunchFacts = field(default_factory=LaunchFacts, metadata=GROUP)
    format: int = 1
    source: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def nic_lists(self) -> tuple[Sequence[Sequence[HostNic]], Sequence[int]]:
        """Different lists of NICs, and which of them each of `hosts` has: hosts of a fleet share one list."""
        lists = {id(nics): nics for nics in self.nics.values()}
        code = {number: index for index, number in enumerate(lists)}
        return [*lists.values(), ()], [
            code[id(self.nics[host])] if host in self.nics else len(lists) for host in self.hosts
        ]

    @property
    def is_measured(self) -> bool:
        """True if ranks measured it on a fabric: it was neither simulated nor imported."""
        return self.simulated is None and self.imported is None
