"""How much of a run was planned, measured and judged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.analyse.explain.coverage import host_partners
from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.detected import named_hosts
from fablint.analyse.findings.healthy import judged_hosts, judged_links
from fablint.analyse.findings.judged_run import JudgedRun
from fablint.analyse.findings.missing.missing_cells import MissingCells
from fablint.analyse.findings.unreported_components import judgeable_links
from fablint.analyse.settings import Settings
from fablint.model import Coverage, Finding, Placement, State
from fablint.topology.routing import Routes


def coverage_of(
    cells: MissingCells,
    judged: Sequence[ViewResult],
    placement: Placement,
    routes: Routes | None,
    settings: Settings,
    findings: Sequence[Finding],
) -> Coverage:
    """Return how much was planned, measured and judged. A host is judged when each of its NICs is.

    Parameters
    ----------
    cells
        Planned and measured cells.
    judged
        Views that show which components are healthy.
    placement
        Hosts of the ranks.
    routes
        Links between switches; None if no cables are known.
    settings
        The smallest number of partners of a judged host.
    findings
        All findings: hosts at fault are judged as well, and those that a finding NOT JUDGED names are not.
    """
    hosts = np.full(len(placement.hosts), bool(judged) and len(placement.hosts) > 1)
    links = judgeable_links(judged, routes)
    in_use = int(np.count_nonzero(links))
    for view in judged:
        hosts &= judged_hosts(view, settings)
        links &= judged_links(view, settings)
    hosts[named_hosts([one for one in findings if one.state is State.NOT_JUDGED], placement)] = False
    slow = [one for one in findings if one.state is State.FAULT and one.effect is not None]
    hosts[named_hosts(slow, placement)] = True
    return Coverage(
        pairs_planned=cells.planned,
        pairs_measured=cells.measured,
        hosts=len(placement.hosts),
        hosts_judged=int(np.count_nonzero(hosts)),
        links=in_use,
        links_judged=int(np.count_nonzero(links)) if judged else 0,
    )


def why_not_judged(judged: JudgedRun, coverage: Coverage) -> str:
    """Return why a complete run was never meant to be judged; empty where it was."""
    imported, fewest = judged.run.facts.imported, judged.settings.min_partners
    partners = [int(host_partners(view.nic_partners, judged.placement).max(initial=0)) for view in judged.views]
    if not judged.is_complete:
        return ""
    if imported and imported.not_judged:
        return "; ".join(imported.not_judged)
    if not coverage.pairs_planned:
        return "figures only: no pair was measured by itself"
    return f"figures only: no host was measured with {fewest} others" if max(partners, default=0) < fewest else ""
