"""Snapshots of hosts: taken on each host by one program, stored, and judged elsewhere or later."""

from __future__ import annotations

from fablint.snapshot.collecting import (
    CollectedSnapshots,
    command_to_collect,
    load_snapshots,
    read_answers,
    save_snapshots,
    snapshot_of,
    with_nics,
)
from fablint.snapshot.fabric_nics import adapters, fabric_nics, rails
from fablint.snapshot.host_facts import host_facts
from fablint.snapshot.host_snapshot import Output, Snapshot
from fablint.snapshot.nics import NicFact, nics_of

__all__ = [
    "CollectedSnapshots",
    "NicFact",
    "Output",
    "Snapshot",
    "adapters",
    "command_to_collect",
    "fabric_nics",
    "host_facts",
    "load_snapshots",
    "nics_of",
    "rails",
    "read_answers",
    "save_snapshots",
    "snapshot_of",
    "with_nics",
]
