"""Facts from the cables of InfiniBand sources."""

from __future__ import annotations

from collections.abc import Iterable

from fablint.discover.facts import Attachment, Facts, Origin, SwitchFact, Wire
from fablint.model import ComponentRef, Finding, State
from fablint.model.names import plain
from fablint.snapshot.parsers.infiniband_tools import (
    PortPair,
    guid_alias,
    name_cables,
    ports_with_several_cables,
)
from fablint.text import actions as advise, evidence as seen


def facts_of(joined: Iterable[PortPair]) -> Facts:
    """Return attachments, wires and trained rates. A cable that both ends report appears once."""
    pairs = list(joined)
    cables, names = name_cables(pairs)
    return Facts(
        tuple(
            Attachment(cable.b, cable.a, Origin.INFINIBAND, cable.nic, cable.a_port)
            for cable in cables
            if cable.to_host
        ),
        tuple(
            Wire(cable.a, cable.b, Origin.INFINIBAND, cable.a_port, cable.b_port)
            for cable in cables
            if not cable.to_host
        ),
        tuple(SwitchFact(name, Origin.INFINIBAND, alias=guid_alias(key)) for key, name in names.items()),
        trained=tuple(cable.trained for cable in cables if cable.trained),
        findings=tuple(_same_guids(pairs)),
    )


def _same_guids(pairs: Iterable[PortPair]) -> Iterable[Finding]:
    """Yield a finding for each port that is at the end of several cables."""
    for (guid, number), others in ports_with_several_cables(pairs).items():
        ends = tuple(sorted(f"{plain(other.description)} port {other.number}" for other in others))
        yield Finding(
            state=State.SUSPECT,
            components=(ComponentRef.of("config", guid_alias(guid)),),
            evidence=(seen.same_guid(number, guid, ends),),
            next_step=advise.correct_guid(),
        )
