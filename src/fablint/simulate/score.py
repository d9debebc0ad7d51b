"""How right a verdict is: findings against the truth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fablint.model import ComponentRef, Finding, State
from fablint.simulate.ground_truth import TrueFault

NOT_SLOW = frozenset({"noise"})  # kinds that are no fault: whoever accuses them is wrong


@dataclass(frozen=True)
class Score:
    """Counts of parts.

    `exact`: sick parts that a FAULT finding names. `in_class`: those of which one names a part that looks the same, or
    is the same cable or the same host's. `missed`: neither, although the run could show them. `wrong`: parts at FAULT
    that are not sick. Directions are counted among the parts found whose direction can be seen.
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
    """Compare what is found at fault with what is.

    A finding is right about a sick part when it names it, or one of its class, or has one of these among its
    alternatives. NIC and cable of a host with one NIC are the host's class. A cable that is sick both ways may be named
    as such or as its two links.
    """
    accused = [finding for finding in findings if finding.state is State.FAULT]
    sick = [fault for fault in truth if fault.kind not in NOT_SLOW]
    total = Score()
    used: set[int] = set()
    for fault in sick:
        matches = [(index, _match(one, fault)) for index, one in enumerate(accused)]
        found = [(accused[index], match) for index, match in matches if match]
        used.update(index for index, match in matches if match)
        if not found:
            total += Score(missed=int(fault.visible), missed_names=(_label(fault),) if fault.visible else ())
            continue
        parts = [finding for finding, _ in found]
        exact = any(match == "exact" for _, match in found) or _both_links(parts, fault)
        total += Score(exact=int(exact), in_class=int(not exact))
        if fault.decidable and fault.component != "switch":
            total += Score(direction_decidable=1, direction_right=int(_direction_right(parts, fault)))
    wrong = [one for index, one in enumerate(accused) if index not in used]
    return total + Score(wrong=len(wrong), wrong_names=tuple(f"{one.component} {one.name}" for one in wrong))


def _match(finding: Finding, fault: TrueFault) -> str:
    """`exact`, `class` or nothing."""
    if _same(finding.name, fault.name):
        return "exact"
    named = [finding.name, *(name for name in map(_name_of, finding.ambiguity_group) if name)]
    alike = any(_same(one, other) or _same_cable(one, other) for one in named for other in (fault.name, *fault.twins))
    return "class" if alike else ""


def _name_of(member: ComponentRef) -> str:
    """Name of a member of an ambiguity group; of a host's NIC or cable the host; none of a port: one end of a cable."""
    if member.kind == "port" or not member.ends or member.direction is not None or len(member.title.split()) > 1:
        return ""
    return member.ends[0].label if member.title else member.label


def _same(a: str, b: str) -> bool:
    return a == b or ("=" in a and a.split("=") == b.split("=")[::-1])


def _same_cable(a: str, b: str) -> bool:
    """A cable and one of its links."""
    return (">" in a) != (">" in b) and _same(a.replace(">", "="), b.replace(">", "=")) and "=" in a + b


def _both_links(parts: Sequence[Finding], fault: TrueFault) -> bool:
    """Is a cable named as its two links?"""
    ends = fault.name.split("=")
    return len(ends) == 2 and {">".join(ends), ">".join(ends[::-1])} <= {part.name for part in parts}


def _direction_right(parts: Sequence[Finding], fault: TrueFault) -> bool:
    """Does some finding name the direction, or a part that has only the one?"""
    if fault.component == "cable" and fault.direction is None:
        whole = any("=" in part.name and part.direction in (None, "both") for part in parts)
        return whole or _both_links(parts, fault)
    return any(_way_right(part, fault) for part in parts)


def _way_right(part: Finding, fault: TrueFault) -> bool:
    if ">" in part.name:
        return part.name == fault.name or part.name in fault.twins
    wanted = fault.direction if part.name == fault.name else fault.twins.get(part.name, fault.direction)
    return wanted is not None and part.direction == wanted


def _label(fault: TrueFault) -> str:
    size = f"{fault.effect:+.0%}" if fault.effect is not None else fault.kind
    return " ".join(filter(None, [fault.component, fault.name, fault.direction, size]))
