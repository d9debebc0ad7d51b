"""Counters that grow too much: while they are looked at, or since the last time."""

from __future__ import annotations

from fablint.preflight.counters import Delta
from fablint.preflight.host import Host


def excess(host: Host, path: str, *, now: int, since: int) -> Delta | None:
    """Growth that is too much: `now` within the snapshot's own window, `since` from the reading that was kept."""
    within = host.grown_now(path)
    if within and within.growth >= now:
        return within
    grown = within if host.before is None else host.grown(path)
    return grown if grown and grown.growth >= since else None
