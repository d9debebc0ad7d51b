"""Score of a verdict: findings compared with the ground truth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fablint.model import ComponentRef, Endpoint, Finding, State
from fablint.simulate.ground_truth import TrueFault
from fablint.text.units import percent

# The ends of a component: ordered for a link. Names of hosts and switches differ, so that the kind adds nothing.
_Site = tuple[Endpoint, ...] | frozenset[Endpoint]

NOT_SLOW = frozenset({"noise"})  # kinds that are not a fault: a finding on them is wrong


@dataclass(frozen=True)
class Score:
    """Counts of components.

    `exact`: faulty components that a FAULT finding names. `in_class`: faulty components of which a finding names an
    equivalent component, the same cable or another component of the same host. `missed`: no such finding, although the
    run shows the fault. `wrong`: components at FAULT that are not faulty. Directions are counted among the localised
    components whose direction is visible.
    """

    exact: int = 0
    in_class: int = 0
    wrong: int = 0
    missed: int = 0
    direction_right: int = 0
    direction_decidable: int = 0
    wrong_names: tuple[str, ...] = ()
    missed_names: tuple[str, ...] = ()

    def __add__(self, other: Score) -> Score:
        return Score(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


def score(findings: Iterable[Finding], truth: Sequence[TrueFault]) -> Score:
    """Compare findings with the ground truth.

    A finding is right about a faulty component if it names it, or an equivalent one, or has one of these among its
    alternatives. NIC and cable of a host with one NIC are equivalent to the host. A cable that is faulty in both
    directions may be named as cable or as its two links.
    """
    faults = [finding for finding in findings if finding.state is State.FAULT]
    faulty = [fault for fault in truth if fault.kind not in NOT_SLOW]
    total = Score()
    used: set[int] = set()
    for fault in faulty:
        matches = [(index, _match(finding, fault)) for index, finding in enumerate(faults)]
        right = [(faults[index], match) for index, match in matches if match]
        used.update(index for index, match in matches if match)
        if not right:
            total += Score(missed=int(fault.visible), missed_names=(_label(fault),) if fault.visible else ())
            continue
        matching = [finding for finding, _ in right]
        exact = any(match == "exact" for _, match in right) or _both_links(matching, fault)
        total += Score(exact=int(exact), in_class=int(not exact))
        if fault.decidable and fault.component.kind != "switch":
            total += Score(direction_decidable=1, direction_right=int(_direction_right(matching, fault)))
    wrong = [finding for index, finding in enumerate(faults) if index not in used]
    return total + Score(
        wrong=len(wrong), wrong_names=tuple(f"{finding.component} {finding.name}" for finding in wrong)
    )


def _match(finding: Finding, fault: TrueFault) -> str:
    """Match of a finding with a fault: `exact`, `class` or ''."""
    actual = _site(fault.component)
    named = _named(finding)
    if named == actual:
        return "exact"
    sites = [site for site in (named, *map(_member_site, finding.ambiguity_group)) if site]
    candidates = [actual, *map(_site, fault.equivalents)]
    is_equivalent = any(
        site == candidate or _same_cable(site, candidate) for site in sites for candidate in candidates if candidate
    )
    return "class" if is_equivalent else ""


def _site(component: ComponentRef) -> _Site | None:
    """Return the ends of a component; None for a port, one end of a cable, and for a component without ends."""
    if component.kind == "port" or component.title or component.count is not None or not component.ends:
        return None
    return component.ends if component.directed else frozenset(component.ends)


def _named(finding: Finding) -> _Site | None:
    """Return the ends of the component of a finding; None for several components."""
    return _site(finding.components[0]) if len(finding.components) == 1 else None


def _member_site(member: ComponentRef) -> _Site | None:
    """Return the ends of a member of an ambiguity group; the host for its NIC or cable without a name."""
    if member.direction is not None or member.kind == "port" or len(member.title.split()) > 1:
        return None
    return frozenset(member.ends[:1]) if member.title and member.ends else _site(member)


def _same_cable(a: _Site, b: _Site) -> bool:
    """Tell whether one is a cable and the other is one of its links."""
    return isinstance(a, tuple) != isinstance(b, tuple) and frozenset(a) == frozenset(b)


def _both_links(findings: Sequence[Finding], fault: TrueFault) -> bool:
    """Tell whether the findings name a cable as its two links."""
    ends = fault.component.ends
    is_cable = len(ends) == 2 and not fault.component.directed
    return is_cable and {ends, ends[::-1]} <= {_named(finding) for finding in findings}


def _direction_right(findings: Sequence[Finding], fault: TrueFault) -> bool:
    """Tell whether a finding names the direction, or a component that has only one direction."""
    if fault.component.kind == "cable" and fault.direction is None:
        cables = (finding for finding in findings if len(_named(finding) or ()) == 2)
        whole = any(not finding.components[0].directed and finding.direction in (None, "both") for finding in cables)
        return whole or _both_links(findings, fault)
    return any(_is_direction_right(finding, fault) for finding in findings)


def _is_direction_right(finding: Finding, fault: TrueFault) -> bool:
    named = _named(finding)
    directions = {_site(member): direction for member, direction in fault.equivalents.items()}
    if isinstance(named, tuple):
        return named == _site(fault.component) or named in directions
    is_exact = named == _site(fault.component)
    expected = fault.direction if is_exact else directions.get(named, fault.direction)
    return expected is not None and finding.direction == expected


def _label(fault: TrueFault) -> str:
    size = f"{percent(fault.effect)}" if fault.effect is not None else fault.kind
    return " ".join(filter(None, [fault.component.text, fault.direction, size]))
