"""The words of fablint as types. Everything is frozen; stages take and return these and nothing else.

This module imports nothing of ours but `errors`, so that every stage can import it.
Seconds and bytes throughout; relative effects are fractions of the healthy figure (-0.2: 20 % less).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    import numpy as np

# ------------------------------------------------------------------------------------------------ fabric


@dataclass(frozen=True)
class Switch:
    """A switch and the group (dragonfly group, fat-tree pod) it belongs to."""

    name: str
    group: str = ""


@dataclass(frozen=True)
class Cable:
    """A cable between two switches. It carries two directed links, `a>b` and `b>a`."""

    a: str
    b: str

    @property
    def name(self) -> str:
        return f"{self.a}={self.b}"


@dataclass(frozen=True)
class Routing:
    """How switches choose among the shortest paths.

    `shortest`: unknown, so that only a path without an alternative is known. `d-mod-k`: by the destination's
    position among the topology's hosts (fat trees). `tables`: by the forwarding tables. `ecmp`: a choice per pair that
    stays, but that nobody knows. `adaptive`: every message by itself; `minimal_share` of them take a shortest path.
    """

    kind: Literal["shortest", "d-mod-k", "tables", "ecmp", "adaptive"] = "shortest"
    minimal_share: float = 1.0
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # switch: {destination host: next switch}


@dataclass(frozen=True)
class Topology:
    """Which host hangs on which switch, and which cables join the switches.

    The cable between a host and its switch is implied and named `HOST=SWITCH`. A topology without cables
    still tells the scope of a pair; links between switches are then not judged one by one.
    """

    switches: Mapping[str, Switch]
    host_switch: Mapping[str, str]
    cables: tuple[Cable, ...] = ()
    source: str = ""
    routing: Routing = field(default_factory=Routing)
    nic_switch: Mapping[str, str] = field(default_factory=dict)  # "HOST/NIC": switch, where a host has several
    ports: Mapping[tuple[str, str], str] = field(default_factory=dict)  # (switch, what is at the other end): its port
    inferred: bool = False  # made from the times themselves: nobody declared it

    def group_of(self, host: str) -> str:
        """Group of a host; the switch's own name where no groups were declared."""
        switch = self.switches[self.host_switch[host]]
        return switch.group or switch.name


class Scope(StrEnum):
    """How far apart the two ends of a pair are."""

    INTRA_NODE = "intra-node"
    EDGE = "edge"  # same switch
    LOCAL = "local"  # same group
    GLOBAL = "global"  # between groups
    UNKNOWN = "unknown"  # between hosts, no topology given


# ------------------------------------------------------------------------------------------------ cluster


@dataclass(frozen=True)
class Allocation:
    """Hosts that may be measured, and how that is known."""

    hosts: tuple[str, ...]  # in the order in which they were given, each once
    source: str  # for people: `Slurm job 17`, `$PBS_NODEFILE`, `hosts.txt`
    scheduler: str = ""  # `slurm`, `pbs`; empty where there is none
    job: str = ""
    room: Mapping[str, int] = field(default_factory=dict)  # ranks that a host has room for, where it is known
    seconds_left: float | None = None  # till the job is ended; None where nobody says


@dataclass(frozen=True)
class HostState:
    """What the scheduler says about a host."""

    host: str
    state: Literal["idle", "busy", "drained", "down", "unknown"]
    reason: str = ""  # why it is drained or down, as the administrator wrote it


@dataclass(frozen=True)
class Answer:
    """What a program printed on a host, or why it printed nothing."""

    host: str
    output: str = ""
    error: str = ""  # one line; empty where the host answered


# ------------------------------------------------------------------------------------------------ plan


@dataclass(frozen=True)
class PlanRow:
    """One row: what the engine measures. `options` is the plan line, in the engine's grammar."""

    options: str
    rounds: int
    predicted_s: float
    threads: bool = False  # has MPI to be initialised for several threads?


@dataclass(frozen=True)
class Slots:
    """Ranks on a host."""

    host: str
    ranks: int


