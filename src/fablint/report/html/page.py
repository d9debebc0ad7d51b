"""The report as one self-contained HTML page: no request leaves it, and nothing in it is markup but its template."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined

from fablint.errors import IncompleteError, UsageError
from fablint.model import SCOPES, Diagnosis, Finding, Placement, Row, Run
from fablint.report import finding_order, run_facts, scopes, summary
from fablint.report.conditions import conditions
from fablint.report.html import charts
from fablint.report.survey.heatmap import block_side, topological_order
from fablint.report.survey.row_survey import SizeSurvey, survey
from fablint.system import DISK_FULL, replace_text
from fablint.text import units
from fablint.text.action_sentences import advice
from fablint.text.evidence_sentences import sentences


def write_html(run: Run, diagnosis: Diagnosis, path: Path) -> None:
    """Write the report of a run to `path`, replacing what was there in one step. Makes the folder if it is missing.

    Reads the run's matrices once, in blocks.

    Raises:
        IncompleteError: the disk is full.
        UsageError: the page cannot be written for another reason.
    """
    page = render(run, diagnosis)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, page)
    except OSError as error:
        if error.errno in DISK_FULL:
            hint = "free space, then fablint report"
            raise IncompleteError(f"cannot write the report {path}: {error.strerror}", hint) from None
        raise UsageError(f"cannot write the report {path}: {error.strerror}", "choose another output") from error


def render(run: Run, diagnosis: Diagnosis) -> str:
    """The page as a string."""
    placement = Placement.of(run, diagnosis.topology)
    surveys = _surveys(run, diagnosis, placement)
    found = finding_order.ordered(diagnosis.verdict)
    style, script = _asset("report.css"), "".join(map(_asset, ("map.js", "view.js", "controls.js")))
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.globals.update(text=units, findings=finding_order, facts=run_facts, charts=charts, scopes=scopes)
    environment.globals.update(sentences=sentences, advice=advice, len=len)
    return environment.from_string(_asset("report.html.j2")).render(
        title=run.path.name if run.path else "a run in memory",
        run=run,
        verdict=diagnosis.verdict,
        notes=run_facts.notes(run, diagnosis),
        word=finding_order.word(diagnosis.verdict),
        headline=finding_order.headline(diagnosis.verdict),
        found=found,
        distances=scopes.scope_lines(run, placement, surveys),
        thresholds=diagnosis.comparison.compared if diagnosis.comparison else (),
        charts_of=[charts.RowCharts.of(run, row, surveys[row.name], found) for row in surveyed(run)],
        rows=[summary.row_facts(row) for row in run.rows],
        launch=summary.launch_facts(run),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=embeddable(page_data(run, placement, surveys, found)),
    )


def embeddable(value: Any) -> str:
    """JSON that can stand inside a script element: no `<`, `>` or `&` survives unescaped."""
    escapes = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
    return re.sub("[<>&\u2028\u2029]", lambda match: escapes[match[0]], json.dumps(value, allow_nan=False))


def page_data(
    run: Run, placement: Placement, surveys: Mapping[str, list[SizeSurvey]], found: list[Finding]
) -> dict[str, Any]:
    """All that the page's script needs. Arrays are base64 of little-endian int32 or float32."""
    shown = [one for row in surveyed(run) if _has_pairs(row) for one in surveys[row.name]]
    return {
        "ranks": run.ranks,
        "hosts": run.hosts,
        "host": _packed(placement.host, "<i4"),
        "switch": _packed(placement.switch, "<i4"),
        "group": _packed(placement.group, "<i4"),
        "switches": placement.switches,
        "order": _packed(topological_order(placement), "<i4"),
        "scopes": [str(scope) for scope in SCOPES],
        "marks": [
            {
                "state": str(finding.state),
                "name": finding.name,
                "ends": ends,
                "directed": finding.components[0].directed,
            }
            for finding in finding_order.faulty(found)
            if all(ends := marked_ranks(finding, run, placement))
        ],
        "maps": [_map(one, run) for one in shown],
        "first": _first_map(shown, found),
    }


