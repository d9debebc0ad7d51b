"""The components of the findings on the maps: bars at the axes, and frames around the pairs that use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fablint.model import Finding
from fablint.report import finding_order
from fablint.report.html.component_pairs import ComponentPairs
from fablint.report.html.finding_charts import crossed
from fablint.report.html.link_values import link_cells
from fablint.report.html.packing import packed
from fablint.report.html.page_data import CellSet, PageSource


@dataclass(frozen=True)
class MapMark:
    """A finding on the maps: what the page needs of it, and the pairs that use its component, where they are known."""

    facts: dict[str, Any]
    crossing: ComponentPairs | None


def marks_of(source: PageSource) -> list[MapMark]:
    """Marks of the findings that have a place on a map, in the order of the findings."""
    if "marks" not in source.memo:
        crossings = source.crossings.crossings
        cells = link_cells(source)
        marks = []
        for index, finding in enumerate(finding_order.faulty(source.found)):
            drawn = finding in source.crossings.findings[index : index + 1] and index < len(crossings)
            crossing = crossings[index] if drawn else None
            marks.append(_mark(finding, crossing, cells[index] if crossing else [], source))
        source.memo["marks"] = [one for one in marks if one is not None]
    return list(source.memo["marks"])


def _mark(
    finding: Finding, crossing: ComponentPairs | None, links: list[tuple[int, int]], source: PageSource
) -> MapMark | None:
    """The mark of a finding; None without a place, or where it would cover the whole map."""
    ends = [runs for ranks in marked_ranks(finding, source) if (runs := _runs(source.place[ranks]))]
    frames = crossing.rectangles(source.order, source.placement.switch) if crossing else []
    if crossing is None and ends == [[(0, source.run.ranks)]]:
        return None
    if not ends and not frames and not links:
        return None
    only = None
    if crossing and crossing.tx.any() != crossing.rx.any():
        only = "tx" if crossing.tx.any() else "rx"
    facts = {
        "state": str(finding.state),
        "name": finding.name,
        "ends": ends,
        "hosts": bool(finding.hosts),
        "direction": only,
        "links": links,
        "frames": packed(np.array(frames, dtype=np.int32).ravel(), "<i4"),
    }
    return MapMark(facts, crossing)


def measured_of(own: CellSet, source: PageSource) -> list[npt.NDArray[np.intp]]:
    """For each mark the positions of the cells whose messages use its component."""
    nothing = np.zeros(0, dtype=np.intp)
    return [crossed(one.crossing, own, source) if one.crossing else nothing for one in marks_of(source)]


def marked_ranks(finding: Finding, source: PageSource) -> list[list[int]]:
    """Ranks at each end of a finding's part; of a cable `HOST=SWITCH` those of the host, whose traffic is all there."""
    ends = finding_order.ends(finding)
    placement = source.placement
    on_hosts = [_ranks_on(names, source.run.hosts, placement.host) for names in ends]
    if any(on_hosts):
        return [ranks for ranks in on_hosts if ranks]
    return [_ranks_on(names, placement.switches, placement.switch) for names in ends]


def _ranks_on(wanted: Sequence[str], known: Sequence[str], place: np.ndarray) -> list[int]:
    """Ranks whose place, an index into `known`, has one of the names."""
    names = frozenset(wanted)
    indices = [index for index, name in enumerate(known) if name in names]
    return [int(rank) for rank in np.flatnonzero(np.isin(place, indices))]


def _runs(places: np.ndarray) -> list[tuple[int, int]]:
    """First place and end of each run of places."""
    ordered = np.unique(places)
    cuts = np.flatnonzero(np.diff(ordered) > 1) + 1
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(ordered, cuts) if run.size]