@dataclass(frozen=True)
class Plan:
    """Rows in the order in which they are measured, for `ranks` ranks.

    `slots` says which ranks sit where, the first ranks on the first host; empty where the launcher decides.
    """

    ranks: int
    rows: tuple[PlanRow, ...]
    slots: tuple[Slots, ...] = ()

    @property
    def text(self) -> str:
        """The plan file: one row per line."""
        return "".join(f"{row.options}\n" for row in self.rows)

    @property
    def predicted_s(self) -> float:
        return sum(row.predicted_s for row in self.rows)

    @property
    def crowd(self) -> int:
        """The most ranks that sit on one host; all of them where it is the launcher who decides."""
        hosts = {slot.host for slot in self.slots}
        return max((sum(slot.ranks for slot in self.slots if slot.host == host) for host in hosts), default=self.ranks)


# ------------------------------------------------------------------------------------------------ run


@dataclass(frozen=True)
class Observations:
    """One statistic of one size of one row, as a ragged matrix of directed pairs.

    `sent[i, c]` is the time in seconds of the pair (i -> partner[i, c]), NaN where it was not measured.
    In a full matrix `partner` is None and column c is destination rank c; in a sparse run column c is round c
    and every round is a matching (its pairs are measured in both directions).
    """

    row: str
    kernel: str
    size: int
    statistic: str
    sent: np.ndarray  # (n, m) float32
    partner: np.ndarray | None = None  # (n, m) int32, -1 where the rank was idle

    @property
    def received(self) -> np.ndarray:
        """(n, m): `received[j, c]` is the time of the pair (partner -> j)."""
        import numpy as np

        if self.partner is None:
            return self.sent.T
        idle = self.partner < 0
        rows = np.where(idle, 0, self.partner)
        return np.where(idle, np.nan, np.take_along_axis(self.sent, rows, axis=0)).astype(self.sent.dtype)


