"""What findings name or list as an alternative: the one rule for which components are not OK."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from fablint.model import ComponentKind, ComponentRef, Endpoint, Finding, State
from fablint.model.arrays import Mask
from fablint.topology.routing import Routes

NAMED_STATES = (State.FAULT, State.SUSPECT, State.CONFOUNDED, State.SUPPRESSED)
_OF_SWITCHES: frozenset[ComponentKind] = frozenset({"switch", "group"})
_OF_NO_HOST: frozenset[ComponentKind] = _OF_SWITCHES | {"link"}
_BETWEEN: frozenset[ComponentKind] = frozenset({"link", "cable", "route"})


@dataclass(frozen=True)
class ConcernedComponents:
    """Components that findings name, and of those about a loss also the alternatives that explain it as well."""

    hosts: frozenset[str]  # with other nodes at the ends of cables, NICs, ports and routes
    switches: frozenset[str]
    directions: frozenset[tuple[str, str]]  # of links; of a cable both
    all_links_of: frozenset[str]  # switches, none of whose links is OK

    @classmethod
    def of(cls, findings: Sequence[Finding]) -> Self:
        """Return the components of findings that are not OK."""
        components = [
            component
            for finding in findings
            if finding.state is not State.OK
            for component in (
                *finding.components,
                *(finding.ambiguity_group if finding.state in NAMED_STATES else ()),
            )
        ]
        switches = frozenset(node for one in components if one.kind in _OF_SWITCHES for node in one.nodes)
        return cls(
            hosts=frozenset(node for one in components if one.kind not in _OF_NO_HOST for node in one.nodes),
            switches=switches,
            directions=frozenset(ends for one in components if one.kind in _BETWEEN for ends in one.directions),
            all_links_of=switches | {node for one in components if _is_of_all_links(one) for node in one.nodes},
        )

    def has_link(self, source: str, target: str) -> bool:
        """Return whether the link from a switch to another is concerned."""
        return (source, target) in self.directions or not self.all_links_of.isdisjoint((source, target))

    def links(self, routes: Routes) -> Mask:
        """(links,) which links of the routes are concerned."""
        is_switch = np.array([name in self.all_links_of for name in routes.switches], dtype=bool)
        return np.asarray(routes.are_among(self.directions) | is_switch[routes.ends].any(axis=1))


def _is_of_all_links(component: ComponentRef) -> bool:
    """Return whether a component stands for all links of a switch: all cables, or the path to any other switch."""
    is_single = component.kind == "cable" and len(component.ends) == 1
    return is_single or (component.kind == "route" and any(not end.nodes for end in component.ends))


def restricted(finding: Finding, concerned: ConcernedComponents, faulty: frozenset[str]) -> Finding | None:
    """Return an OK or NOT JUDGED finding without what other findings say of the same components; None: of all.

    Parameters
    ----------
    finding
        A finding in any state.
    concerned
        What no OK finding names.
    faulty
        Hosts at fault, which are judged.
    """
    if finding.state is State.NOT_JUDGED and finding.component == "host":
        excluded = faulty
    elif finding.state is State.OK:
        excluded = {"host": concerned.hosts, "switch": concerned.switches}.get(finding.component, frozenset())
    else:
        return finding
    components = []
    for component in finding.components:
        is_ok = finding.state is State.OK and component.kind in _BETWEEN
        if is_ok and any(concerned.has_link(*ends) for ends in component.directions):
            continue
        if excluded.isdisjoint(component.nodes):
            components.append(component)
        elif left := [node for node in component.ends[0].nodes if node not in excluded]:
            components.append(ComponentRef(kind=component.kind, ends=(Endpoint(nodes=tuple(left)),)))
    if tuple(components) == finding.components:
        return finding
    return finding.model_copy(update={"components": tuple(components)}) if components else None
