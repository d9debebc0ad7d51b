"""Options of the engine with which ranks join without MPI, and messages about ranks that did not join."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from fablint.model import Slots
from fablint.model.names import fold, unfold

IN_USE = r"--rendezvous \S+: .*Address already in use"  # message about the port
_MISSING = re.compile(r"ranks? (?P<ranks>[\d,-]+) of \d+ did not join")
_PORTS = range(20000, 32768)  # below those that kernels choose
_REPORT_S = 5.0  # for the report of missing ranks, before the front end ends the launch


def join_options(place: str, ranks: int, limit_s: float) -> list[str]:
    """Options of the engine with which `ranks` ranks join at `place` (HOST:PORT) in a launch of `limit_s` seconds."""
    join_limit = f"{max(_REPORT_S, limit_s - _REPORT_S):g}"
    return ["--rendezvous", place, "--ranks", str(ranks), "--join-limit", join_limit]


def rendezvous_port() -> int:
    """Port at which rank 0 listens on another host, where a free one cannot be reserved."""
    return random.SystemRandom().choice(_PORTS)


def name_missing(message: str, slots: Sequence[Slots]) -> str:
    """Message of the engine about ranks that did not join, with their hosts; any other message as it is."""
    found = _MISSING.search(message)
    if found is None:
        return message
    rank_host = dict(enumerate(slot.host for slot in slots for _ in range(slot.ranks)))
    hosts = dict.fromkeys(filter(None, (rank_host.get(int(rank)) for rank in unfold(f"[{found['ranks']}]"))))
    return f"{message} (on {fold(list(hosts))})" if hosts else message
