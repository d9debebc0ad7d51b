"""A mail about findings, as a message for `sendmail -t`. It is printed, never sent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import default as policy
from email.utils import format_datetime
from typing import NamedTuple

from fablint.act.host_findings import HostFindings
from fablint.act.ticket import counted, ticket_text
from fablint.errors import UsageError
from fablint.model.names import printable

_LETTERS = 120  # of a subject
_LONGEST_LINE = 998  # of a mail that is not encoded, RFC 5322
_WORDS = {"pass": "PASS", "fault": "FAULT", "incomplete": "INCOMPLETE", "local": "LOCAL OK"}


class Envelope(NamedTuple):
    """Headers of a mail that do not depend on its contents."""

    sender: Address
    recipient: Address
    moment: datetime


def address_of(text: str) -> Address:
    """Return an address. Raises UsageError where the text is none, so that no header can be added."""
    user, mark, domain = text.partition("@")
    if mark and user and domain and text.isascii() and text.isprintable() and not set(text) & set(' ,;:<>()[]"\\'):
        try:
            return Address(addr_spec=text)
        except ValueError:
            pass
    raise UsageError(f"--mail: '{printable(text[:80])}' is not an address", "write it as --mail operators@site.org")


def mail_text(source: HostFindings, label: str, commands: Sequence[str], envelope: Envelope) -> str:
    """Return the message: verdict and counts as subject; ticket and drain commands as text.

    Parameters
    ----------
    source
        What was found.
    label
        Where it was found: the run directory or file.
    commands
        Drain commands.
    envelope
        Sender, recipient and date.
    """
    verdict = _WORDS.get(source.verdict, "")
    subject = printable(f"fablint: {', '.join(filter(None, (verdict, counted(source))))} ({label})")
    message = EmailMessage(policy.clone(max_line_length=78))
    message["From"], message["To"] = envelope.sender, envelope.recipient
    message["Date"] = format_datetime(envelope.moment)
    message["Subject"] = subject if len(subject) <= _LETTERS else f"{subject[: _LETTERS - 3]}..."
    message["Auto-Submitted"] = "auto-generated"
    parts = [f"verdict    {verdict}" if verdict else "", f"source     {printable(label)}"]
    parts += [f"hosts      {len(source.hosts):,}"] if source.hosts is not None else []
    text = "\n".join([*filter(None, parts), "", ticket_text(source)])
    if commands:
        text += "\n".join(["", "to drain the hosts at fault:", *commands, ""])
    is_plain = text.isascii() and max(map(len, text.splitlines())) <= _LONGEST_LINE
    message.set_content(text, cte="7bit" if is_plain else "quoted-printable")
    return message.as_string()
