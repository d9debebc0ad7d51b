"""Causes that explain several claims about a run: these are one finding, or none beside the one that explains them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fablint.model import Finding, State


@dataclass(frozen=True)
class CommonCause:
    """What explains some claims.

    Attributes
    ----------
    claims
        The claims that it explains.
    findings
        What is reported in their place; empty where another finding or a note says it.
    """

    claims: tuple[Finding, ...]
    findings: tuple[Finding, ...] = ()


def explained(claims: Iterable[Finding], causes: Iterable[CommonCause]) -> list[Finding]:
    """Return the findings: claims without a cause, and what the causes report."""
    causes = tuple(causes)
    without = {id(claim) for cause in causes for claim in cause.claims}
    return [
        *(claim for claim in claims if id(claim) not in without),
        *(finding for cause in causes for finding in cause.findings),
    ]


def proven_otherwise(claims: Sequence[Finding]) -> Iterator[CommonCause]:
    """Yield each `SUSPECT` about what another measurement of the same quantity shows to be a `FAULT`."""
    faults = {(claim.components, claim.quantity) for claim in claims if claim.state is State.FAULT}
    for claim in claims:
        if claim.state is State.SUSPECT and (claim.components, claim.quantity) in faults:
            yield CommonCause((claim,))
