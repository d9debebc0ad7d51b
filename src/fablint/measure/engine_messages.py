"""What the engine says on stderr, docs/reference/engine.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

PREFIX = "fablint-engine: "

_ROUND = re.compile(r"(?P<row>[^:]+): round (?P<round>\d+) of (?P<of>\d+)(?:, (?P<left>[\d.]+) s left)?")
_STUCK = re.compile(r"stuck: rank (?P<rank>\d+) \([^)]*\), round (?P<round>-?\d+): (?P<reason>.*)")
_ENDED = re.compile(r"ended: status (?P<status>\d)")
_LOST = re.compile(
    r"lost: rank (?P<rank>\d+) \((?P<host>[^)]*)\), round (?P<round>-?\d+), "
    r"partner (?P<partner>\d+|none): (?P<reason>.*)"
)


@dataclass(frozen=True)
class Started:
    """All ranks are there."""


@dataclass(frozen=True)
class RoundBegun:
    """A progress line: `round` of `of` of a row."""

    row: str
    round: int
    of: int
    left_s: float | None


@dataclass(frozen=True)
class Lost:
    """A rank that hung or died; None where it is not known. An entry of the run's attribute `lost`."""

    rank: int | None
    host: str | None
    round: int | None
    partner: int | None
    reason: str

    def entry(self) -> Mapping[str, int | str | None]:
        return asdict(self)

    def __str__(self) -> str:
        who = "a rank" if self.rank is None else f"rank {self.rank}"
        where = f" on {self.host}" if self.host else ""
        when = f" in round {self.round}" if self.round is not None else ""
        return f"{who}{where} {self.reason}{when}"


@dataclass(frozen=True)
class Stuck:
    """A rank of a group of many that waits, and does not know for whom."""

    rank: int
    round: int
    reason: str


@dataclass(frozen=True)
class Failed:
    """The one line that says why the engine stopped."""

    text: str


@dataclass(frozen=True)
class Ended:
    """The run is written, and only MPI_Finalize is left; the exit status that will be."""

    status: int


Message = Started | RoundBegun | Lost | Stuck | Failed | Ended


def parse(line: str) -> Message | None:
    """The message in a line; None when the line is somebody else's or says nothing that we use.

    Launchers put words of their own before a line, such as `[1,0]<stderr>:`.
    """
    _, marker, said = line.partition(PREFIX)
    if not marker:
        return None
    if found := _ROUND.fullmatch(said):
        left = found["left"]
        return RoundBegun(found["row"], int(found["round"]), int(found["of"]), float(left) if left else None)
    if found := _LOST.fullmatch(said):
        partner = None if found["partner"] == "none" else int(found["partner"])
        reason = f"was lost ({found['reason']})"
        return Lost(int(found["rank"]), found["host"], int(found["round"]), partner, reason)
    if found := _STUCK.fullmatch(said):
        return Stuck(int(found["rank"]), int(found["round"]), found["reason"])
    if found := _ENDED.fullmatch(said):
        return Ended(int(found["status"]))
    if said.startswith("started: "):
        return Started()
    if said.startswith("error: "):
        return Failed(said.removeprefix("error: "))
    return None
