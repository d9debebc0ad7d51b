"""The report as one self-contained HTML page: no request leaves it, and nothing in it is markup but its template."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, StrictUndefined

from fablint.model import Diagnosis, Finding, Run
from fablint.model.verdict import Action
from fablint.report import finding_order, run_facts, scopes, summary
from fablint.report.html import charts, finding_charts, pair_lists
from fablint.report.html.coverage_words import coverage_words
from fablint.report.html.drawings.curves import curve
from fablint.report.html.drawings.plots import Plot
from fablint.report.html.drawings.strips import timeline
from fablint.report.html.drawings.topology_drawing import drawing
from fablint.report.html.fact_lists import all_facts, changed_counters
from fablint.report.html.maps import page_data
from fablint.report.html.page_data import PageSource, embeddable
from fablint.report.html.path_lengths import deviations
from fablint.report.html.transport_sections import transport_sections
from fablint.report.self_contained import asset, source_hash, write_page
from fablint.text import units
from fablint.text.action_sentences import advice
from fablint.text.evidence_sentences import sentences

SCRIPTS = (
    *("matrix.js", "axes.js", "blocks.js", "colours.js", "marks.js", "margins.js", "view.js"),
    *("nodeset.js", "tables.js", "run_tables.js", "controls.js"),
)


def write_html(run: Run, diagnosis: Diagnosis, path: Path) -> None:
    """Write the report of a run to `path`, replacing what was there in one step. Makes the folder if it is missing.

    Reads the run's matrices once, in blocks.

    Raises
    ------
    IncompleteError
        The disk is full.
    UsageError
        The page cannot be written for another reason.
    """
    write_page(render(run, diagnosis), path, "fablint report")


def render(run: Run, diagnosis: Diagnosis) -> str:
    """The page as a string."""
    source = PageSource(run, diagnosis)
    found, surveys = source.found, source.surveys
    style, script = asset("report.css"), "".join(map(asset, SCRIPTS))
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.globals.update(text=units, findings=finding_order, facts=run_facts, charts=charts, scopes=scopes)
    environment.globals.update(sentences=sentences, advice=advice, len=len, next_step=next_step)
    return environment.from_string(asset("report.html.j2")).render(
        title=run_facts.title(run),
        run=run,
        verdict=diagnosis.verdict,
        notes=run_facts.notes(run, diagnosis),
        word=finding_order.word(diagnosis.verdict),
        headline=finding_order.headline(diagnosis.verdict),
        found=found,
        strips=finding_charts.strips(source),
        timelines=timelines(source),
        curves={row.name: curve(surveys[row.name]) for row in source.rows},
        drawing=drawing(source),
        transports=transport_sections(run, run.rows),
        all_facts=all_facts(run),
        counters=changed_counters(run),
        slowest=pair_lists.of_findings(source),
        coverage=coverage_words(source),
        simulated="simulated" in run.attributes,
        distances=scopes.scope_lines(run, source.placement, surveys),
        thresholds=diagnosis.comparison.compared if diagnosis.comparison else (),
        charts_of=[charts.RowCharts.of(run, row, surveys[row.name], found) for row in source.rows],
        rows=[summary.row_facts(row) for row in run.rows],
        launch=summary.launch_facts(run),
        style=style,
        script=script,
        style_hash=source_hash(style),
        script_hash=source_hash(script),
        data=embeddable(page_data(source)),
    )


def timelines(source: PageSource) -> dict[str, Plot | None]:
    """Deviations of all pairs over time, by row, each from pairs of the same distance."""
    return {name: timeline(own.row, own.size, own.cells, deviations(own, source)) for name, own in source.cells.items()}


def next_step(finding: Finding, run: Run) -> tuple[Action, ...]:
    """What to do about a finding; of a simulated run without measuring again."""
    again = finding.next_step if "simulated" not in run.attributes else ()
    kept = (one for one in finding.next_step if one.kind not in ("retest", "resume") and "measure" not in one.kind)
    return again or tuple(kept)
