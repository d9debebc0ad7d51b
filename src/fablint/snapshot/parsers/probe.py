"""Parser of the output of the speed probe: rates of memory copies and of a hash function."""

from __future__ import annotations

import json
from typing import NamedTuple

from fablint.text.sanitise import shortened


class ProbeSpeed(NamedTuple):
    """Result of a half-second probe on a host."""

    rate: float  # bytes/s
    spread: float  # of five time slices, relative to their median
    others: float  # CPUs used by other programs during the probe
    cores: int
    method: str  # copy or hash function and version of Python


def probe_speed(text: str, half: str) -> ProbeSpeed | None:
    """Parse a rate in the output of the probe; None if it is malformed."""
    try:
        said = json.loads(text)
        figures = said[half]
        rate, spread, others = (float(one) for one in (figures["rate"], figures["spread"], said["others"]))
        speed = ProbeSpeed(rate, spread, others, int(said["cores"]), shortened(str(said["with"]), 60))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    return speed if 0 < rate < 1e18 and 0 <= spread < 1e6 and 0 <= others < 1e6 and speed.cores > 0 else None
