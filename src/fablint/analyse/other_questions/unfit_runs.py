"""What makes a whole run unfit to judge a fabric by: a single host, more ranks than CPUs."""

from __future__ import annotations

import numpy as np

from fablint.model import ComponentRef, Finding, Placement, State
from fablint.text import actions as advise, evidence as seen


def unfit_runs(placement: Placement) -> list[Finding]:
    """Return the findings about a run that shows the hosts rather than the fabric."""
    findings = []
    if len(placement.hosts) == 1:
        findings.append(
            Finding(
                state=State.NOT_JUDGED,
                components=(ComponentRef(kind="config", title="one host"),),
                evidence=(seen.one_host(int(placement.host.size), placement.hosts[0]),),
                next_step=advise.measure_more_hosts(4),
            )
        )
    if placement.oversubscribed.any():
        oversubscribed = [placement.hosts[host] for host in np.nonzero(placement.oversubscribed)[0]]
        findings.append(
            Finding(
                state=State.CONFOUNDED,
                components=(ComponentRef(kind="config", title="more ranks than CPUs"),),
                evidence=(seen.oversubscribed(tuple(oversubscribed)),),
                next_step=advise.measure_own_cpus(),
            )
        )
    return findings
