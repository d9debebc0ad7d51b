"""Score of a verdict: findings compared with the ground truth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fablint.model import ComponentRef, Finding, State
from fablint.simulate.ground_truth import TrueFault

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
        if fault.decidable and fault.component != "switch":
            total += Score(direction_decidable=1, direction_right=int(_direction_right(matching, fault)))
    wrong = [finding for index, finding in enumerate(faults) if index not in used]
    return total + Score(
        wrong=len(wrong), wrong_names=tuple(f"{finding.component} {finding.name}" for finding in wrong)
    )


def _match(finding: Finding, fault: TrueFault) -> str:
    """Match of a finding with a fault: `exact`, `class` or ''."""
    if _are_equal(finding.name, fault.name):
        return "exact"
    named = [finding.name, *(name for name in map(_name_of, finding.ambiguity_group) if name)]
    is_equivalent = any(
        _are_equal(name, candidate) or _same_cable(name, candidate)
        for name in named
        for candidate in (fault.name, *fault.equivalents)
    )
    return "class" if is_equivalent else ""


def _name_of(member: ComponentRef) -> str:
    """Name of a member of an ambiguity group; the host for its NIC or cable; '' for a port, one end of a cable."""
    if member.kind == "port" or not member.ends or member.direction is not None or len(member.title.split()) > 1:
        return ""
    return member.ends[0].label if member.title else member.label


def _are_equal(a: str, b: str) -> bool:
    return a == b or ("=" in a and a.split("=") == b.split("=")[::-1])


def _same_cable(a: str, b: str) -> bool:
    """Whether one name is a cable and the other is one of its links."""
    return (">" in a) != (">" in b) and _are_equal(a.replace(">", "="), b.replace(">", "=")) and "=" in a + b


def _both_links(findings: Sequence[Finding], fault: TrueFault) -> bool:
    """Whether the findings name a cable as its two links."""
    ends = fault.name.split("=")
    return len(ends) == 2 and {">".join(ends), ">".join(ends[::-1])} <= {finding.name for finding in findings}


def _direction_right(findings: Sequence[Finding], fault: TrueFault) -> bool:
    """Whether a finding names the direction, or a component that has only one direction."""
    if fault.component == "cable" and fault.direction is None:
        whole = any("=" in finding.name and finding.direction in (None, "both") for finding in findings)
        return whole or _both_links(findings, fault)
    return any(_is_direction_right(finding, fault) for finding in findings)


def _is_direction_right(finding: Finding, fault: TrueFault) -> bool:
    if ">" in finding.name:
        return finding.name == fault.name or finding.name in fault.equivalents
    expected = fault.direction if finding.name == fault.name else fault.equivalents.get(finding.name, fault.direction)
    return expected is not None and finding.direction == expected


def _label(fault: TrueFault) -> str:
    size = f"{fault.effect:+.0%}" if fault.effect is not None else fault.kind
    return " ".join(filter(None, [fault.component, fault.name, fault.direction, size]))
