"""Slow pairs that no component explains, as findings: SUSPECT, and never a pass.

Pairs that were slow in one period only, and fast after it, are NOT JUDGED: load of that period looks the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fablint.analyse.detect.unexplained_pairs import Stratum
from fablint.analyse.detect.view import ViewResult
from fablint.analyse.findings.detection_text import relative, seen_in
from fablint.analyse.phrasing import next_step
from fablint.model import ComponentRef, EvidenceRecord, Finding, Placement, State
from fablint.model.component import cause
from fablint.model.verdict import advise, seen

ENDED = frozenset({"until", "between"})  # times of slowness after which the pairs were fast


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


def _finding(view: ViewResult, stratum: Stratum, when: EvidenceRecord | None, placement: Placement) -> Finding:
    share = {"slow": stratum.slow, "pairs": stratum.pairs, "share": stratum.slow / stratum.pairs}
    if stratum.host >= 0:
        name = placement.hosts[stratum.host]
        component = ComponentRef.of("host", name)
        kind, where = "unexplained_host", {"host": name}
    elif stratum.switches is not None:
        component = ComponentRef.of("route", *(placement.switches[code] for code in stratum.switches))
        kind, where = "unexplained_switches", {}
    else:
        component = ComponentRef(kind="route", title="pairs of hosts")
        kind, where = "unexplained_pairs", {}
    has_ended = when is not None and when.values["when"] in ENDED
    times = [when] if when else []
    if has_ended:
        times.append(seen("period_of_load"))
    elif stratum.explained_by is not None:
        times.append(seen("others_slow_then", others=stratum.explained_by.share))
    is_explained = stratum.explained_by is not None and not has_ended
    return Finding(
        state=State.NOT_JUDGED if has_ended else State.CONFOUNDED if is_explained else State.SUSPECT,
        components=(component,),
        quantity=view.quantity,
        effect=relative(stratum.loss, view.quantity),
        evidence=(seen_in(view, kind, **share, **where), *times),
        ambiguity_group=(cause("another load at that time"),) if is_explained else (),
        next_step=advise("measure_component", component) if stratum.host >= 0 else next_step(component),
    )