@dataclass(frozen=True)
class Row:
    """A row of a run: its attributes and arrays as docs/reference/run-format.md names them.

    The arrays are numpy arrays (a run made in memory) or Zarr arrays (a run directory, read when sliced).
    """

    name: str
    attributes: Mapping[str, Any]
    arrays: Mapping[str, Any]

    @property
    def kernel(self) -> str:
        return str(self.attributes["kernel"])

    @property
    def pattern(self) -> str:
        return str(self.attributes.get("pattern", ""))

    @property
    def quantity(self) -> Literal["latency", "bandwidth"]:
        """What the figure of a cell is called. Rows of old runs do not say; theirs follows from the kernel."""
        said = self.attributes.get("quantity") or ("bandwidth" if self.kernel.endswith("bandwidth") else "latency")
        return "bandwidth" if said == "bandwidth" else "latency"

    @property
    def payload(self) -> str:
        """Who sends the payload of a cell (src, dst): `src`, `dst`, `both` or `none`."""
        return str(self.attributes.get("payload") or ("src" if self.kernel == "bandwidth" else "both"))

    @property
    def directions(self) -> str:
        """Cells of a pair that were measured: `both`, `forward` (src < dst), `one` where the pattern has but one."""
        return str(self.attributes.get("directions") or "both")

    @property
    def of_the_whole(self) -> bool:
        """Does it tell of the network and not of its parts: its rate (`reach`), or its bottleneck (`bisection`)?"""
        return self.name.startswith(("reach-", "bisection-"))

    @property
    def layout(self) -> Literal["matrix", "list"]:
        return "list" if self.attributes["layout"] == "list" else "matrix"

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(int(size) for size in self.arrays["size"][:])

    @property
    def statistics(self) -> tuple[str, ...]:
        """The statistics of the time that were stored: `min median mean p99 max` or some of them."""
        return tuple(name.removeprefix("time_") for name in self.arrays if name.startswith("time_"))

    def observations(self, size: int, statistic: str = "median") -> Observations:
        """Times of all pairs at one size; the median over the repeats where there are several."""
        import numpy as np

        values = self.arrays[f"time_{statistic}"]
        index = self.sizes.index(size)
        if self.layout == "list":
            return Observations(self.name, self.kernel, size, statistic, values[:, :, index], self.arrays["dst"][:])
        if values.shape[0] == 1:
            sent = values[0, :, :, index]
        else:
            # The median of what was measured: NaN sorts last, and stays where nothing was.
            ordered = np.sort(values[:, :, :, index], axis=0)
            known = np.count_nonzero(~np.isnan(ordered), axis=0, keepdims=True)
            middle = (np.maximum(known - 1, 0) // 2, known // 2)
            sent = sum(np.take_along_axis(ordered, at, axis=0)[0] for at in middle) / 2
        return Observations(self.name, self.kernel, size, statistic, sent)


@dataclass(frozen=True)
class Run:
    """A run directory as the other stages see it: facts by value, arrays on demand."""

    path: Path | None  # None: made in memory
    attributes: Mapping[str, Any]  # of the root group, docs/reference/run-format.md
    rows: tuple[Row, ...]
    notes: Sequence[str] = ()  # what the reader had to mend; grows while arrays of a directory are read

    @property
    def state(self) -> str:
        return str(self.attributes["state"])

    @property
    def ranks(self) -> int:
        return int(self.attributes["ranks"])

    @property
    def hosts(self) -> Sequence[str]:
        return list(self.attributes["hosts"])

    @property
    def rank_host(self) -> Sequence[str]:
        """Host name of every rank."""
        hosts = self.hosts
        return [hosts[index] for index in self.attributes["rank_host"]]

    def row(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)


SCOPES = tuple(Scope)  # arrays hold the scope of a pair as an index into this


@dataclass(frozen=True)
class Placement:
    """Where every rank sits, as integers: all that is needed to tell the scope of a pair."""

    host: np.ndarray  # (n,) int32, index into the run's hosts
    switch: np.ndarray  # (n,) int32, index into `switches`; -1 where no topology tells
    group: np.ndarray  # (n,) int32, index into `groups`; -1 where no topology tells
    switches: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, run: Run, topology: Topology | None = None) -> Placement:
        """Placement of the ranks of a run. Hosts that the topology does not know get switch and group -1.

        A run's `h00.site.org` is also found as `h00`.
        """
        import numpy as np

        host = np.asarray(run.attributes["rank_host"], dtype=np.int32)
        known = [_attachment(full, topology) if topology else "" for full in run.hosts]
        at = [known[code] for code in host]
        if topology and topology.nic_switch:
            nics = run.attributes.get("rank_nic") or [""] * host.size
            at = [
                topology.nic_switch.get(f"{run.hosts[code].split('.')[0]}/{nic}")
                or topology.nic_switch.get(f"{run.hosts[code]}/{nic}", known[code])
                for code, nic in zip(host, nics, strict=True)
            ]
        switches = sorted(set(at) - {""})
        group_of = {name: topology.switches[name].group or name for name in switches} if topology else {}
        groups = sorted(set(group_of.values()))
        switch_index = {name: index for index, name in enumerate(switches)} | {"": -1}
        group_index = {name: index for index, name in enumerate(groups)}
        of_switch = np.array([group_index[group_of[name]] for name in switches] + [-1], dtype=np.int32)
        switch = np.array([switch_index[name] for name in at], dtype=np.int32)
        return cls(host, switch, of_switch[switch], tuple(switches), tuple(groups))

    def scopes(self, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
        """Scope of the pairs (src, dst), ranks that broadcast against each other: uint8 indices into `SCOPES`."""
        import numpy as np

        code = {scope: np.uint8(index) for index, scope in enumerate(SCOPES)}  # small codes: four times faster
        far = np.where(self.group[src] == self.group[dst], code[Scope.LOCAL], code[Scope.GLOBAL])
        near = np.where(self.switch[src] == self.switch[dst], code[Scope.EDGE], far)
        known = (self.switch[src] >= 0) & (self.switch[dst] >= 0)
        between = np.where(known, near, code[Scope.UNKNOWN])
        return np.where(self.host[src] == self.host[dst], code[Scope.INTRA_NODE], between)


def _attachment(host: str, topology: Topology) -> str:
    """The switch of a run's host, empty where the topology does not know it."""
    return topology.host_switch.get(host) or topology.host_switch.get(host.split(".")[0], "")


# ------------------------------------------------------------------------------------------------ verdict


class State(StrEnum):
    """What is known about a component."""

    FAULT = "FAULT"
    SUSPECT = "SUSPECT"  # worth a retest
    CONFOUNDED = "CONFOUNDED"  # something else explains it as well
    NOT_JUDGED = "NOT JUDGED"  # too little was measured
    OK = "OK"  # with an upper bound of the loss


Component = Literal["host", "nic", "cable", "link", "switch", "group", "route", "config"]
Direction = Literal["tx", "rx", "both"]
VerdictWord = Literal["pass", "fault", "incomplete"]


class Finding(BaseModel):
    """One statement about one component (or one folded set of them)."""

    model_config = ConfigDict(frozen=True)

    state: State
    component: Component
    name: str = Field(description="the part: `nid000231`, `s3>s5` (directed link), `s3=s5` (cable), `nid[001-064]`")
    direction: Direction | None = Field(default=None, description="which side is slow; null where it cannot be told")
    quantity: Literal["latency", "bandwidth"] | None = None
    effect: float | None = Field(
        default=None,
        description="relative change of the quantity: -0.2 is 20 % less bandwidth; "
        "for OK the largest loss that could hide",
    )
    interval: tuple[float, float] | None = Field(default=None, description="95 % interval of the effect")
    log10_odds: float | None = Field(
        default=None, description="how sure: decimal logarithm of the evidence against chance (e-value)"
    )
    evidence: str = Field(default="", description="what was seen, in one sentence with counts")
    alternatives: tuple[str, ...] = Field(default=(), description="parts that the evidence cannot tell from this one")
    next_step: str = ""


OF_HOSTS = ("host", "nic", "cable", "config")  # components that a finding about a single host names


def host_of(finding: Finding) -> str:
    """The host that a finding is about, empty where it is about several or none: a cable's first end is its host."""
    if finding.component not in OF_HOSTS:
        return ""
    return finding.name.split("=")[0].split(":")[0].split("/")[0].split(" ")[0]


class Coverage(BaseModel):
    """How much of the planned work was done."""

    model_config = ConfigDict(frozen=True)

    pairs_planned: int
    pairs_measured: int
    hosts: int
    hosts_judged: int
    links: int = 0
    links_judged: int = 0


class Verdict(BaseModel):
    """The answer. Its JSON form is `docs/reference/verdict.md`."""

    model_config = ConfigDict(frozen=True)

    format: int = 1
    verdict: VerdictWord
    exit_code: int
    findings: tuple[Finding, ...]
    coverage: Coverage
    notes: tuple[str, ...] = ()
    thresholds: tuple[dict[str, Any], ...] = Field(
        default=(), description="those of the site, beside what was measured"
    )


@dataclass(frozen=True)
class Fit:
    """The fitted model of one row and size: what a healthy pair takes, and what each part adds (log scale)."""

    row: str
    kernel: str
    size: int
    class_time: Mapping[Scope, float]  # seconds
    tx: np.ndarray  # (n,) log-effect of each rank as sender
    rx: np.ndarray  # (n,) as receiver
    noise: float  # robust standard deviation of what is left over, log scale


@dataclass(frozen=True)
class Question:
    """A part that more measuring would tell more about, and what to measure."""

    component: Component
    name: str
    pairs: np.ndarray  # (k, 2) int: sender and receiver ranks, the most telling first

    @property
    def open(self) -> bool:
        """Is there anything to measure?"""
        return len(self.pairs) > 0


@dataclass(frozen=True)
class Diagnosis:
    """Everything the report needs: the verdict, the fits, and the scope of every pair on demand."""

    verdict: Verdict
    fits: tuple[Fit, ...]
    topology: Topology | None = None
    settings: Mapping[str, float] = field(default_factory=dict)
    questions: tuple[Question, ...] = ()  # undecided parts
    retests: tuple[Question, ...] = ()  # parts that findings accuse
    routes: tuple[Question, ...] = ()  # pairs that were slow by themselves: the same once more
    distances: tuple[Question, ...] = ()  # ways whose streams were slow beside others: the same alone
    comparison: Any = None  # `thresholds.Comparison` where the site has thresholds
