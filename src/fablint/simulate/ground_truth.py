"""Ground truth of a simulated run: faulty components, their visibility in the measurements, and equivalent
components.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fablint.model import Row, Run
from fablint.simulate.faults import Fault
from fablint.simulate.messages.costs import ActualRouting
from fablint.simulate.messages.crossings import Crossings
from fablint.simulate.messages.times import AT_ONCE
from fablint.simulate.rounds import Partners, all_rounds, partners_of
from fablint.simulate.simulated_fabric import Fabric

FILE = "truth.json"
LONG = 64 << 10  # bytes from which lost bandwidth affects the time of a message
# largest full matrix that is searched for equivalent components: in a larger matrix there are none
MOST_PAIRS = 1 << 24


@dataclass(frozen=True)
class TrueFault:
    """One faulty component, as a finding should name it."""

    component: str
    name: str
    # of a host and components in series with it; the name of a directed link contains the direction
    direction: str | None
    kind: str
    effect: float | None  # relative change of the bandwidth, None if the bandwidth is not affected
    added_latency_s: float
    visible: bool  # whether any measurement is affected
    decidable: bool  # whether the direction is visible: whether it is in a one-way stream
    # components that the measurements cannot distinguish from it
    equivalents: Mapping[str, str | None] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """Entry of truth.json, where the equivalents have the key `class`."""
        facts = asdict(self)
        facts["class"] = dict(facts.pop("equivalents"))
        return facts


def truth_of(fabric: Fabric, actual: ActualRouting, faults: Sequence[Fault], run: Run) -> tuple[TrueFault, ...]:
    """Ground truth of `run`, measured on `fabric` with `faults`."""
    crossings = _crossings(actual, run) if faults else None
    return tuple(_true(fabric, fault, run, crossings) for fault in faults)


def write_truth(folder: Path, truth: Sequence[TrueFault]) -> None:
    """Write `truth.json` into a run directory."""
    facts = {"format": 1, "faults": [fault.facts() for fault in truth]}
    (folder / FILE).write_text(json.dumps(facts, indent=2) + "\n")


def read_truth(folder: Path) -> tuple[TrueFault, ...]:
    """Read the file of `write_truth`."""
    faults = json.loads((folder / FILE).read_text())["faults"]
    return tuple(
        TrueFault(**{"equivalents" if key == "class" else key: value for key, value in facts.items()})
        for facts in faults
    )


def _true(fabric: Fabric, fault: Fault, run: Run, crossings: Crossings | None) -> TrueFault:
    links = fault.links(fabric)
    name = fabric.cable_name(links[0]) if fault.component == "cable" else fault.name
    series = _series(fabric, fault, links)
    equivalents = dict(series)
    if crossings is not None and not fault.moved_to:
        equivalents.update(crossings.equivalents(crossings.of_links(links)))
    equivalents.pop(name, None)
    return TrueFault(
        component=fault.component,
        name=name,
        direction=fault.direction if series and fault.component != "link" else None,
        kind=fault.kind,
        effect=-fault.loss if fault.loss > 0 else None,
        added_latency_s=fault.added_latency_s,
        visible=any(_shows(fault, row) for row in run.rows),
        decidable=not fault.moved_to and any(row.kernel == "bandwidth" and _shows(fault, row) for row in run.rows),
        equivalents=equivalents,
    )


def _series(fabric: Fabric, fault: Fault, links: Sequence[int]) -> dict[str, str | None]:
    """Components of one host in series for all its traffic, with the direction.

    These are NIC and cable, and the host itself if it has only this NIC.
    """
    ports = {(link - fabric.switch_links) % fabric.ports for link in links}
    if fault.component == "switch" or min(links) < fabric.switch_links or len(ports) > 1:
        return {}
    port = ports.pop()
    down = max(links) >= fabric.down(0)
    direction = "both" if len(links) == 2 else "rx" if down else "tx"
    names = [fabric.nic_name(port), fabric.cable_name(links[0])]
    names += [fabric.hosts[port // fabric.rails]] if fabric.rails == 1 else []
    one_way: dict[str, str | None] = {fabric.link_name(links[0]): None} if len(links) == 1 else {}
    return dict.fromkeys(names, direction) | one_way


def _shows(fault: Fault, row: Row) -> bool:
    """Whether the fault affects a row."""
    if fault.moved_to:
        return True  # other paths
    rich = "histogram" in row.arrays or set(row.statistics) - {"median", "min"}
    if row.kernel in ("latency", "exchange") and (fault.added_latency_s or (fault.retry_share and rich)):
        return True
    factor = fault.bandwidth_factor * (fault.duplex_factor if row.kernel in AT_ONCE else 1.0)
    return factor < 1 and max(row.sizes) >= LONG


def _crossings(actual: ActualRouting, run: Run) -> Crossings | None:
    """Crossings of all measurements; None for so many measurements that no two components are equivalent."""
    tables = [_partners(row, run.ranks) for row in run.rows]
    if any(table is None for table in tables):
        return None
    unique = {table.tobytes(): table for table in tables if table is not None}
    partner = np.concatenate(list(unique.values()), axis=1)
    round_trips = all(row.kernel != "bandwidth" for row in run.rows)
    return Crossings.of(actual, partner, round_trips=round_trips)


def _partners(row: Row, ranks: int) -> Partners | None:
    if row.layout == "list":
        return np.asarray(row.arrays["dst"][:], dtype=np.int32)
    return partners_of(all_rounds(ranks), ranks) if ranks * ranks <= MOST_PAIRS else None
