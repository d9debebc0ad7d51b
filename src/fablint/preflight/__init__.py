"""Preflight: judge from snapshots whether every host is fit to be measured. Pure functions."""

from __future__ import annotations

from fablint.preflight.check_registry import CHECKS
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host, counters_of
from fablint.preflight.pair_reach import pair_reach
from fablint.preflight.pings.dead_paths import DeadPath, HostPair, explain_dead_pairs
from fablint.preflight.pings.host_cover import smallest_cover
from fablint.preflight.pings.mesh import FIRST, SECOND, lossy_pairs, offsets, repeats, table, unanswered
from fablint.preflight.runner import judge

__all__ = [
    "CHECKS",
    "FIRST",
    "SECOND",
    "DeadPath",
    "Fleet",
    "Host",
    "HostPair",
    "counters_of",
    "explain_dead_pairs",
    "judge",
    "lossy_pairs",
    "offsets",
    "pair_reach",
    "repeats",
    "smallest_cover",
    "table",
    "unanswered",
]
