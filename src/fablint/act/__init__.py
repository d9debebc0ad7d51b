"""What to do about it: drain commands, a list of hosts without suspects, the text of a ticket. Printed, never done."""

from __future__ import annotations

from fablint.act.drain import SCHEDULERS, Drain, DrainLimit, drain_command, drains, too_many, unheard
from fablint.act.host_findings import HostFindings, parse_source
from fablint.act.ticket import ticket_text

__all__ = [
    "SCHEDULERS",
    "Drain",
    "DrainLimit",
    "HostFindings",
    "drain_command",
    "drains",
    "parse_source",
    "ticket_text",
    "too_many",
    "unheard",
]
