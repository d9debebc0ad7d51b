"""Options of the engine with which ranks join without MPI, and what is known of ranks that do not join."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from fablint.measure.engine_messages import WaitingRank
from fablint.model import Slots
from fablint.model.names import fold, unfold

IN_USE = r"--rendezvous \S+: .*Address already in use"  # message about the port
MISSING = re.compile(r"ranks? (?P<ranks>[\d,-]+) of \d+ did not join")
_PORTS = range(20000, 32768)  # below those that kernels choose
_REPORT_S = 5.0  # for the report of missing ranks, before the front end ends the launch
_REFUSED = "Connection refused"
# Since rank 0 first reported, after which an attempt is conclusive: refused ones are repeated many times per second,
# but a launcher may deliver the report of an attempt before rank 0 listened late; others last longer than one attempt.
_REFUSED_S, _UNANSWERED_S = 1.5, 12.0
_GATHER_S = 1.0  # for the reports of other ranks with the same failure


def join_options(place: str, ranks: int, limit_s: float) -> list[str]:
    """Options of the engine with which `ranks` ranks join at `place` (HOST:PORT) in a launch of `limit_s` seconds."""
    join_limit = f"{max(_REPORT_S, limit_s - _REPORT_S):g}"
    return ["--rendezvous", place, "--ranks", str(ranks), "--join-limit", join_limit]


def rendezvous_port() -> int:
    """Port at which rank 0 listens on another host, where a free one cannot be reserved."""
    return random.SystemRandom().choice(_PORTS)


def name_missing(message: str, slots: Sequence[Slots]) -> str:
    """Message of the engine about ranks that did not join, with their hosts; any other message as it is."""
    match = MISSING.search(message)
    if match is None:
        return message
    rank_host = dict(enumerate(slot.host for slot in slots for _ in range(slot.ranks)))
    hosts = dict.fromkeys(filter(None, (rank_host.get(int(rank)) for rank in unfold(f"[{match['ranks']}]"))))
    return f"{message} (on {fold(list(hosts))})" if hosts else message


@dataclass
class Joining:
    """Ranks that wait at a start without MPI, by their reports."""

    missing: str = ""  # last report of rank 0: the ranks that have not joined
    _listening_at: float | None = None  # when rank 0 first reported
    _failed_at: float | None = None
    _unreached: dict[int, WaitingRank] = field(default_factory=dict)  # ranks whose connection to rank 0 fails

    def take(self, report: WaitingRank, now: float) -> None:
        """Note what a rank waits for. A rank without a connection is judged only where rank 0 is known to listen."""
        if report.rank == 0:
            self.missing = report.reason
            self._listening_at = now if self._listening_at is None else self._listening_at
            return
        needed_s = _REFUSED_S if _REFUSED in report.reason else _UNANSWERED_S
        if self._listening_at is None or now < self._listening_at + needed_s:
            return
        self._unreached[report.rank] = report
        self._failed_at = now if self._failed_at is None else self._failed_at

    def failure(self, now: float) -> str:
        """Return why the start cannot succeed: the hosts whose connection to rank 0 fails; '' where none is known."""
        if self._failed_at is None or now < self._failed_at + _GATHER_S:
            return ""
        first = next(iter(self._unreached.values()))
        hosts = fold(list(dict.fromkeys(report.host for report in self._unreached.values())))
        return f"{hosts}: {first.reason}: allow TCP to the host of rank 0, or exclude {hosts}"