def _first_map(shown: list[SizeSurvey], found: list[Finding]) -> int:
    """Index of the map in which the worst finding is seen best."""
    quantity = next((finding.quantity for finding in finding_order.faulty(found)), None)
    informative = (
        index
        for index, one in enumerate(shown)
        if units.is_rate(one.row.quantity) == (quantity == "bandwidth")
        and one.size == run_facts.informative_size(one.row)
    )
    return next(informative, 0)


def marked_ranks(finding: Finding, run: Run, placement: Placement) -> list[list[int]]:
    """Ranks at each end of a finding's part; of a cable `HOST=SWITCH` those of the host, whose traffic is all there."""
    ends = finding_order.ends(finding)
    on_hosts = [_ranks_on(names, run.hosts, placement.host) for names in ends]
    if any(on_hosts):
        return [ranks for ranks in on_hosts if ranks]
    return [_ranks_on(names, placement.switches, placement.switch) for names in ends]


def _ranks_on(wanted: Sequence[str], known: Sequence[str], place: np.ndarray) -> list[int]:
    """Ranks whose place, an index into `known`, has one of the names."""
    names = frozenset(wanted)
    indices = [index for index, name in enumerate(known) if name in names]
    return [int(rank) for rank in np.flatnonzero(np.isin(place, indices))]


def surveyed(run: Run) -> list[Row]:
    """Rows that stored times; a row measured under several conditions as one row for each."""
    return [part for row in run.rows if run_facts.statistic(row) for part in conditions(row)]


def _has_pairs(row: Row) -> bool:
    """Has it anything to draw a map of? Collectives have no pairs."""
    return row.pattern != "world"


def _surveys(run: Run, diagnosis: Diagnosis, placement: Placement) -> dict[str, list[SizeSurvey]]:
    """Surveys of all rows that stored times, by row name."""
    order = topological_order(placement)
    rows = surveyed(run)
    side = block_side(run.ranks, sum(len(row.sizes) for row in rows if _has_pairs(row)))
    fits = {row.name: {fit.size: fit for fit in diagnosis.fits if fit.row == row.name} for row in rows}
    return {row.name: survey(row, fits[row.name], placement, order, side) for row in rows}


def _map(one: SizeSurvey, run: Run) -> dict[str, Any]:
    """One map with its model and its worst pairs."""
    distribution, fit = one.distribution, one.fit
    empty = not distribution.pairs()
    low, middle, high = (1e-6,) * 3 if empty else (distribution.quantile(share) for share in (0.005, 0.5, 0.999))
    zeros = np.zeros(run.ranks)
    healthy = fit.healthy if fit else (zeros, zeros)
    return one.heatmap.encode() | {
        "row": one.row.name,
        "label": f"{one.row.name}, {units.size(one.size)}",
        "size": one.size,
        "rate": units.is_rate(one.row.quantity),
        "backwards": one.row.payload == "dst",
        "fitted": fit is not None,
        "raw_scale": [float(np.log(low)), float(np.log(max(high, 1.5 * middle)))],
        "residual_scale": max(0.02, min(1.0, 8 * fit.noise)) if fit and np.isfinite(fit.noise) else 0.2,
        "noise": fit.noise if fit and np.isfinite(fit.noise) else 0.0,
        "class_log": [_number(value) for value in one.class_log],
        "tx": _packed(healthy[0], "<f4"),
        "rx": _packed(healthy[1], "<f4"),
        "effects": [_packed(np.nan_to_num(effect), "<f4") for effect in ((fit.tx, fit.rx) if fit else healthy)],
        "worst": [[pair.src, pair.dst, pair.seconds, _number(pair.residual)] for pair in one.worst],
    }


def _number(value: float) -> float | None:
    """JSON knows no NaN."""
    return float(value) if np.isfinite(value) else None


def _packed(values: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.asarray(values).astype(kind).tobytes()).decode()


def _asset(name: str) -> str:
    return resources.files("fablint.report.html").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(source: str) -> str:
    """The source expression that lets the page's policy accept exactly this style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
