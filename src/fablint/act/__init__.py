"""What to do about it: drain commands, a list of hosts without suspects, the text of a ticket. Printed, never done."""

from __future__ import annotations

from fablint.act.drain import SCHEDULERS, Drain, drain_command, drains
from fablint.act.source import Source, parse_source
from fablint.act.ticket import ticket_text

__all__ = ["SCHEDULERS", "Drain", "Source", "drain_command", "drains", "parse_source", "ticket_text"]
