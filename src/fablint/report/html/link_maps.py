"""Links between switches on the page: one cell of a matrix, one line of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from fablint.report.drawings.link_values import LinkValues, switch_order
from fablint.report.drawings.scales import bulk_scale, deviation_scale
from fablint.report.html.block_maps import common_facts, planes
from fablint.report.survey.report_source import ReportSource
from fablint.text import units


def link_map(values: LinkValues, source: ReportSource) -> dict[str, Any]:
    """Matrix of the links: from a switch, down, to a switch, across."""
    assert source.routes is not None
    order = switch_order(source)
    place = np.full(len(source.routes.switches), -1)
    place[order] = np.arange(len(order))
    count = len(order)
    cell = place[source.routes.ends[:, 0]] * count + place[source.routes.ends[:, 1]]
    late = values.late
    time = values.time if late is None else late
    residual = values.residual if late is None else np.full(time.size, np.nan)
    finite_residuals = values.residual[np.isfinite(values.residual)]
    row, size = values.own.row, values.own.size
    measured = time[np.isfinite(time)]
    usual = 4 * float(np.median(measured)) + 0.02  # end of the scale of a healthy fabric
    late_of_findings = late[sorted(frozenset().union(*source.crossings.links))] if late is not None else measured[:0]
    worst = float(np.fmax.reduce(late_of_findings, initial=usual))
    scale = bulk_scale(measured) if late is None else [0.0, min(1.0, worst)]
    kind = "late messages of the links" if late is not None else "links between switches"
    return (
        common_facts(row, size, "link", [source.routes.switches[code] for code in order])
        | {
            "label": f"{row.name}, {units.size(size)}: {kind}",
            **planes(cell, time, residual, values.pairs),
            "fitted": late is None and bool(finite_residuals.size),
            "raw_scale": scale,
            "residual_scale": (width := deviation_scale(finite_residuals)),
            "noise": width / 8,
        }
        | ({} if late is None or values.own.late is None else {"late": values.own.late[1], "slow": usual / 2})
    )


def link_cells(source: ReportSource) -> list[list[tuple[int, int]]]:
    """Return for each finding with frames the cells of its links in the matrix: down, across."""
    if source.routes is None:
        return [[] for _ in source.crossings.links]
    place = {code: index for index, code in enumerate(switch_order(source))}
    ends = source.routes.ends.tolist()
    return [
        [(place[ends[link][0]], place[ends[link][1]]) for link in sorted(links)] for links in source.crossings.links
    ]
