"""Links between switches by what the pairs that cross them show: one cell of a matrix, one line of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fablint.model.arrays import Floats, Ints, Mask
from fablint.model.figures.grouped_values import GroupedValues
from fablint.model.names import natural
from fablint.report.drawings.finding_charts import crossed
from fablint.report.drawings.scales import bulk_scale, deviation_scale
from fablint.report.html.block_maps import common_facts, planes
from fablint.report.survey.report_source import CellSet, ReportSource
from fablint.text import units

MOST_CELLS = 400_000  # whose paths are followed, or more:
CELLS_OF_LINK = 8  # for each link
MOST_SWITCHES = 1500


@dataclass(frozen=True)
class LinkValues:
    """Values of the links of the routes, each (links,); NaN where no pair is known to cross a link."""

    own: CellSet
    pairs: Ints  # measurements that cross it
    residual: Floats  # their median deviation, as a logarithm, without those of other findings
    time: Floats  # their median time, as a logarithm
    late: Floats | None  # share of late messages, by the probability of crossing the link


def all_links(source: ReportSource) -> dict[str, LinkValues]:
    """Links between switches, by the rows of pairs that show them."""
    if "links" not in source.memo:
        found = {name: link_values(own, source) for name, own in source.cells.items()}
        source.memo["links"] = {name: values for name, values in found.items() if values is not None}
    return dict(source.memo["links"])


def link_values(own: CellSet, source: ReportSource) -> LinkValues | None:
    """Values of all links between switches from the cells of a row; None where no path is known."""
    routes, place = source.routes, source.placement
    if routes is None or not own.cells.src.size or not len(routes.ends):
        return None
    step = -(-own.cells.src.size // max(MOST_CELLS, CELLS_OF_LINK * len(routes.ends)))
    positions = np.arange(0, own.cells.src.size, step)
    cells = own.cells.where(positions)
    code = np.append(routes.codes(place.switches), np.int32(-1))
    payload = own.row.payload
    directions = {"src": [(cells.src, cells.dst)], "dst": [(cells.dst, cells.src)]}.get(
        payload, [(cells.src, cells.dst), (cells.dst, cells.src)]
    )
    count, late = len(routes.ends), None
    if own.late is not None:
        cell, link, share = routes.exposure(code[place.switch[directions[0][0]]], code[place.switch[directions[0][1]]])
    else:
        cells_of, links = [], []
        for a, b in directions:
            hops = routes.hops(code[place.switch[a]], code[place.switch[b]], place.location[b])
            which, column = np.nonzero(hops >= 0)
            cells_of.append(which)
            links.append(hops[which, column])
        cell, link = np.concatenate(cells_of), np.concatenate(links)
    if not link.size:
        return None
    time = GroupedValues.of(cells.time[cell], link, count).medians()
    kept = _own_only(own, positions[cell], link, source)
    residual = GroupedValues.of(cells.residual[cell][kept], link[kept], count).medians()
    if own.late is not None:
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(kept, share, 0.0)
            late = np.bincount(link, share * own.late[0][positions][cell], count) / np.bincount(link, share, count)
    return LinkValues(own, np.bincount(link, minlength=count), residual, time, late)


def _own_only(own: CellSet, cell: np.ndarray, link: np.ndarray, source: ReportSource) -> Mask:
    """(m,) crossings of a link by a cell that no finding about another component explains."""
    kept = np.ones(cell.size, dtype=bool)
    for links, crossing in zip(source.crossings.links, source.crossings.crossings, strict=True):
        if crossing is None:
            continue
        explained = np.zeros(own.cells.src.size, dtype=bool)
        explained[crossed(crossing, own, source)] = True
        kept &= ~explained[cell] | np.isin(link, sorted(links))
    return kept


def switch_order(source: ReportSource) -> list[int]:
    """Switches of the routes that have links: by group and name."""
    assert source.routes is not None and source.diagnosis.topology is not None
    used = np.unique(source.routes.ends)
    names, switches = source.routes.switches, source.diagnosis.topology.switches
    return sorted(used.tolist(), key=lambda code: (natural(switches[names[code]].group), natural(names[code])))


def link_map(values: LinkValues, source: ReportSource) -> dict[str, Any] | None:
    """Matrix of the links: from a switch, down, to a switch, across."""
    assert source.routes is not None
    order = switch_order(source)
    if not 1 < len(order) <= MOST_SWITCHES:
        return None
    place = np.full(len(source.routes.switches), -1)
    place[order] = np.arange(len(order))
    count = len(order)
    cell = place[source.routes.ends[:, 0]] * count + place[source.routes.ends[:, 1]]
    late = values.late
    time = values.time if late is None else late
    residual = values.residual if late is None else np.full(time.size, np.nan)
    known = values.residual[np.isfinite(values.residual)]
    row, size = values.own.row, values.own.size
    measured = time[np.isfinite(time)]
    usual = 4 * float(np.median(measured)) + 0.02  # end of the scale of a healthy fabric
    of_findings = late[sorted(frozenset().union(*source.crossings.links))] if late is not None else measured[:0]
    worst = float(np.fmax.reduce(of_findings, initial=usual))
    scale = bulk_scale(measured) if late is None else [0.0, min(1.0, worst)]
    kind = "late messages of the links" if late is not None else "links between switches"
    return (
        common_facts(row, size, "link", [source.routes.switches[code] for code in order])
        | {
            "label": f"{row.name}, {units.size(size)}: {kind}",
            **planes(cell, time, residual, values.pairs),
            "fitted": late is None and bool(known.size),
            "raw_scale": scale,
            "residual_scale": (width := deviation_scale(known)),
            "noise": width / 8,
        }
        | ({} if late is None or values.own.late is None else {"late": values.own.late[1], "slow": usual / 2})
    )


def link_cells(source: ReportSource) -> list[list[tuple[int, int]]]:
    """For each finding with frames the cells of its links in the matrix: down, across."""
    if source.routes is None:
        return [[] for _ in source.crossings.links]
    place = {code: index for index, code in enumerate(switch_order(source))}
    ends = source.routes.ends.tolist()
    return [
        [(place[ends[link][0]], place[ends[link][1]]) for link in sorted(links)] for links in source.crossings.links
    ]
