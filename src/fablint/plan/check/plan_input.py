"""What a check is to measure."""

from __future__ import annotations

from dataclasses import dataclass

from fablint.model import Medium, RowSpec, Slots, Topology
from fablint.plan.check.check_rows import ROWS
from fablint.topology.routed_placement import RoutedPlacement


@dataclass(frozen=True)
class PlanInput:
    """What a check is to measure: `slots` say where the ranks go, as many as there are on one host without them."""

    ranks: int
    slots: tuple[Slots, ...] = ()
    topology: Topology | None = None
    oversubscribed: bool = False
    full: bool = False
    budget_s: float | None = None
    seed: int = 1
    rows: tuple[RowSpec, ...] = ROWS  # measured in follow-ups
    media: tuple[Medium, ...] = (Medium(),)  # over each of which all rows are measured
    shared_cpus: bool = False  # hosts share CPUs, as containers of one machine do: small messages go pair by pair

    @property
    def rank_hosts(self) -> list[str]:
        """Host of each rank."""
        if not self.slots:
            return ["this host"] * self.ranks
        return [slot.host for slot in self.slots for _ in range(slot.ranks)]

    def placement(self) -> RoutedPlacement:
        """Return the placement of the ranks on the topology, with routes."""
        return RoutedPlacement.on_routes(self.rank_hosts, self.topology)
