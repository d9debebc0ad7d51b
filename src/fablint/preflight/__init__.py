"""Preflight: judge from snapshots whether every host is fit to be measured. Pure functions."""

from __future__ import annotations

from fablint.preflight.check_registry import CHECKS
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host, counters_of
from fablint.preflight.pings.mesh import FIRST, SECOND, lossy_pairs, offsets, repeats, table, unanswered
from fablint.preflight.runner import judge

__all__ = [
    "CHECKS",
    "FIRST",
    "SECOND",
    "Fleet",
    "Host",
    "counters_of",
    "judge",
    "lossy_pairs",
    "offsets",
    "repeats",
    "table",
    "unanswered",
]
