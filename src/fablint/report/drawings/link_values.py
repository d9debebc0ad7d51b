"""Links between switches by what the pairs that cross them show: one cell of a matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fablint.model.arrays import Codes, Floats, Ints, Mask
from fablint.model.figures.grouped_values import GroupedValues
from fablint.model.names import natural
from fablint.report.survey.drawn_matrix import DrawnMatrix
from fablint.report.survey.report_source import CellSet, ReportSource
from fablint.topology.routed_placement import links_crossed
from fablint.topology.routing import Routes

MOST_CELLS = 400_000  # whose paths are followed, or more:
CELLS_OF_LINK = 8  # for each link
MOST_SWITCHES = 1500  # of a matrix


@dataclass(frozen=True)
class LinkValues:
    """Values of the links of the routes, each (links,); NaN where no pair is known to cross a link."""

    own: CellSet
    pairs: Ints  # measurements that cross it
    residual: Floats  # their median deviation, as a logarithm, without those of other findings
    time: Floats  # their median time, as a logarithm
    late: Floats | None  # share of late messages, by the probability of crossing the link


def all_links(source: ReportSource) -> dict[str, LinkValues]:
    """Links between switches, by the rows of pairs that show them; of very many switches none: no matrix shows them."""
    if "links" not in source.memo:
        is_drawn = source.routes is not None and 1 < np.unique(source.routes.ends).size <= MOST_SWITCHES
        cell_sets = source.cells if is_drawn else {}
        values_by_row = {name: link_values(cell_set, source) for name, cell_set in cell_sets.items()}
        source.memo["links"] = {name: values for name, values in values_by_row.items() if values is not None}
    return dict(source.memo["links"])


def link_values(cell_set: CellSet, source: ReportSource) -> LinkValues | None:
    """Values of all links between switches from the cells of a row; None where no path is known."""
    routes, place = source.routes, source.placement
    if routes is None or not cell_set.cells.src.size or not len(routes.ends):
        return None
    step = -(-cell_set.cells.src.size // max(MOST_CELLS, CELLS_OF_LINK * len(routes.ends)))
    positions = np.arange(0, cell_set.cells.src.size, step)
    cells = cell_set.cells.where(positions)
    code = np.append(routes.codes(place.switches), np.int32(-1))
    payload = cell_set.row.payload
    directions = {"src": [(cells.src, cells.dst)], "dst": [(cells.dst, cells.src)]}.get(
        payload, [(cells.src, cells.dst), (cells.dst, cells.src)]
    )
    count, late = len(routes.ends), None
    if cell_set.late is not None:
        cell, link, share = routes.exposure(code[place.switch[directions[0][0]]], code[place.switch[directions[0][1]]])
    else:
        crossed = [_links_crossed(routes, code[place.switch[a]], b, source) for a, b in directions]
        cell, link = (np.concatenate(parts) for parts in zip(*crossed, strict=True))
    if not link.size:
        return None
    time = GroupedValues.of(cells.time[cell], link, count).medians()
    kept = _own_only(cell_set, positions[cell], link, source)
    residual = GroupedValues.of(cells.residual[cell][kept], link[kept], count).medians()
    if cell_set.late is not None:
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(kept, share, 0.0)
            late = np.bincount(link, share * cell_set.late[0][positions][cell], count) / np.bincount(link, share, count)
    return LinkValues(cell_set, np.bincount(link, minlength=count), residual, time, late)


def _links_crossed(routes: Routes, start: Codes, to: Codes, source: ReportSource) -> tuple[Codes, Codes]:
    """Return the links that messages cross, as `links_crossed`: rows of the same pairs look them up once."""
    last = source.memo.get("crossed")
    if last is None or not all(map(np.array_equal, last[0], (start, to))):
        code = np.append(routes.codes(source.placement.switches), np.int32(-1))
        end = code[source.placement.switch[to]]
        last = (start, to), links_crossed(routes, start, end, source.placement.location[to])
        source.memo["crossed"] = last
    message, link = last[1]
    return message, link


def _own_only(cell_set: CellSet, cell: np.ndarray, link: np.ndarray, source: ReportSource) -> Mask:
    """(m,) crossings of a link by a cell that no finding about another component explains."""
    kept = np.ones(cell.size, dtype=bool)
    for links, crossing in zip(source.crossings.links, source.crossings.crossings, strict=True):
        if crossing is None:
            continue
        explained = np.zeros(cell_set.cells.src.size, dtype=bool)
        explained[source.positions_of(crossing, cell_set)] = True
        kept &= ~explained[cell] | np.isin(link, sorted(links))
    return kept


def switch_order(source: ReportSource) -> list[int]:
    """Switches of the routes that have links: by group and name."""
    assert source.routes is not None and source.diagnosis.topology is not None
    used = np.unique(source.routes.ends)
    names, switches = source.routes.switches, source.diagnosis.topology.switches
    return sorted(used.tolist(), key=lambda code: (natural(switches[names[code]].group), natural(names[code])))


def link_matrix(values: LinkValues, source: ReportSource) -> DrawnMatrix:
    """Matrix of the links between the switches of `switch_order`, as a matrix of ranks is drawn."""
    assert source.routes is not None
    order = switch_order(source)
    place = np.full(len(source.routes.switches), -1)
    place[order] = np.arange(len(order))
    time, deviation = (np.full((len(order), len(order)), np.nan, np.float32) for _ in range(2))
    ends = place[source.routes.ends[:, 0]], place[source.routes.ends[:, 1]]
    time[ends], deviation[ends] = values.time, values.residual
    return DrawnMatrix(np.arange(len(order)), 1, time, deviation)
