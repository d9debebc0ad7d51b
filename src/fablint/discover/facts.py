"""What sources say about a fabric, each fact with its source. Nothing is decided here: `merge` does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum

from fablint.model import Finding, Routing
from fablint.snapshot.cable_speeds import Trained


class Told(StrEnum):
    """Who says it, the most trusted first: what was written for us, what the cables say, what was configured."""

    FILE = "file"
    LLDP = "LLDP"
    AMA = "AMA"
    STT = "STT"
    TEMPLATE = "fabric template"
    INFINIBAND = "InfiniBand"
    SLURM = "Slurm"
    PBS = "PBS"
    BLOCKS = "name blocks"


TRUST = {told: rank for rank, told in enumerate(Told)}


@dataclass(frozen=True)
class Attachment:
    """A host, or a NIC of it, hangs on a switch."""

    host: str
    switch: str
    source: Told
    nic: str = ""
    port: str = ""  # of the switch
    address: str = ""  # MAC of the switch's port

    @property
    def end(self) -> str:
        return f"{self.host}/{self.nic}" if self.nic else self.host


@dataclass(frozen=True)
class Wire:
    """A cable between two devices that are not hosts as far as the source can tell."""

    a: str
    b: str
    source: Told
    a_port: str = ""
    b_port: str = ""
    speed: float | None = None  # bytes/s, as ordered: what a cable trained to is in `Facts.trained`


@dataclass(frozen=True)
class SwitchFact:
    """A switch, its group, and another name by which sources know it (an algorithmic address, a GUID)."""

    name: str
    source: Told
    group: str = ""
    alias: str = ""


@dataclass(frozen=True)
class Forward:
    """A switch sends what is for a host out of a port, or, where the source says so, to a switch."""

    switch: str
    host: str
    port: str = ""
    onward: str = ""


@dataclass(frozen=True)
class Facts:
    """All that sources said so far."""

    attachments: tuple[Attachment, ...] = ()
    wires: tuple[Wire, ...] = ()
    switches: tuple[SwitchFact, ...] = ()
    forwards: tuple[Forward, ...] = ()
    trained: tuple[Trained, ...] = ()
    stations: frozenset[str] = frozenset()  # devices that say they are no switch
    routing: Routing | None = None  # as a file declares it
    findings: tuple[Finding, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.attachments or self.wires or self.switches or self.forwards or self.trained)


def gather(several: Iterable[Facts]) -> Facts:
    """All facts in one."""
    every = list(several)
    lists = {
        item.name: tuple(value for facts in every for value in getattr(facts, item.name))
        for item in fields(Facts)
        if item.name not in ("stations", "routing")
    }
    stations: frozenset[str] = frozenset().union(*(facts.stations for facts in every))
    routing = next((facts.routing for facts in every if facts.routing is not None), None)
    return Facts(stations=stations, routing=routing, **lists)


@dataclass(frozen=True)
class SourceReport:
    """What became of a source: what it told, or why it was not asked."""

    name: str  # `LLDP`, `ibnetdiscover`, `topo.yaml`
    told: Mapping[str, int] = field(default_factory=dict)  # `hosts`, `switches`, `cables`, `routes`: how many
    silent: str = ""  # why it told nothing


def report_on(name: str, facts: Facts) -> SourceReport:
    """How many hosts, switches and cables a source named."""
    switches = {fact.name for fact in facts.switches} | {place.switch for place in facts.attachments}
    counts = {
        "host": len({place.host for place in facts.attachments}),
        "switch": len(switches),
        "cable": len(facts.wires),
        "route": len(facts.forwards),
    }
    told = {what: count for what, count in counts.items() if count}
    return SourceReport(name, told, "" if told else "it names no host and no switch")
