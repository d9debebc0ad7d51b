"""Presumed cables: how a switch reaches other groups is not known, and may be over the cable to one of its neighbours.

Where no source tells the cables, each switch of a group has a presumed cable to a gate, a switch of the group's name,
through which messages leave the group. In the fabric they leave over a cable of some switch of the group, so that one
slow cable inside the group makes the presumed one slow as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fablint.analyse.findings.common_causes import CommonCause
from fablint.analyse.findings.paths.uplinks import is_slow_cable
from fablint.model import Finding, State, Topology
from fablint.text import evidence as seen


def through_neighbours(claims: Sequence[Finding], topology: Topology | None) -> Iterator[CommonCause]:
    """Yield each presumed cable whose reason may be a cable inside the group.

    A presumed cable of a switch that has a `FAULT` on a cable inside the group is part of that finding; beside a
    `SUSPECT` one, it is `SUSPECT` too.
    """
    slow_cables = [claim for claim in claims if is_slow_cable(claim)]
    if topology is None or not slow_cables:
        return
    for gate in [name for name, switch in topology.switches.items() if switch.group == name]:
        merged: dict[int, tuple[Finding, list[Finding]]] = {}
        for outward in [claim for claim in slow_cables if gate in claim.nodes]:
            inside = [claim for claim in slow_cables if _is_inside(claim, outward, gate, topology)]
            sure = next((claim for claim in inside if claim.state is State.FAULT), None)
            if sure is not None:
                merged.setdefault(id(sure), (sure, []))[1].append(outward)
            elif inside:
                yield CommonCause((outward,), (_doubted(outward, inside),))
        for sure, behind in merged.values():
            yield CommonCause((sure, *behind), (_with_outward(sure, behind, gate),))


def _is_inside(finding: Finding, outward: Finding, gate: str, topology: Topology) -> bool:
    """Tell whether it is about a cable from the same switch to another one of the group."""
    common_ends = finding.nodes & outward.nodes - {gate}
    members = {name for name, switch in topology.switches.items() if switch.group == gate and name != gate}
    return is_slow_cable(finding) and finding.nodes <= members and bool(common_ends)


def _with_outward(finding: Finding, behind: Sequence[Finding], gate: str) -> Finding:
    switches = [switch for outward in behind for switch in outward.nodes - {gate}]
    more = [seen.outward_slow(switch, gate) for switch in switches]
    return finding.model_copy(update={"evidence": (*finding.evidence, *more)})


def _doubted(outward: Finding, inside: Sequence[Finding]) -> Finding:
    others = tuple(component for one in inside for component in one.components)
    return outward.model_copy(
        update={"state": State.SUSPECT, "ambiguity_group": tuple(dict.fromkeys((*outward.ambiguity_group, *others)))}
    )
