"""The maps of the page, and the components of the findings on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fablint.model import Row, State
from fablint.report import finding_order
from fablint.report.drawings.link_values import all_links
from fablint.report.drawings.scales import NARROWEST, bulk_ends
from fablint.report.html import block_maps
from fablint.report.html.core_pairs import has_core_pairs
from fablint.report.html.link_maps import link_map
from fablint.report.html.marks import marks_of, measured_of
from fablint.report.html.packing import number, packed
from fablint.report.html.pair_lists import repeated
from fablint.report.html.shown_ranks import ShownRanks
from fablint.report.survey.heatmap import HeatMap
from fablint.report.survey.report_source import ReportSource, has_pairs
from fablint.report.survey.row_survey import SizeSurvey
from fablint.text import units

_FEWEST_CELLS = 4  # of a map
MOST_COLUMNS = 20_000  # ranks of a map of rounds that is shown first: of more, each pixel is the worst of many
MOST_SIDE = 4  # ranks of a cell of a matrix that is shown first: of more, nearly each block has a slow measurement
MOST_WORST = 20


def page_data(source: ReportSource) -> dict[str, Any]:
    """Everything for the script. Arrays are base64 of little-endian int32 or float32."""
    marks = [one.facts for one in marks_of(source)]
    shown = ShownRanks.of(source, marks)
    maps, models = _maps(source, shown)
    return {
        **shown.facts(source),
        "marks": [shown.mark(mark) for mark in marks],
        "maps": maps,
        "models": models,
        "first": _first_map(maps, source),
    }


def _maps(source: ReportSource, shown: ShownRanks) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Maps of all rows and sizes: medians over blocks first where rounds leave most pairs unmeasured; and the models of
    those that have no map of pairs.
    """
    maps: list[dict[str, Any]] = []
    models: list[dict[str, Any]] = []
    if has_core_pairs(source.run):
        return maps, models
    for row in source.rows:
        if not has_pairs(row) or source.cells[row.name].cells.src.size < _FEWEST_CELLS:
            continue
        surveys = [one for one in source.surveys[row.name] if one.distribution.pairs()]
        pairs = [_pair_map(one, heatmap, source, shown) for one in surveys if (heatmap := one.heatmap) is not None]
        models += [_model(one, source, shown) for one in surveys if one.heatmap is None]
        blocks = _block_maps(row, source, shown)
        maps += [*blocks, *pairs] if row.layout == "list" else [*pairs, *blocks]
    return maps, models


def _block_maps(row: Row, source: ReportSource, shown: ShownRanks) -> list[dict[str, Any]]:
    """Matrices of medians of a row."""
    cell_set, blocks = source.cells[row.name], []
    for division in block_maps.divisions(source.placement, source.order, cell_set.cells.src.size, len(source.cells)):
        groups = block_maps.BlockCells.of(cell_set.cells, division, source.place)
        frames = groups.frames(measured_of(cell_set, source))
        starts = {"starts": packed(shown.places_of(division.starts), "<i4")}
        if cell_set.late is not None:
            blocks.append(starts | block_maps.late_map(row, cell_set.size, groups, cell_set.late, frames))
        blocks.append(starts | block_maps.block_map(row, cell_set.size, cell_set.cells, groups, frames))
    values = all_links(source).get(row.name)
    return blocks if values is None else [*blocks, link_map(values, source)]


