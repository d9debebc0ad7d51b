"""Adapters without a node description of their own: named by the snapshots that have their node GUIDs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fablint.discover.facts import Attachment, Facts
from fablint.model import ComponentRef, Finding, State
from fablint.model.host_name import NicRef
from fablint.snapshot import Snapshot
from fablint.snapshot.cable_speeds import TrainedCable
from fablint.snapshot.host_snapshot import INFINIBAND
from fablint.snapshot.parsers.infiniband_tools import guid_alias, is_guid_alias
from fablint.text import evidence as seen


def with_names_of_snapshots(facts: Facts, snapshots: Mapping[str, Snapshot]) -> Facts:
    """Return the facts with host and device in place of the GUIDs of adapters; those that remain are a finding."""
    ends = dict(_adapters(snapshots))

    def place(attachment: Attachment) -> Attachment:
        end = ends.get(attachment.host)
        return replace(attachment, host=end.host, nic=end.device) if end else attachment

    def cable(trained_cable: TrainedCable) -> TrainedCable:
        return (
            replace(trained_cable, b=ends.get(NicRef(trained_cable.b).host, trained_cable.b))
            if trained_cable.to_host
            else trained_cable
        )

    places = tuple(map(place, facts.attachments))
    left = sorted({placed.host for placed in places if is_guid_alias(placed.host)})
    return replace(
        facts,
        attachments=places,
        trained=tuple(map(cable, facts.trained)),
        findings=(*facts.findings, *([_unnamed(left)] if left else [])),
    )


def _adapters(snapshots: Mapping[str, Snapshot]) -> Iterable[tuple[str, NicRef]]:
    for host, snapshot in snapshots.items():
        for device in snapshot.names(INFINIBAND):
            if text := snapshot.read(f"{INFINIBAND}/{device}/node_guid"):
                yield guid_alias(text.replace(":", "")), NicRef.of(host, device)


def _unnamed(adapters: list[str]) -> Finding:
    return Finding(
        state=State.NOT_JUDGED,
        components=(ComponentRef.of("config", adapters),),
        evidence=(seen.hosts_unnamed(len(adapters)),),
    )
