"""All uplinks of a switch slow at once: one finding about what they have in common, and not one per cable."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from fablint.analyse.findings.common_causes import CommonCause
from fablint.analyse.settings import FEWEST_INDEPENDENT
from fablint.model import ComponentRef, Finding, Placement, State
from fablint.text import actions as advise, evidence as seen
from fablint.topology.routing import Routes


def slow_uplinks(claims: Sequence[Finding], placement: Placement, routes: Routes | None) -> Iterator[CommonCause]:
    """Yield each switch all of whose cables are slow, one of them surely: they are one `SUSPECT` about the switch.

    Several cables of one switch do not fail at the same time. Its own load does the same, and so do cables that are
    thinner by design: a switch that is slow itself is slow between its own hosts as well, and is found by that.
    """
    if routes is None:
        return
    slow_cables = [claim for claim in claims if is_slow_cable(claim)]
    concerned = {end for claim in slow_cables for end in claim.nodes}
    cables = cables_of(concerned & set(placement.switches), routes)
    explained: set[int] = set()
    for switch in [name for name in placement.switches if name in cables]:
        behind = [claim for claim in slow_cables if switch in claim.nodes and id(claim) not in explained]
        slow = {claim.components[0].cable: claim for claim in behind}
        is_sure = any(claim.state is State.FAULT for claim in slow.values())
        if is_sure and len(cables[switch]) >= FEWEST_INDEPENDENT and cables[switch] <= slow.keys():
            explained |= {id(claim) for claim in behind}
            ordered = [slow[cable] for cable in sorted(cables[switch], key=lambda cable: cable.label)]
            yield CommonCause(tuple(behind), (_together(switch, ordered),))


def cables_of(switches: Collection[str], routes: Routes) -> Mapping[str, set[ComponentRef]]:
    """The cables at each of these switches."""
    cables: dict[str, set[ComponentRef]] = {switch: set() for switch in switches}
    touches = np.isin(routes.ends[::2], routes.codes([*cables])).any(axis=1)
    for link in 2 * np.flatnonzero(touches):
        cable = routes.cable_component(int(link)).cable
        for end in cable.nodes & cables.keys():
            cables[end].add(cable)
    return cables


def is_slow_cable(finding: Finding) -> bool:
    """Tell whether it is about a cable, or one direction of it, that is `FAULT` or `SUSPECT`."""
    return finding.component in ("cable", "link") and finding.state in (State.FAULT, State.SUSPECT)


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
