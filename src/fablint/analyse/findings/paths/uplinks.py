"""All uplinks of a switch slow at once: one finding about what they have in common, and not one per cable."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fablint.model import ComponentRef, Finding, Placement, State
from fablint.text import actions as advise, evidence as seen
from fablint.topology.routing import Routes

FEWEST = 2  # cables of a switch


def uplinks_together(findings: Sequence[Finding], placement: Placement, routes: Routes | None) -> list[Finding]:
    """The same findings, where those of all cables of a switch are one `SUSPECT` about the switch; one is a `FAULT`.

    Several cables of one switch do not fail at the same time. Its own load does the same, and so do cables that are
    thinner by design: a switch that is slow itself is slow between its own hosts as well, and is found by that.
    """
    if routes is None:
        return list(findings)
    result = list(findings)
    concerned = {end for finding in result if is_slow_cable(finding) for end in finding.nodes}
    cables = _cables_of(concerned & set(placement.switches), routes)
    for switch in [name for name in placement.switches if name in cables]:
        own = cables[switch]
        slow = {finding.components[0].cable: finding for finding in result if _is_of(finding, switch)}
        certain = any(finding.state is State.FAULT for finding in slow.values())
        if certain and len(own) >= FEWEST and own <= slow.keys():
            result = [finding for finding in result if not _is_of(finding, switch)]
            result.append(_together(switch, [slow[cable] for cable in sorted(own, key=lambda cable: cable.label)]))
    return result


def _cables_of(switches: Collection[str], routes: Routes) -> Mapping[str, set[ComponentRef]]:
    """The cables at each of these switches."""
    found: dict[str, set[ComponentRef]] = {switch: set() for switch in switches}
    for link in range(0, len(routes.ends), 2) if found else ():
        cable = routes.cable_component(link).cable
        for end in cable.nodes & found.keys():
            found[end].add(cable)
    return found


def is_slow_cable(finding: Finding) -> bool:
    """Is it about a cable, or one direction of it, that is `FAULT` or `SUSPECT`?"""
    return finding.component in ("cable", "link") and finding.state in (State.FAULT, State.SUSPECT)


def _is_of(finding: Finding, switch: str) -> bool:
    return is_slow_cable(finding) and switch in finding.nodes


def _together(switch: str, cables: Sequence[Finding]) -> Finding:
    worst = max(cables, key=lambda finding: abs(finding.effect or 0.0))
    return worst.model_copy(
        update={
            "state": State.SUSPECT,
            "components": (ComponentRef.of("switch", switch),),
            "direction": None,
            "evidence": (seen.all_uplinks(len(cables), switch), *worst.evidence),
            "ambiguity_group": tuple(component for finding in cables for component in finding.components),
            "next_step": advise.inspect_uplinks(ComponentRef.of("switch", switch)),
        }
    )
