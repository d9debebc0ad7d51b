"""What is going to be measured, by which ranks on which hosts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from fablint.model.row import RowSpec


@dataclass(frozen=True)
class PlanRow:
    """A row, its number of rounds, and the seconds that it is expected to take."""

    spec: RowSpec
    rounds: int
    predicted_s: float


@dataclass(frozen=True)
class Slots:
    """Ranks on a host."""

    host: str
    ranks: int


@dataclass(frozen=True)
class PlannedLevel:
    """A level of a check: which rows of the run it is to have."""

    name: str
    rows: tuple[str, ...] | None = None  # None until its rounds are made; none in a level with a run of its own
    skipped: str | None = None  # why it cannot be measured

    def is_missing(self, started: Collection[str]) -> bool:
        """Tell whether it was to be measured, and one of its rows is not among the `started` ones."""
        return self.skipped is None and (self.rows is None or not set(self.rows) <= set(started))


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
        return "".join(f"{row.spec.text}\n" for row in self.rows)

    @property
    def predicted_s(self) -> float:
        """Predicted duration of all rows, seconds."""
        return sum(row.predicted_s for row in self.rows)

    @property
    def most_ranks_per_host(self) -> int:
        """Ranks of the host with the most; all ranks where the launcher decides where they run."""
        hosts = {slot.host for slot in self.slots}
        return max((sum(slot.ranks for slot in self.slots if slot.host == host) for host in hosts), default=self.ranks)
