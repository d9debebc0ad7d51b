"""Components that are slow for a share of the time, as detections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast

import numpy as np

from fablint.analyse.candidates.candidate import Candidate
from fablint.analyse.candidates.components import Kind
from fablint.analyse.explain.ambiguity import AmbiguityGroup, GroupMember
from fablint.analyse.explain.search import Detection, SlowCount
from fablint.analyse.explain.shares.share_evidence import ShareEvidence
from fablint.analyse.explain.shares.slow_measurements import SlowMeasurements
from fablint.analyse.observations.robust_stats import interval_ranks
from fablint.model import ComponentRef
from fablint.model.arrays import Cells, Codes
from fablint.topology.routing import Routes

SIDES = {"tx": (0,), "rx": (1,)}


def detection_of(
    candidate: Candidate,
    measurements: SlowMeasurements,
    evidence: ShareEvidence,
    others: Mapping[str, int],
    alternatives: Sequence[Candidate],
    routes: Routes | None,
) -> Detection:
    """Return a component that is slow for a share of the time as a detection.

    Parameters
    ----------
    candidate
        The component.
    measurements
        Its measurements.
    evidence
        What they show.
    others
        `others_slow` of `others` measurements elsewhere.
    alternatives
        Components that explain the same measurements.
    routes
        Links between switches.
    """
    losses = measurements.losses_of(candidate)
    slow = measurements.slow | ((losses > measurements.left) & (losses > measurements.limit))
    loss, host_pairs = np.sort(losses[slow]), int(np.unique(measurements.host_pair[slow]).size)
    lower, upper = (int(rank) for rank in interval_ranks(loss.size))
    members = [member for one in alternatives for member in _group_members(one, routes)]
    return Detection(
        kind=cast(Kind, candidate.kind if candidate.kind in ("host", "nic", "switch") else "cable"),
        whole=_whole(candidate, routes),
        ranks=_ranks(candidate, measurements),
        sides=_sides(candidate),
        loss=(float(loss[lower]), float(np.median(loss)), float(loss[upper])),
        pairs=evidence.measured,
        slow=loss.size,
        log_e=evidence.nats,
        cells=_distinct(measurements.cells),
        ambiguity_group=AmbiguityGroup(near=tuple(dict.fromkeys(members))),
        own=tuple(_group_members(candidate, routes)),
        partners=host_pairs,
        stretches=evidence.stretches,
        share=SlowCount(loss.size, evidence.measured, others["others_slow"], others["others"]),
    )


def _is_link(candidate: Candidate) -> bool:
    return candidate.component.kind == "link"


def _whole(candidate: Candidate, routes: Routes | None) -> ComponentRef:
    """Return the component, of a link its cable."""
    if routes is not None and _is_link(candidate):
        return routes.cable_component(candidate.number)
    return candidate.component


def _sides(candidate: Candidate) -> tuple[int, ...]:
    if _is_link(candidate):
        return (candidate.number % 2,)
    return SIDES.get(candidate.direction or "both", (0, 1))


def _ranks(candidate: Candidate, measurements: SlowMeasurements) -> Codes:
    """Return the ranks of a host, NIC or switch; else, and of a switch without hosts, those of its measurements."""
    placement = measurements.placement
    code = {"host": placement.host, "nic": placement.nic}.get(candidate.kind)
    if code is not None:
        return np.flatnonzero(code == candidate.number)
    name = candidate.component.label
    if candidate.kind == "switch" and name in placement.switches:
        return np.flatnonzero(placement.switch == placement.switches.index(name))
    return np.unique(measurements.ends)


def _distinct(cells: Cells) -> Cells:
    """Return each cell once."""
    width = int(cells[1].max()) + 1
    key = np.unique(cells[0].astype(np.int64) * width + cells[1])
    return key // width, key % width


def _group_members(candidate: Candidate, routes: Routes | None) -> list[GroupMember]:
    """Return a candidate as members of an ambiguity group: of a cable both links."""
    component, number = candidate.component, candidate.number
    if candidate.kind in ("host", "nic", "switch"):
        kind = cast(Literal["host", "nic", "switch"], candidate.kind)
        return [GroupMember(kind, number, side, _directed(component, candidate)) for side in _sides(candidate)[:1]]
    if candidate.kind != "cable" or routes is None:
        return []
    if _is_link(candidate):
        return [GroupMember("link", number, number % 2, component)]
    first = number - number % 2
    return [GroupMember("link", link, link % 2, routes.component(link)) for link in (first, first + 1)]


def _directed(component: ComponentRef, candidate: Candidate) -> ComponentRef:
    """Return a host or NIC with its direction."""
    return component.model_copy(update={"direction": candidate.direction}) if candidate.direction else component