def _first_map(maps: Sequence[Mapping[str, Any]], source: ReportSource) -> int:
    """Index of the map in which the worst finding is seen best: of rounds a host by its column, a link by its cell.

    Without a finding the first one of deviations.
    """
    judged = (one for one in finding_order.faulty(source.found) if one.state is not State.NOT_JUDGED)
    worst = next(judged, None)
    links, with_hosts = frozenset(source.routes.switches if source.routes else ()), frozenset(source.placement.switches)
    rate = worst is not None and worst.quantity == "bandwidth"
    rows = {one.row for one in worst.evidence} if worst else set()
    between = worst is not None and worst.nodes <= links and worst.component in ("link", "cable", "port", "switch")
    between = between and not (worst and worst.component == "switch" and worst.nodes <= with_hosts)
    rounds = {
        values["row"]
        for values in maps
        if not source.is_whole or values.get("layout") == "list" or values.get("side", 1) > MOST_SIDE
    }

    def score(index: int) -> tuple[bool | int, ...]:
        item = maps[index]
        sizes = [other["size"] for other in maps if other["row"] == item["row"]]
        informative = item["size"] == (max(sizes) if item["rate"] else min(sizes))
        return item["row"] not in rows, item["rate"] != rate, not informative, not is_best(item), index

    def is_best(item: Mapping[str, Any]) -> bool:
        if worst is None:
            return "late" not in item
        if item["row"] not in rounds:
            return True
        many = source.run.ranks > MOST_COLUMNS or any(other.get("side", 1) > MOST_SIDE for other in maps)
        if between or not worst.hosts or worst.direction == "rx" or many:
            kind = "link" if between else "group" if worst.component == "group" else "switch"
            return item.get("kind") == kind and (between or "late" not in item)
        return item.get("layout") == "list"

    return min(range(len(maps)), key=score, default=0)


def _pair_map(size_survey: SizeSurvey, heatmap: HeatMap, source: ReportSource, shown: ShownRanks) -> dict[str, Any]:
    """A map of pairs, or of rounds, with its model and its worst pairs."""
    fit = size_survey.fit
    healthy = fit.healthy if fit else np.zeros((2, source.run.ranks))
    return (
        heatmap.encode()
        | _model(size_survey, source, shown)
        | {
            "completed": source.memo.get("completed", {}).get(size_survey.row.name, ()),
            "raw_scale": bulk_ends(*heatmap.bulk((0.005, 0.05, 0.95, 0.999))),
            "residual_scale": float(np.clip(8 * fit.noise, NARROWEST, 1.0)) if fit and np.isfinite(fit.noise) else 0.2,
            "class_log": [number(value) for value in size_survey.class_log],
            "tx": packed(healthy[0], "<f4"),
            "rx": packed(healthy[1], "<f4"),
        }
    )


def _model(size_survey: SizeSurvey, source: ReportSource, shown: ShownRanks) -> dict[str, Any]:
    """Return the effects of the ranks at one size of a row, and its slowest pairs."""
    fit = size_survey.fit
    cell_set = source.cells[size_survey.row.name]
    effects = (fit.tx, fit.rx) if fit else np.zeros((2, source.run.ranks))
    label = f"{size_survey.row.name}, {units.size(size_survey.size)}"
    return {
        "row": size_survey.row.name,
        "label": f"{label}: rounds" if size_survey.row.layout == "list" else f"{label}: every pair",
        "size": size_survey.size,
        "rate": units.is_rate(size_survey.row.quantity),
        "bytes": size_survey.row.counted_bytes(size_survey.size),
        "payload": size_survey.row.payload,
        "backwards": size_survey.row.payload == "dst",
        "fitted": fit is not None,
        "noise": fit.noise if fit and np.isfinite(fit.noise) else 0.0,
        "effects": [packed(np.nan_to_num(np.asarray(effect)[shown.ranks]), "<f4") for effect in effects],
        "worst": shown.pairs(_unexplained(size_survey, source)),
        "repeated": [] if size_survey.size != cell_set.size else shown.pairs(repeated(cell_set, source)),
    }


def _unexplained(size_survey: SizeSurvey, source: ReportSource) -> list[tuple[int, int, float, float | None]]:
    """The slowest pairs that use no component of a finding: sender, receiver, seconds, deviation."""
    is_explained = source.are_explained(size_survey.worst_ends, size_survey.row)
    left = [pair for pair, by in zip(size_survey.worst, is_explained.tolist(), strict=True) if not by]
    return [(pair.src, pair.dst, pair.seconds, number(pair.residual)) for pair in left[:MOST_WORST]]
