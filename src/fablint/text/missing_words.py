"""Sentences about planned measurements that are missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fablint.model.names import fold


def _missing_of_end(v: Mapping[str, Any]) -> str:
    """`64 of 64 measurements from it are missing, 0 of 64 to it`."""
    subject = ("its hosts" if v["of_hosts"] else "it") if not v["several"] else "each of them"
    word, other = ("from", "to") if v["direction"] == "tx" else ("to", "from")
    outside = f" {other} hosts elsewhere" if v["outward"] else ""
    partners = f" (those {other} {fold(v['partners'])})" if v["partners"] else ""
    opposite = f", {v['opposite']:,} of {v['opposite_planned']:,} {other} {subject}" if v["opposite_planned"] else ""
    return (
        f"{v['missing']:,} of {v['planned']:,} measurements {word} {subject}{outside} are missing{partners}{opposite}"
    )


def _missing_between(v: Mapping[str, Any]) -> str:
    """`64 of 64 measurements from lf1 to lf6 are missing, 0 of 64 in the opposite direction`."""
    text = f"{v['missing']:,} of {v['planned']:,} measurements from {v['sender']} to {v['receiver']} are missing"
    if v["sender"] == v["receiver"] or not v["opposite_planned"]:
        return text
    return f"{text}, {v['opposite']:,} of {v['opposite_planned']:,} in the opposite direction"


# Entries of the table of evidence.
MISSING: Mapping[str, str | Callable[[Mapping[str, Any]], str]] = {
    "missing_of_end": _missing_of_end,
    "missing_between": _missing_between,
    "missing_scattered": "{missing:,} of {planned:,} measurements are missing; no host, NIC or pair of switches has"
    " them in common",
    "missing_unlocated": "{missing:,} of {planned:,} measurements are missing; the run does not record of which pairs",
}
