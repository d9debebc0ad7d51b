"""Presumed cables: how a switch reaches other groups is not known, and may be over the cable to one of its neighbours.

Where no source tells the cables, each switch of a group has a presumed cable to a gate, a switch of the group's name,
through which messages leave the group. In the fabric they leave over a cable of some switch of the group, so that one
slow cable inside the group makes the presumed one slow as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from fablint.analyse.findings.paths.uplinks import is_slow_cable
from fablint.model import Finding, State, Topology
from fablint.text import evidence as seen


def through_neighbours(findings: Sequence[Finding], topology: Topology | None) -> list[Finding]:
    """The same findings, where a presumed cable and one inside the group have the same reason.

    A presumed cable of a switch that has a `FAULT` on a cable inside the group is left out; beside a `SUSPECT` one, it
    is `SUSPECT` too.
    """
    result = list(findings)
    if topology is None:
        return result
    for gate in [name for name, one in topology.switches.items() if one.group == name]:
        for outward in [one for one in result if is_slow_cable(one) and gate in one.nodes]:
            inside = [one for one in result if _is_inside(one, outward, gate, topology)]
            at = result.index(outward)
            certain = [one for one in inside if one.state is State.FAULT]
            if certain:
                result[result.index(certain[0])] = _with_outward(certain[0], outward, gate)
                del result[at]
            elif inside:
                result[at] = _doubted(outward, inside)
    return result


def _is_inside(finding: Finding, outward: Finding, gate: str, topology: Topology) -> bool:
    """Is it about a cable from the same switch to another one of the group?"""
    own = finding.nodes & outward.nodes - {gate}
    members = {name for name, switch in topology.switches.items() if switch.group == gate and name != gate}
    return is_slow_cable(finding) and finding.nodes <= members and bool(own)


def _with_outward(finding: Finding, outward: Finding, gate: str) -> Finding:
    (switch,) = outward.nodes - {gate}
    more = seen.outward_slow(switch, gate)
    return finding.model_copy(update={"evidence": (*finding.evidence, more)})


def _doubted(outward: Finding, inside: Sequence[Finding]) -> Finding:
    others = tuple(component for one in inside for component in one.components)
    return outward.model_copy(
        update={"state": State.SUSPECT, "ambiguity_group": tuple(dict.fromkeys((*outward.ambiguity_group, *others)))}
    )
