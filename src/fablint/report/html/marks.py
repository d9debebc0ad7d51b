"""The components of the findings on the maps: bars at the axes, and frames around the pairs that use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fablint.model import Finding
from fablint.model.arrays import Codes
from fablint.report import finding_order
from fablint.report.html.link_maps import link_cells
from fablint.report.html.packing import packed
from fablint.report.survey.report_source import CellSet, ReportSource
from fablint.text import units
from fablint.topology.component_pairs import ComponentPairs


@dataclass(frozen=True)
class MapMark:
    """A finding on the maps: what the page needs of it, and the pairs that use its component, where they are known."""

    facts: dict[str, Any]
    crossing: ComponentPairs | None


def marks_of(source: ReportSource) -> list[MapMark]:
    """Marks of the findings that have a place on a map, in the order of the findings."""
    if "marks" not in source.memo:
        crossings = source.crossings.crossings
        cells = link_cells(source)
        marks = []
        for index, finding in enumerate(finding_order.faulty(source.found)):
            drawn = finding in source.crossings.findings[index : index + 1] and index < len(crossings)
            crossing = crossings[index] if drawn else None
            marks.append(_mark(index, finding, crossing, cells[index] if crossing else [], source))
        source.memo["marks"] = [one for one in marks if one is not None]
    return list(source.memo["marks"])


def _mark(
    index: int, finding: Finding, crossing: ComponentPairs | None, links: list[tuple[int, int]], source: ReportSource
) -> MapMark | None:
    """The mark of a finding; None without a place, or where it would cover the whole map."""
    ends = _ends(finding, crossing, source)
    frames = crossing.rectangles(source.order, source.placement.switch) if crossing else []
    if crossing is None and [end["runs"] for end in ends] == [[(0, source.run.ranks)]]:
        return None
    if not ends and not frames and not links:
        return None
    facts = {
        "finding": index,
        "rows": list(dict.fromkeys(record.row for record in finding.evidence if record.row)),
        "state": str(finding.state),
        "name": finding.name,
        "names": _names_in_topology(finding),
        "ends": ends,
        "hosts": not frozenset(source.run.hosts).isdisjoint(finding.hosts),  # a cable may be one of switches
        "links": links,
        "frames": packed(np.array(frames, dtype=np.int32).ravel(), "<i4"),
    }
    return MapMark(facts, crossing)


def _names_in_topology(finding: Finding) -> list[str]:
    """Names of the components of a finding in the drawing of the topology: of a cable also those of its links."""
    names: list[str] = []
    for component in finding.components:
        ends = [end.nodes for end in component.ends]
        if len(ends) == 2:
            names += [component.label, *(f"{a}>{b}" for a in ends[0] for b in ends[1] if a != b)]
        names += ends[0] if len(ends) == 1 else component.hosts
    return list(dict.fromkeys(names))


def measured_of(cell_set: CellSet, source: ReportSource) -> list[tuple[Codes, bool]]:
    """Return for each mark the positions of the cells whose messages use its component, and whether that is one of
    hosts.
    """
    nothing = np.zeros(0, dtype=np.intp)
    return [
        (source.positions_of(mark.crossing, cell_set) if mark.crossing else nothing, mark.facts["hosts"])
        for mark in marks_of(source)
    ]


def _ends(finding: Finding, crossing: ComponentPairs | None, source: ReportSource) -> list[dict[str, Any]]:
    """The ends of a finding's part that have ranks: places of these, what an axis calls them, and their direction.

    `side` is None where the end sends and receives. Of a cable `HOST=SWITCH` only the host, whose traffic is all there.
    An end of several hosts has an empty name: each host keeps its own on the axis.
    """
    placement, component = source.placement, finding.components[0]
    names = finding_order.ends(finding)
    ranks = [_ranks_on(one, source.run.hosts, placement.host) for one in names]
    on_hosts = any(ranks)
    if not on_hosts:
        ranks = [_ranks_on(one, placement.switches, placement.switch) for one in names]
    only = None
    if crossing and crossing.tx.any() != crossing.rx.any():
        only = "tx" if crossing.tx.any() else "rx"
    sides = ("tx", "rx") if component.directed and len(names) == 2 else (only,) * len(names)
    return [
        {"runs": _runs(source.place[ranks_of_end]), "name": _name_of_end(finding, name, on_hosts), "side": side}
        for name, ranks_of_end, side in zip(names, ranks, sides, strict=True)
        if ranks_of_end
    ]


def _name_of_end(finding: Finding, names: Sequence[str], on_hosts: bool) -> str:
    """Return what an axis calls an end of a finding's component: of a route each host by its own name."""
    if not on_hosts:
        return units.fold(names)
    if finding.component == "route":
        return names[0] if len(names) == 1 else ""
    return finding.name if len(names) == 1 else ""


def _ranks_on(wanted: Sequence[str], names_of_places: Sequence[str], place: np.ndarray) -> list[int]:
    """Ranks whose place, an index into `names_of_places`, has one of the names."""
    names = frozenset(wanted)
    indices = [index for index, name in enumerate(names_of_places) if name in names]
    return [int(rank) for rank in np.flatnonzero(np.isin(place, indices))]


def _runs(places: np.ndarray) -> list[tuple[int, int]]:
    """First place and end of each run of places."""
    ordered = np.unique(places)
    cuts = np.flatnonzero(np.diff(ordered) > 1) + 1
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(ordered, cuts) if run.size]
