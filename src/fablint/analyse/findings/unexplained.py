"""Slow pairs that no component explains, as findings: SUSPECT, and never a pass."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fablint.analyse.detect.unexplained_pairs import Stratum
from fablint.analyse.detect.view import ViewResult
from fablint.analyse.findings.detection_text import relative, view_text
from fablint.analyse.phrasing import NEXT_STEP
from fablint.model import ComponentRef, Finding, Placement, State
from fablint.text.names import plural


def unexplained_pairs(views: Sequence[ViewResult], placement: Placement, named: Collection[int]) -> list[Finding]:
    """One finding for each host, for each two switches, and one for the rest. `named`: hosts of other findings."""
    if len(placement.hosts) == 1:
        return []
    findings: dict[str, Finding] = {}
    for view in views:
        for stratum, when in zip(view.unexplained, view.unexplained_when, strict=True):
            if stratum.host in named or (stratum.host >= 0 and placement.oversubscribed[stratum.host]):
                continue
            found = _finding(view, stratum, when, placement)
            findings.setdefault(found.name, found)
    return list(findings.values())


def _finding(view: ViewResult, stratum: Stratum, when: str, placement: Placement) -> Finding:
    share = f"{stratum.slow} of {plural(stratum.pairs, 'pair')} ({stratum.slow / stratum.pairs:.0%})"
    if stratum.host >= 0:
        name = placement.hosts[stratum.host]
        component = ComponentRef.of("host", name)
        evidence = f"{share} of {name} are slow, its other pairs are not, nor are those of other hosts"
    elif stratum.switches is not None:
        component = ComponentRef.of("route", *(placement.switches[code] for code in stratum.switches))
        evidence = f"{share} between these switches are slow: one of several paths, or some of the time"
    else:
        component = ComponentRef(kind="route", title="pairs of hosts")
        evidence = f"{share} are slower than the noise of the others, and nothing that they have in common explains it"
    return Finding(
        state=State.SUSPECT,
        components=(component,),
        quantity=view.quantity,
        effect=relative(stratum.loss, view.quantity),
        evidence=f"{view_text(view)}: {evidence}" + (f"; {when}" if when else ""),
        next_step=f"measure {component.label} again"
        if stratum.host >= 0
        else NEXT_STEP["route"].format(name=component.label),
    )
