"""What is said of the parts that no finding is about: OK with a bound, NOT JUDGED, or hidden by a switch at fault."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from fablint.analyse.concerned import NAMED_STATES, ConcernedComponents
from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.healthy import (
    are_hosts_homogeneous,
    clean_parts,
    concerned_hosts,
    hidden_losses,
    judged_hosts,
    judged_links,
    unjudged,
    unseen_switches,
)
from fablint.analyse.settings import FEWEST_PEERS, Settings
from fablint.model import ComponentRef, Finding, Placement, State
from fablint.model.arrays import Mask
from fablint.text import actions as advise, evidence as seen
from fablint.topology.routing import Routes


def unreported_findings(
    judged: Sequence[ViewResult],
    placement: Placement,
    routes: Routes | None,
    findings: Sequence[Finding],
    settings: Settings,
    designed: Collection[ComponentRef],
) -> list[Finding]:
    """NOT JUDGED and OK findings, and the hosts that a faulty switch hides. Notes name `designed` cables."""
    if not judged or len(placement.hosts) == 1:
        return []
    concerned = ConcernedComponents.of(findings)
    judgeable = judgeable_links(judged, routes)
    named = concerned_hosts(concerned.hosts, judged, placement, settings)
    hosts = ~np.isin(np.arange(len(placement.hosts)), named) & ~placement.oversubscribed
    switches = np.full(len(placement.switches), all(are_hosts_homogeneous(view, settings) for view in judged))
    links = judgeable.copy()
    for view in judged:
        hosts &= judged_hosts(view, settings)
        links &= judged_links(view, settings) | ~view.links_possible
    result = []
    for code, name in enumerate(placement.switches):
        states = {finding.state for finding in findings if finding.component == "switch" and finding.name == name}
        if states:
            switches[code] = False
        if states & set(NAMED_STATES):
            behind = np.unique(placement.host[placement.switch == code])
            hosts[behind] = False
            result.append(_hidden(name, [placement.hosts[host] for host in behind]))
        switches[code] &= name not in concerned.switches
    if routes is not None:
        by_design = frozenset().union(*(component.directions for component in designed))
        links &= ~routes.are_among(by_design) & ~concerned.links(routes)
    missing = {
        component for finding in findings if finding.state is State.NOT_JUDGED for component in finding.components
    }
    if routes is not None:
        without = frozenset().union(*(component.directions for component in missing))
        judgeable = judgeable & ~routes.are_among(without)
    result += unjudged(judged, placement, routes, judgeable, settings, named=named, missing=missing)
    hidden, hosts, links = hidden_losses(judged, placement, routes, hosts, links, settings)
    unseen, switches = unseen_switches(judged, placement, switches, settings)
    return result + hidden + unseen + clean_parts(judged, placement, routes, hosts, switches, links, settings)


def _hidden(switch: str, hosts: Sequence[str]) -> Finding:
    return Finding(
        state=State.NOT_JUDGED,
        components=(ComponentRef.of("host", hosts),),
        evidence=(seen.behind_switch(switch),),
        next_step=advise.measure_after_repair(ComponentRef.of("switch", switch)),
    )


def judgeable_links(judged: Sequence[ViewResult], routes: Routes | None) -> Mask:
    """(links,) which links enough pairs of this run's hosts could cross, were they all measured."""
    if routes is None or len(routes.ends) < 2 * FEWEST_PEERS:
        return np.zeros(0 if routes is None else len(routes.ends), dtype=bool)
    possible = np.zeros(len(routes.ends), dtype=bool)
    for view in judged:
        possible |= view.links_possible
    return possible
