"""The tables `[[suppress]]` of a site file: what both kinds have in common, and those of measured components.

A table with the key `check` suppresses results of preflight, one with the key `component` findings of measurements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, get_args

from fablint.errors import UsageError
from fablint.model.component import ComponentKind
from fablint.model.limits.known_faults import KnownFault
from fablint.model.names import expanded
from fablint.text.site_tables import entries, one_line, read_document, refuse_missing, refuse_unknown, short, shown
from fablint.text.suggestions import did_you_mean

COMPONENT = "component"  # the key of a table about a measured component
KEYS = (COMPONENT, "loss", "until", "reason")
NEEDED = (COMPONENT, "until", "reason")
_KINDS: Sequence[str] = get_args(ComponentKind)
_SHARE = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,6})?) ?%")


@dataclass(frozen=True)
class KnownFaults:
    """Known faults of a site file, divided by a day."""

    valid: Sequence[KnownFault] = ()
    expired: Sequence[KnownFault] = ()


def parse_known_faults(text: str, source: str, today: date) -> KnownFaults:
    """Return the suppressed components of a site file.

    Parameters
    ----------
    text
        The file, TOML.
    source
        Its name, for messages.
    today
        Suppressions that ended before are expired.

    Raises
    ------
    UsageError
        No TOML, an unknown or missing key, a component without a kind, a value of a wrong type.
    """
    tables = enumerate(entries(read_document(text, source), "suppress", source), 1)
    known_faults = [
        _known_fault(table, f"{source}: suppress {number}") for number, table in tables if COMPONENT in table
    ]
    return KnownFaults(
        [one for one in known_faults if one.until >= today], [one for one in known_faults if one.until < today]
    )


def _known_fault(table: Mapping[str, Any], where: str) -> KnownFault:
    refuse_unknown(table, KEYS, where)
    refuse_missing(table, NEEDED, where)
    component = one_line(table[COMPONENT], f"{where}: {COMPONENT}")
    label = f"{where} ({short(component)})"
    return KnownFault(
        frozenset(_names(component, f"{where}: {COMPONENT}")),
        last_day(table, where),
        reason_of(table, where),
        _loss(table["loss"], f"{where}: loss") if "loss" in table else None,
        label,
    )


def _names(component: str, where: str) -> Iterator[str]:
    """Yield the names of components: `host n[1-2]` as two; of other kinds the text is the name of one."""
    kind, _, label = component.partition(" ")
    if not label:
        raise UsageError(f"{where}: {shown(component)} has no type and name", 'write it as "host n003"')
    if kind not in _KINDS and " of " not in component:
        hint = did_you_mean(kind, _KINDS, "write the component as a finding does, such as host n003 or cable s2=s5")
        raise UsageError(f"{where}: {shown(kind)} is not a type of component", hint)
    if kind not in ("host", "switch"):
        yield component
        return
    try:
        yield from (f"{kind} {name}" for name in expanded(label))
    except ValueError as error:
        raise UsageError(f"{where}: {short(str(error), 120)}", f'write it as "{kind} n[1-8]"') from None


def _loss(value: Any, where: str) -> float:
    match = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or float(match[1]) <= 0:
        raise UsageError(f"{where}: {shown(value)} is not a share", 'write the largest known loss as "25%"')
    return float(match[1]) / 100


def reason_of(table: Mapping[str, Any], where: str) -> str:
    """Return the reason of a suppression. Raises UsageError."""
    reason = one_line(table["reason"], f"{where}: reason")
    if not reason:
        raise UsageError(f"{where}: reason is empty", "give the reason for later readers")
    return reason


def last_day(table: Mapping[str, Any], where: str) -> date:
    """Return the last day of a suppression: a date of TOML, or the same in quotes. Raises UsageError."""
    value = table["until"]
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        return date.fromisoformat(value)
    except (ValueError, TypeError):
        hint = "write the last day as 2026-12-31"
        raise UsageError(f"{where}: until: {shown(value)} is not a date", hint) from None
