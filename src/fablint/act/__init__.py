"""What to do about it: drain commands, hosts without suspects, the text of a ticket, a mail. Printed, never done."""

from __future__ import annotations

from fablint.act.drain import SCHEDULERS, Drain, DrainLimit, drain_command, drains, too_many, unheard
from fablint.act.host_findings import HostFindings, parse_source
from fablint.act.mail import Envelope, address_of, mail_text
from fablint.act.ticket import ticket_text

__all__ = [
    "SCHEDULERS",
    "Drain",
    "DrainLimit",
    "Envelope",
    "HostFindings",
    "address_of",
    "drain_command",
    "drains",
    "mail_text",
    "parse_source",
    "ticket_text",
    "too_many",
    "unheard",
]
