"""Messages of the engine on stderr, docs/reference/engine.md."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fablint.model.facts.failed_rank import FailedRank

PREFIX = "fablint-engine: "
_ANNOUNCED = '{"fablint-engine":'  # lines of --serve on stdout
_GOES_ON = (0, 1)  # status of a request after which the ranks wait for the next one

_ROUND = re.compile(r"(?P<row>[^:]+): round (?P<round>\d+) of (?P<of>\d+)(?:, (?P<left>[\d.]+) s left)?")
_SIZE = re.compile(r"(?P<row>[^:]+): size (?P<size>\d+) of (?P<of>\d+)")
_STALLED = re.compile(r"stalled: rank (?P<rank>\d+) \([^)]*\), round (?P<round>-?\d+): (?P<reason>.*)")
_ENDED = re.compile(r"ended: status (?P<status>\d)(?P<unwritten>, not all is written)?")
_WAITING = re.compile(r"waiting: rank (?P<rank>\d+) \((?P<host>[^)]*)\): (?P<reason>.*)")
_STARTED = re.compile(r"started: .*")
_ERROR = re.compile(r"error: (?P<text>.*)", re.DOTALL)
_UNCONNECTED = re.compile(r"unconnected: (?P<host>\S+): (?P<reason>.*)")
_UNANSWERED = re.compile(r"failed \((no message for|did not come to the next round for|no TCP connection) .*\)")
_FAILED = re.compile(
    r"failed: rank (?P<rank>\d+) \((?P<host>[^)]*)\), round (?P<round>-?\d+), "
    r"partner (?P<partner>\d+|none): (?P<reason>.*)"
)


@dataclass(frozen=True)
class StartMessage:
    """All ranks have started."""


@dataclass(frozen=True)
class RoundMessage:
    """A progress line: `round` of `of` of a row."""

    row: str
    round: int
    of: int
    left_s: float | None


@dataclass(frozen=True)
class SizeMessage:
    """A progress line of a row that is written by size: `size` of `of` sizes are in the run directory."""

    row: str
    size: int
    of: int


def failure_text(failed: Sequence[FailedRank], rank_host: Sequence[str] = ()) -> str:
    """Return why a run ended: the first failed rank and a rank that waited for it; both where only one of them reports.

    Parameters
    ----------
    failed
        Failed ranks, the likeliest first; at least one.
    rank_host
        Host of every rank; empty where it is not known.
    """
    first, *others = failed
    other_end = next((one for one in others if one.is_other_end(first)), None)
    if other_end:
        return first.with_other_end(other_end)
    if first.partner is None or first.partner >= len(rank_host):
        return str(first)
    if _UNANSWERED.fullmatch(first.reason) and all(one.rank != first.rank for one in others):
        return first.with_reporter(first.partner, rank_host[first.partner])
    return f"{first}, reported by rank {first.partner} on {rank_host[first.partner]}"


@dataclass(frozen=True)
class StalledRank:
    """A rank of a group of more than two that waits and does not know the late rank."""

    rank: int
    round: int
    reason: str


@dataclass(frozen=True)
class WaitingRank:
    """A rank that waits at a start without MPI: rank 0 for the others, each other rank for its connection to rank 0."""

    rank: int
    host: str
    reason: str


@dataclass(frozen=True)
class UnconnectedHost:
    """A host on which the MPI library of a rank requests a TCP connection in vain while the ranks start."""

    host: str
    reason: str


@dataclass(frozen=True)
class ErrorMessage:
    """The line with the reason why the engine stopped."""

    text: str


@dataclass(frozen=True)
class EndMessage:
    """What can be written is in the run, and only MPI_Finalize is left; with the future exit status."""

    status: int
    is_written: bool = True  # all that was measured is in the run


@dataclass(frozen=True)
class RequestEnd:
    """A request of `--serve` is done: all that it measured is in its run, and the ranks wait for the next one."""

    status: int
    is_written: bool = True


Message = (
    StartMessage
    | RequestEnd
    | RoundMessage
    | SizeMessage
    | FailedRank
    | StalledRank
    | WaitingRank
    | UnconnectedHost
    | ErrorMessage
    | EndMessage
)


def _round(match: re.Match[str]) -> Message:
    left_s = match["left"]
    return RoundMessage(match["row"], int(match["round"]), int(match["of"]), float(left_s) if left_s else None)


def _failed(match: re.Match[str]) -> Message:
    partner = None if match["partner"] == "none" else int(match["partner"])
    number = int(match["round"])  # -1: before the first
    reason = f"failed ({match['reason']})"
    return FailedRank(int(match["rank"]), match["host"], number if number >= 0 else None, partner, reason)


_LINES: Sequence[tuple[re.Pattern[str], Callable[[re.Match[str]], Message]]] = (
    (_ROUND, _round),
    (_SIZE, lambda match: SizeMessage(match["row"], int(match["size"]), int(match["of"]))),
    (_FAILED, _failed),
    (_STALLED, lambda match: StalledRank(int(match["rank"]), int(match["round"]), match["reason"])),
    (_WAITING, lambda match: WaitingRank(int(match["rank"]), match["host"], match["reason"])),
    (_UNCONNECTED, lambda match: UnconnectedHost(match["host"], match["reason"])),
    (_ENDED, lambda match: EndMessage(int(match["status"]), not match["unwritten"])),
    (_STARTED, lambda _: StartMessage()),
    (_ERROR, lambda match: ErrorMessage(match["text"])),
)


def parse(line: str) -> Message | None:
    """Message in a line; None for a line of another program or without a message used here.

    Launchers may put a prefix before a line, such as `[1,0]<stderr>:`.
    """
    _, marker, text = line.partition(PREFIX)
    if not marker:
        return _announcement(line)
    matches = ((pattern.fullmatch(text), message_of) for pattern, message_of in _LINES)
    return next((message_of(match) for match, message_of in matches if match), None)


def _announcement(line: str) -> Message | None:
    """Message in a line of JSON that an engine with `--serve` prints once its ranks have started; None for others."""
    _, marker, text = line.partition(_ANNOUNCED)
    if not marker:
        return None
    try:
        event = json.loads(marker + text)
        is_end = event["fablint-engine"] == "end" and event["status"] in _GOES_ON
        return RequestEnd(event["status"]) if is_end else StartMessage()
    except (ValueError, KeyError):
        return None
