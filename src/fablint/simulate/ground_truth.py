"""Ground truth of a simulated run: faulty components, their visibility in the measurements, and equivalent
components.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

from fablint.model import ComponentRef, Direction, Row, Run
from fablint.model.arrays import Codes
from fablint.simulate.faults import Fault, Kind
from fablint.simulate.messages.costs import ActualRouting
from fablint.simulate.messages.crossings import Crossings
from fablint.simulate.messages.times import AT_ONCE
from fablint.simulate.rounds import all_rounds, partners_of
from fablint.simulate.simulated_fabric import Fabric

FILE = "truth.json"
LONG = 64 << 10  # bytes from which lost bandwidth affects the time of a message
# largest full matrix that is searched for equivalent components: in a larger matrix there are none
MOST_PAIRS = 1 << 24


class TrueFault(BaseModel):
    """One faulty component, as a finding should name it. Its JSON form is an entry of truth.json."""

    model_config = ConfigDict(frozen=True)

    component: ComponentRef
    direction: Direction | None  # of a host and components in series with it; a link is directed
    kind: Kind
    effect: float | None  # relative change of the bandwidth, None if the bandwidth is not affected
    added_latency_s: float
    visible: bool  # whether any measurement is affected
    decidable: bool  # whether the direction is visible: whether it is in a one-way stream
    # components that the measurements cannot distinguish from it, with their directions
    ambiguity_group: tuple[ComponentRef, ...] = ()

    @property
    def equivalents(self) -> Mapping[ComponentRef, Direction | None]:
        """The direction of each member of the ambiguity group, by the member without it."""
        return {member.model_copy(update={"direction": None}): member.direction for member in self.ambiguity_group}


def truth_of(fabric: Fabric, actual: ActualRouting, faults: Sequence[Fault], run: Run) -> tuple[TrueFault, ...]:
    """Return the ground truth of `run`, measured on `fabric` with `faults`: one entry per fault, in their order.

    Raises UsageError if the fabric does not have a faulty component.
    """
    crossings = _crossings(actual, run) if faults else None
    return tuple(_true(fabric, fault, run, crossings) for fault in faults)


def write_truth(folder: Path, truth: Sequence[TrueFault]) -> None:
    """Write `truth.json` into a run directory."""
    facts = {"format": 2, "faults": [fault.model_dump(mode="json") for fault in truth]}
    (folder / FILE).write_text(json.dumps(facts, indent=2) + "\n")


def read_truth(folder: Path) -> tuple[TrueFault, ...]:
    """Read the file of `write_truth`. Raises OSError without the file, ValueError for a file of another format."""
    return tuple(TrueFault.model_validate(facts) for facts in json.loads((folder / FILE).read_text())["faults"])


def _true(fabric: Fabric, fault: Fault, run: Run, crossings: Crossings | None) -> TrueFault:
    links = fault.links(fabric)
    component = fabric.cable_ref(links[0]) if fault.component.kind == "cable" else fault.component
    series = _series(fabric, fault, links)
    equivalents = dict(series)
    if crossings is not None and not fault.moved_to:
        equivalents.update(crossings.equivalents(crossings.of_links(links)))
    equivalents.pop(component, None)
    return TrueFault(
        component=component,
        direction=fault.direction if series and component.kind != "link" else None,
        kind=fault.kind,
        effect=-fault.loss if fault.loss > 0 else None,
        added_latency_s=fault.added_latency_s,
        visible=any(_shows(fault, row) for row in run.rows),
        decidable=not fault.moved_to and any(row.kernel == "bandwidth" and _shows(fault, row) for row in run.rows),
        ambiguity_group=tuple(
            member.model_copy(update={"direction": direction}) for member, direction in equivalents.items()
        ),
    )


def _series(fabric: Fabric, fault: Fault, links: Sequence[int]) -> dict[ComponentRef, Direction | None]:
    """Components of one host in series for all its traffic, with the direction.

    These are NIC and cable, and the host itself if it has only this NIC.
    """
    ports = {(link - fabric.switch_links) % fabric.ports for link in links}
    if fault.component.kind == "switch" or min(links) < fabric.switch_links or len(ports) > 1:
        return {}
    port = ports.pop()
    down = max(links) >= fabric.down(0)
    direction: Direction = "both" if len(links) == 2 else "rx" if down else "tx"
    components = [fabric.nic_ref(port), fabric.cable_ref(links[0])]
    components += [ComponentRef.of("host", fabric.hosts[port // fabric.rails])] if fabric.rails == 1 else []
    series: dict[ComponentRef, Direction | None] = dict.fromkeys(components, direction)
    return series | ({fabric.link_ref(links[0]): None} if len(links) == 1 else {})


def _shows(fault: Fault, row: Row) -> bool:
    """Tell whether the fault affects a row."""
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


def _partners(row: Row, ranks: int) -> Codes | None:
    if row.layout == "list":
        return np.asarray(row.arrays["dst"][:], dtype=np.int32)
    return partners_of(all_rounds(ranks), ranks) if ranks * ranks <= MOST_PAIRS else None
