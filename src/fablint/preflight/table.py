"""All checks, in the order in which they are told: what is nearest to the wire first."""

from __future__ import annotations

from fablint.preflight.check import Check
from fablint.preflight.checks import links

CHECKS: tuple[type[Check], ...] = (
    links.LinkUp,
    links.LinkMtu,
)
