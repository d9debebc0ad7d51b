"""The report as one self-contained HTML page: no request leaves it, and nothing in it is markup but its template."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

from jinja2 import Template

from fablint.model import Diagnosis, Run
from fablint.report import finding_order, run_facts, scopes, summary
from fablint.report.canvas.figures import draw_layers, draw_topology
from fablint.report.canvas.svg import svg
from fablint.report.coverage_words import coverage_of_fabric
from fablint.report.drawings import finding_charts
from fablint.report.drawings.curves import curve
from fablint.report.drawings.palette import css_variables
from fablint.report.drawings.plots import Plot
from fablint.report.drawings.strips import timeline
from fablint.report.drawings.topology_drawing import drawing
from fablint.report.html import charts, pair_lists
from fablint.report.html.core_pairs import core_pairs
from fablint.report.html.fact_lists import all_facts, changed_counters
from fablint.report.html.maps import page_data
from fablint.report.html.node_sets import node_sets
from fablint.report.html.packing import embeddable
from fablint.report.html.shown_ranks import left_out
from fablint.report.html.transport_sections import split_blocks, transport_sections
from fablint.report.self_contained import asset, page_template, source_hash, write_page
from fablint.report.survey.path_lengths import deviations
from fablint.report.survey.report_source import ReportSource
from fablint.text import units
from fablint.text.actions import advice
from fablint.text.evidence_sentences import sentences

MOST_ALL_OPEN = 3  # findings that are all open; of more, the first MOST_OPEN
MOST_OPEN = 1
MOST_LISTED = 8  # findings with a line each before the map; of more, the rest behind one line
MOST_LINKED_ROWS = 6  # rows with a link each in the contents
SCRIPTS = (
    *("matrix.js", "axes.js", "blocks.js", "colours.js", "marks.js", "margins.js", "view.js", "focus.js"),
    *("nodeset.js", "tables.js", "run_tables.js", "controls.js"),
)


def write_html(run: Run, diagnosis: Diagnosis, path: Path) -> None:
    """Write the report of a run as a page.

    Parameters
    ----------
    run
        The run; its matrices are read once, in blocks.
    diagnosis
        Findings and verdict of the run.
    path
        File to write, replaced in one step. Its folder is made if it is missing.

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
    source = ReportSource(run, diagnosis)
    findings, surveys = source.found, source.surveys
    style, script = css_variables() + asset("report.css"), "".join(map(asset, SCRIPTS))
    drawn, transports = drawing(source), transport_sections(run, run.rows)
    blocks, rows = split_blocks(
        [charts.RowCharts.of(run, row, surveys[row.name], findings) for row in source.rows], transports
    )
    sections = {
        "core_pairs": core_pairs(source),
        "thresholds": diagnosis.comparison.compared if diagnosis.comparison else (),
        "transports": transports,
        "topology": drawn,
        "distances": scopes.scope_lines(run, source.placement, surveys),
    }
    return _template().render(
        title=run_facts.title(run),
        run=run,
        verdict=diagnosis.verdict,
        notes=run_facts.notes(run, diagnosis),
        word=finding_order.word(diagnosis.verdict),
        headline=finding_order.headline(diagnosis.verdict, run_facts.local_figures(run, diagnosis)),
        limits=finding_order.limits(diagnosis.verdict),
        head=summary.head_facts(run),
        found=findings,
        sets=node_sets(source),
        strips=finding_charts.strips(source),
        timelines=timelines(source),
        curves={row.name: curve(surveys[row.name]) for row in source.rows},
        **sections,
        contents=contents({name for name, section in sections.items() if section}, rows),
        topology_svg=svg(partial(draw_topology, drawing=drawn)) if drawn else "",
        blocks=blocks,
        all_facts=all_facts(run),
        counters=changed_counters(run),
        slowest=pair_lists.of_findings(source),
        coverage=coverage_of_fabric(source),
        further=source.further,
        left_out=left_out(source),
        simulated=run.facts.simulated is not None,
        charts_of=rows,
        rows=[summary.row_summary(row) for row in run.rows],
        launch=summary.launch_facts(run),
        style=style,
        script=script,
        style_hash=source_hash(style),
        script_hash=source_hash(script),
        data=embeddable(page_data(source)),
    )


@cache
def _template() -> Template:
    """The template of the page, compiled once."""
    return page_template(
        "report.html.j2",
        text=units,
        findings=finding_order,
        facts=run_facts,
        charts=charts,
        scopes=scopes,
        sentences=sentences,
        advice=advice,
        len=len,
        layers=lambda plot: svg(partial(draw_layers, plot=plot)),
        MOST_ALL_OPEN=MOST_ALL_OPEN,
        MOST_OPEN=MOST_OPEN,
        MOST_LISTED=MOST_LISTED,
    )


def contents(present: set[str], rows: Sequence[charts.RowCharts]) -> list[tuple[str, str]]:
    """Anchors and titles of the sections of a page that are `present`, and of its rows."""
    titles = {
        "thresholds": "Thresholds",
        "transports": "Transports",
        "core_pairs": "Pairs of cores",
        "matrix-section": "Pairs and links",  # shown by the script, with its section
        "topology": "Topology",
        "distances": "By distance",
    }
    linked = rows if len(rows) <= MOST_LINKED_ROWS else rows[:1]
    names = [(f"row-{number}", row.name if linked is rows else "Rows") for number, row in enumerate(linked, start=1)]
    shown = [(name, title) for name, title in titles.items() if name in {*present, "matrix-section"}]
    return [*shown, *names, ("facts", "How this was measured")]


def timelines(source: ReportSource) -> dict[str, Plot | None]:
    """Deviations of all pairs over time, by row, each from pairs of the same distance."""
    return {
        name: timeline(cell_set.row, cell_set.size, cell_set.cells, deviations(cell_set, source))
        for name, cell_set in source.cells.items()
    }
