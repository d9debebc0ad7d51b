"""What the InfiniBand sources share: their cables as facts."""

from __future__ import annotations

from collections.abc import Iterable

from fablint.discover.facts import Attachment, Facts, SwitchFact, Told, Wire
from fablint.snapshot.parsers.infiniband_tools import Joined, guid_alias, strung


def facts_of(joined: Iterable[Joined]) -> Facts:
    """Attachments, wires and what they run at. A cable that both ends tell is told once."""
    cables, names = strung(joined)
    return Facts(
        tuple(Attachment(one.b, one.a, Told.INFINIBAND, one.nic, one.a_port) for one in cables if one.to_host),
        tuple(Wire(one.a, one.b, Told.INFINIBAND, one.a_port, one.b_port) for one in cables if not one.to_host),
        tuple(SwitchFact(name, Told.INFINIBAND, alias=guid_alias(key)) for key, name in names.items()),
        trained=tuple(one.trained for one in cables if one.trained),
    )
