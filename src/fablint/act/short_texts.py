"""Findings in few words."""

from __future__ import annotations

from fablint.model import Endpoint, Finding
from fablint.text import units
from fablint.text.evidence_sentences import sentences


def said_by(finding: Finding) -> tuple[str, str] | None:
    """The check of preflight that found it, and what that says; None where it was found otherwise."""
    first = next((one for one in finding.evidence if one.check), None)
    if first is None:
        return None
    words = sentences(one for one in finding.evidence if one is not first)
    return first.check, "; ".join(filter(None, (str(first.values["message"]), words)))


def check_of(finding: Finding) -> tuple[str, str]:
    """The check and what it says; of a measurement `fabric.host` and the loss, else the evidence."""
    loss_of = " ".join(filter(None, [finding.direction, loss(finding)])) if finding.effect is not None else ""
    return said_by(finding) or (f"fabric.{finding.component}", loss_of or sentences(finding.evidence))


def part_of(finding: Finding) -> str:
    """Return what of the host: `hsn0`, `to s3`; empty for the host itself."""
    first, *others = finding.components[0].ends or [Endpoint()]
    if others:
        return f"to {others[0].label}"
    return first.part or ("" if first.rank is None else str(first.rank))


def loss(finding: Finding) -> str:
    """`bandwidth -19 % [-20, -18]`; empty without a figure."""
    return units.effect(finding.effect, finding.interval, finding.quantity)
