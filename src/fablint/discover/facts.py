"""Facts about a fabric, each with its origin. `merge` decides between contradictory facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum

from fablint.model import Finding, Routing
from fablint.model.host_name import NicRef
from fablint.snapshot.cable_speeds import TrainedCable


class Origin(StrEnum):
    """Origin of a fact, the most trusted first: topology files, then reports over cables, then configurations."""

    FILE = "file"
    LLDP = "LLDP"
    AMA = "AMA"
    STT = "STT"
    TEMPLATE = "fabric template"
    INFINIBAND = "InfiniBand"
    SLURM = "Slurm"
    PBS = "PBS"
    BLOCKS = "name blocks"


TRUST = {origin: rank for rank, origin in enumerate(Origin)}


@dataclass(frozen=True)
class Attachment:
    """The switch that a host, or one of its NICs, is connected to."""

    host: str
    switch: str
    source: Origin
    nic: str = ""
    port: str = ""  # of the switch
    address: str = ""  # MAC of the switch's port

    @property
    def end(self) -> NicRef:
        """The NIC; the host if the source does not name the NIC."""
        return NicRef.of(self.host, self.nic)


@dataclass(frozen=True)
class Wire:
    """A cable between two devices that the source does not report as hosts."""

    a: str
    b: str
    source: Origin
    a_port: str = ""
    b_port: str = ""
    speed: float | None = None  # bytes/s, nominal; the rate that a cable trained to is in `Facts.trained`


@dataclass(frozen=True)
class SwitchFact:
    """A switch, its group, and another name by which sources know it (an algorithmic address, a GUID)."""

    name: str
    source: Origin
    group: str = ""
    alias: str = ""


@dataclass(frozen=True)
class Forward:
    """Entry of a forwarding table: the port for a host's messages, or the next switch if the source gives it."""

    switch: str
    host: str
    port: str = ""
    onward: str = ""


@dataclass(frozen=True)
class Facts:
    """All facts of one or several sources."""

    attachments: tuple[Attachment, ...] = ()
    wires: tuple[Wire, ...] = ()
    switches: tuple[SwitchFact, ...] = ()
    forwards: tuple[Forward, ...] = ()
    trained: tuple[TrainedCable, ...] = ()
    stations: frozenset[str] = frozenset()  # devices that report not to be a switch
    routing: Routing | None = None  # as a file declares it
    findings: tuple[Finding, ...] = ()


def gather(several: Iterable[Facts]) -> Facts:
    """Merge the facts of several sources into one object, without resolving contradictions."""
    sources = list(several)
    lists = {
        item.name: tuple(value for facts in sources for value in getattr(facts, item.name))
        for item in fields(Facts)
        if item.name not in ("stations", "routing")
    }
    stations: frozenset[str] = frozenset().union(*(facts.stations for facts in sources))
    routing = next((facts.routing for facts in sources if facts.routing is not None), None)
    return Facts(stations=stations, routing=routing, **lists)


@dataclass(frozen=True)
class SourceReport:
    """Report on a source: the number of reported items, or the reason why there are none."""

    name: str  # `LLDP`, `ibnetdiscover`, `topo.yaml`
    counts: Mapping[str, int] = field(default_factory=dict)  # of `host`, `switch`, `cable`, `route`
    silent: str = ""  # reason why nothing is reported


def report_on(name: str, facts: Facts) -> SourceReport:
    """Count the hosts, switches, cables and routes that a source reports."""
    switches = {fact.name for fact in facts.switches} | {place.switch for place in facts.attachments}
    counts = {
        "host": len({place.host for place in facts.attachments}),
        "switch": len(switches),
        "cable": len(facts.wires),
        "route": len(facts.forwards),
    }
    present = {item: count for item, count in counts.items() if count}
    return SourceReport(name, present, "" if present else "it names no host and no switch")
