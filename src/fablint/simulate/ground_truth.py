"""The truth about a simulated run: what is sick, whether what was measured can show it, and what looks the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fablint.model import Row, Run
from fablint.simulate.faults import Fault
from fablint.simulate.messages.costs import Nature
from fablint.simulate.messages.crossings import Crossings
from fablint.simulate.messages.times import AT_ONCE
from fablint.simulate.rounds import Partners, all_rounds, partners_of
from fablint.simulate.simulated_fabric import Fabric

FILE = "truth.json"
LONG = 64 << 10  # bytes from which a lost bandwidth shows in the time of a message
MOST_PAIRS = 1 << 24  # of a full matrix whose classes are looked for: in a larger one no two parts look the same


@dataclass(frozen=True)
class TrueFault:
    """One sick part, as a finding should name it."""

    component: str
    name: str
    direction: str | None  # of a host and what is in series with it; a directed link has its in its name
    kind: str
    effect: float | None  # relative change of the bandwidth, None where it is not the bandwidth that suffers
    added_latency_s: float
    visible: bool  # does anything that was measured suffer from it?
    decidable: bool  # can the direction be seen: is it in a one-way stream?
    twins: Mapping[str, str | None] = field(default_factory=dict)  # parts that the measurements cannot tell from it

    def facts(self) -> dict[str, Any]:
        """As it stands in truth.json, where the twins are called `class`."""
        facts = asdict(self)
        facts["class"] = dict(facts.pop("twins"))
        return facts


def truth_of(fabric: Fabric, nature: Nature, faults: Sequence[Fault], run: Run) -> tuple[TrueFault, ...]:
    """The truth about `run`, measured on `fabric` with `faults` in it."""
    crossings = _crossings(nature, run) if faults else None
    return tuple(_true(fabric, fault, run, crossings) for fault in faults)


def write_truth(folder: Path, truth: Sequence[TrueFault]) -> None:
    """`truth.json` in a run directory."""
    facts = {"format": 1, "faults": [fault.facts() for fault in truth]}
    (folder / FILE).write_text(json.dumps(facts, indent=2) + "\n")


def read_truth(folder: Path) -> tuple[TrueFault, ...]:
    """What `write_truth` wrote."""
    faults = json.loads((folder / FILE).read_text())["faults"]
    return tuple(
        TrueFault(**{"twins" if key == "class" else key: value for key, value in facts.items()}) for facts in faults
    )


def _true(fabric: Fabric, fault: Fault, run: Run, crossings: Crossings | None) -> TrueFault:
    links = fault.links(fabric)
    name = fabric.cable_name(links[0]) if fault.component == "cable" else fault.name
    series = _series(fabric, fault, links)
    twins = dict(series)
    if crossings is not None and not fault.moved_to:
        twins.update(crossings.twins(crossings.of_links(links)))
    twins.pop(name, None)
    return TrueFault(
        component=fault.component,
        name=name,
        direction=fault.direction if series and fault.component != "link" else None,
        kind=fault.kind,
        effect=-fault.loss if fault.loss > 0 else None,
        added_latency_s=fault.added_latency_s,
        visible=any(_shows(fault, row) for row in run.rows),
        decidable=not fault.moved_to and any(row.kernel == "bandwidth" and _shows(fault, row) for row in run.rows),
        twins=twins,
    )


def _series(fabric: Fabric, fault: Fault, links: Sequence[int]) -> dict[str, str | None]:
    """Parts of one host that lie in series for all its traffic: NIC, cable, and the host itself if that is its only
    one; with the direction."""
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
    """Does a row suffer from the fault?"""
    if fault.moved_to:
        return True  # other ways
    rich = "histogram" in row.arrays or set(row.statistics) - {"median", "min"}
    if row.kernel in ("latency", "exchange") and (fault.added_latency_s or (fault.retry_share and rich)):
        return True
    factor = fault.bandwidth_factor * (fault.duplex_factor if row.kernel in AT_ONCE else 1.0)
    return factor < 1 and max(row.sizes) >= LONG


def _crossings(nature: Nature, run: Run) -> Crossings | None:
    """Of all that was measured; None where that is so much that no two parts can look the same."""
    tables = [_partners(row, run.ranks) for row in run.rows]
    if any(table is None for table in tables):
        return None
    unique = {table.tobytes(): table for table in tables if table is not None}
    partner = np.concatenate(list(unique.values()), axis=1)
    round_trips = all(row.kernel != "bandwidth" for row in run.rows)
    return Crossings.of(nature, partner, round_trips=round_trips)


def _partners(row: Row, ranks: int) -> Partners | None:
    if row.layout == "list":
        return np.asarray(row.arrays["dst"][:], dtype=np.int32)
    return partners_of(all_rounds(ranks), ranks) if ranks * ranks <= MOST_PAIRS else None
