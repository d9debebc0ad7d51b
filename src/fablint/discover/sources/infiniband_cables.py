"""Facts from the cables of InfiniBand sources."""

from __future__ import annotations

from collections.abc import Iterable

from fablint.discover.facts import Attachment, Facts, Origin, SwitchFact, Wire
from fablint.snapshot.parsers.infiniband_tools import PortPair, guid_alias, name_cables


def facts_of(joined: Iterable[PortPair]) -> Facts:
    """Return attachments, wires and trained rates. A cable that both ends report appears once."""
    cables, names = name_cables(joined)
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
    )
