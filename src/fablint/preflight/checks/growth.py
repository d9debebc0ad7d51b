"""Counters that grow too much: while they are looked at, or since the last time."""

from __future__ import annotations

from fablint.preflight.counters import Delta
from fablint.preflight.host import Host


def excess(host: Host, path: str, *, now: int, since: int) -> Delta | None:
    """Growth that is too much: `now` within the snapshot's own window, `since` from the reading that was kept."""
    within, from_kept = host.grown_now(path), host.grown(path)
    if within and within.growth >= now:
        return within
    return from_kept if from_kept and from_kept.growth >= since else None
