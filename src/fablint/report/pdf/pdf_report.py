"""The report of a run as a PDF of A4 pages: verdict, thresholds, configuration, figures, hosts, and signatures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import CondPageBreak, KeepTogether, SimpleDocTemplate, Spacer

from fablint.model import Diagnosis, Fit, Placement, Row, Run, State
from fablint.report import finding_order, run_facts, scopes, summary
from fablint.report.canvas.fonts import REGULAR, fitted, printable
from fablint.report.coverage_words import coverage_of_fabric
from fablint.report.drawings import finding_charts
from fablint.report.drawings.curves import curve
from fablint.report.drawings.histograms import histograms
from fablint.report.drawings.link_values import all_links, link_matrix, switch_order
from fablint.report.drawings.matrix_drawing import axis_labels, colour_scales, labels_of
from fablint.report.drawings.topology_drawing import drawing
from fablint.report.pdf.page_layout import MARGIN, banner, paragraph, table
from fablint.report.pdf.pdf_figures import histogram_figure, matrix_figure, plot_figure, topology_figure
from fablint.report.survey.drawn_matrix import drawn_matrix
from fablint.report.survey.report_source import ReportSource, drawn_rows
from fablint.report.survey.row_survey import OutlierPair, SizeSurvey, counted, survey
from fablint.report.survey.size_lines import FEWEST_PAIRS, SizeLine, size_line
from fablint.report.tables.transports import cells as transport_cells, heading as transport_heading, rma_words
from fablint.report.transport_comparison import transport_comparisons
from fablint.text import units
from fablint.version import __version__

MOST_STRIPS = 4  # findings whose pairs are drawn over time, the gravest
_SLOWEST = 20
_MOST_LINES = 300  # of the table of hosts
_FINDING_SHARES = (1.35, 1.75, 2.0, 3.9)  # widths of the columns: a state is one word of one line


def pdf_report(run: Run, diagnosis: Diagnosis) -> bytes:
    """Return the report as the bytes of a PDF file. Reads the matrices of the run in blocks."""
    return _Report(run, diagnosis).render()


@dataclass(frozen=True)
class _Report:
    run: Run
    diagnosis: Diagnosis

    @cached_property
    def source(self) -> ReportSource:
        return ReportSource(self.run, self.diagnosis)

    @property
    def placement(self) -> Placement:
        return self.source.placement

    @cached_property
    def rows(self) -> list[Row]:
        return drawn_rows(self.run)

    @cached_property
    def surveys(self) -> dict[str, list[SizeSurvey]]:
        return {row.name: survey(row, self.source.fits_of(row), self.placement, self.source.order) for row in self.rows}

    def render(self) -> bytes:
        name = printable(run_facts.title(self.run))
        buffer = BytesIO()
        document = SimpleDocTemplate(
            buffer,
            pagesize=A4,
            **dict.fromkeys(("leftMargin", "rightMargin", "topMargin", "bottomMargin"), MARGIN),
            title=f"Fabric report: {name}",
            author=f"fablint {__version__}",
            subject=f"{finding_order.word(self.diagnosis.verdict)}: {finding_order.headline(self.diagnosis.verdict)}",
            invariant=1,
            initialFontName=REGULAR,
        )

        def footer(canvas: Canvas, _: Any) -> None:
            canvas.setFont(REGULAR, 7)
            canvas.drawString(MARGIN, 0.55 * MARGIN, fitted(f"{name}, fablint {__version__}", 0.8 * A4[0], 7))
            canvas.drawRightString(A4[0] - MARGIN, 0.55 * MARGIN, f"page {canvas.getPageNumber()}")

        document.build(list(self._story(name)), onFirstPage=footer, onLaterPages=footer)
        return buffer.getvalue()

    def _story(self, name: str) -> Iterator[Any]:
        yield paragraph(f"Fabric report: {name}", "title")
        yield from self._verdict()
        yield from self._configuration()
        yield from self._distances()
        yield from self._transports()
        for row in self.rows:
            yield from self._figures(row)
        yield from self._hosts()
        yield KeepTogether(list(_signatures(self.diagnosis)))

    # ------------------------------------------------------------------------------------------------ sections

    def _verdict(self) -> Iterator[Any]:
        verdict = self.diagnosis.verdict
        yield Spacer(1, 5)
        figures = run_facts.local_figures(self.run, self.diagnosis)
        yield banner(finding_order.word(verdict), finding_order.headline(verdict, figures))
        yield Spacer(1, 5)
        facts = [
            ("exit code", verdict.exit_code),
            ("coverage", coverage_of_fabric(self.source)),
            ("limits", finding_order.limits(verdict)),
        ]
        yield table((), [fact for fact in facts if fact[1] != ""], (1, 5))
        ordered = self.source.found
        if rows := [_finding(finding) for finding in finding_order.faulty(ordered)]:
            yield from _heading("Findings")
            yield table(("state", "component", "effect", "evidence and next step"), rows, _FINDING_SHARES)
        if further := self.source.further:
            yield paragraph(f"{further}.")
        yield from self._topology()
        yield from self._strips(len(rows))
        if healthy := finding_order.healthy(ordered):
            yield from _heading("Healthy components, and the loss that could hide")
            yield table(("components", "bound"), [part[:2] for part in healthy], (5, 4))
        compared = self.diagnosis.comparison.compared if self.diagnosis.comparison else ()
        yield from _heading("Thresholds")
        if compared:
            cells = [scopes.threshold_cells(one) for one in compared]
            yield table(scopes.THRESHOLD_HEAD, cells, (1.3, 1.5, 1, 2, 1, 1.4, 1.4, 1.4, 1, 1))
        else:
            yield paragraph("None were declared for this run (a site file gives them: --site FILE).")
        if notes := run_facts.notes(self.run, self.diagnosis):
            yield from _heading("Notes")
            yield table((), [(note,) for note in notes], (1,))

    def _topology(self) -> Iterator[Any]:
        if drawn := drawing(self.source):
            words = f"{drawn.words[:1].upper()}{drawn.words[1:]}; red: faults, orange: suspects."
            yield KeepTogether([paragraph("Topology", "heading"), paragraph(words), topology_figure(drawn)])

    def _links(self, row: Row, fit: Fit | None) -> Iterator[Any]:
        """A matrix of the links between switches: of few rounds it shows more than that of the pairs."""
        values = all_links(self.source).get(row.name) if row.layout == "list" else None
        if values is None or values.late is not None:
            return
        order, matrix = switch_order(self.source), link_matrix(values, self.source)
        names = [self.source.routes.switches[code] for code in order] if self.source.routes else []
        reported = {name for finding in finding_order.faulty(self.source.found) for name in finding.nodes}
        figure = matrix_figure(colour_scales(row, values.own.size, fit, matrix), labels_of(names, len(names), reported))
        title = paragraph(f"{row.name}, {units.size(values.own.size)}: links between switches", "heading")
        words = "Lines: from a switch, columns: to a switch; the median of the pairs that cross the link; grey: none."
        yield KeepTogether([title, paragraph(words), Spacer(1, 3), figure])

    def _strips(self, findings: int) -> Iterator[Any]:
        """The pairs of the gravest findings over time: a single host or link is one line of a matrix of thousands."""
        drawn = finding_charts.strips(self.source)
        for place in sorted(drawn)[:MOST_STRIPS]:
            number = f"Finding {place + 1} of {findings} over time" if findings > 1 else "The finding over time"
            subject = finding_order.subject(finding_order.faulty(self.source.found)[place])
            yield KeepTogether([paragraph(f"{number}: {subject}", "heading"), plot_figure(drawn[place])])

    def _configuration(self) -> Iterator[Any]:
        yield from _heading("Configuration")
        facts = summary.launch_facts(self.run) | {"instrument": run_facts.instrument(self.run)}
        if "simulated" in facts:
            facts |= {"simulated": "no real fabric was measured", "started": ""}
        if topology := self.diagnosis.topology:
            counts = (units.plural(len(topology.switches), "switch"), f"routing {topology.routing.kind}")
            facts["topology"] = ", ".join(filter(None, (topology.source, *counts)))
        yield table((), [fact for fact in facts.items() if fact[1]], (1, 5))
        yield Spacer(1, 4)
        rows = [summary.row_summary(row) for row in self.run.rows]
        cells = [(row.name, row.options, row.sizes, row.measurements, row.state) for row in rows]
        yield table(("row", "options", "sizes", "measurements", "state"), cells, (1.4, 4, 1.5, 2, 1))

    def _distances(self) -> Iterator[Any]:
        lines = scopes.scope_lines(self.run, self.placement, self.surveys)
        if lines:
            widths: tuple[float, ...] = (1.2, 1.5, 0.9, 1, 1.2, 1.2, 1.2)
            has_bisection = any(line.section == scopes.BISECTION for line in lines)
            heading = "Figures by distance, and of the bisection" if has_bisection else "Figures by distance"
            figures = [paragraph(heading, "heading")]
            if not has_bisection:
                figures.append(paragraph("No bisection was measured (fablint check --suite acceptance measures it)."))
            if any(line.beside for line in lines):
                cells = [(*line.cells, line.beside) for line in lines]
                figures.append(table((*scopes.HEAD, "at once"), cells, (*widths, 2)))
            else:
                figures.append(table(scopes.HEAD, [line.cells for line in lines], widths))
            yield KeepTogether(figures)

    def _transports(self) -> Iterator[Any]:
        for comparison in transport_comparisons(self.run.rows):
            yield from _heading(f"Transports side by side: {transport_heading(self.run, comparison)}")
            head, *body = transport_cells(comparison)
            others = len(comparison.media) - 1
            yield table(head, body, (0.8, *[1] * (others + 1), *[2 if comparison.blocks > 1 else 1] * others))
            if words := rma_words(comparison):
                yield paragraph(f"{words}.")

    def _figures(self, row: Row) -> Iterator[Any]:
        surveys = self.surveys[row.name]
        shown = next(one for one in surveys if one.size == run_facts.informative_size(row))
        if not shown.distribution.pairs():
            return
        lines = [size_line(one) for one in surveys]
        if shown.distribution.pairs() < FEWEST_PAIRS:
            yield from _few_pairs(row, surveys, lines)
            return
        matrix = drawn_matrix(row, shown.size, shown.fit, self.placement, self.source.order)
        per_cell = f", {matrix.side} x {matrix.side} ranks in a cell, of which the slowest pair is shown"
        title = paragraph(f"{row.name}, {units.size(shown.size)}: pairs", "heading")
        words = f"Lines send, columns receive{per_cell if matrix.side > 1 else ''}; grey: not measured"
        yield KeepTogether(
            [
                title,
                paragraph(f"{words}; red names: hosts of findings."),
                Spacer(1, 3),
                matrix_figure(
                    colour_scales(row, shown.size, shown.fit, matrix),
                    axis_labels(self.placement, matrix, finding_order.faulty_hosts(self.diagnosis.verdict)),
                ),
            ]
        )
        yield from self._links(row, shown.fit)
        cells = [(line.size, f"{line.pairs:,}", line.best, line.median, line.p99, line.worst) for line in lines]
        sizes = table(("size", f"{counted(row)}s", "best", "median", "P99", "worst"), cells, (1, 1, 1, 1, 1, 1))
        yield KeepTogether(
            [
                paragraph("Distribution", "heading"),
                histogram_figure(histograms(shown)),
                Spacer(1, 3),
                sizes,
            ]
        )
        yield from self._slowest(shown)

    def _slowest(self, size_survey: SizeSurvey) -> Iterator[Any]:
        again = self._retests(size_survey)
        cells = []
        for pair in self._slowest_first_of_findings(size_survey):
            ends = tuple(self.run.hosts[self.placement.host[rank]] for rank in (pair.src, pair.dst))
            change = (
                units.percent(units.change(size_survey.row.quantity, pair.residual))
                if np.isfinite(pair.residual)
                else "-"
            )
            figure = units.figure(size_survey.row, size_survey.size, pair.seconds)
            times = ", ".join(
                units.figure(size_survey.row, size_survey.size, time) for time in again[pair.src, pair.dst]
            )
            cells.append(
                (f"{pair.src}", ends[0], f"{pair.dst}", ends[1], figure, change, times or "not measured again")
            )
        head = ("rank", "from", "rank", "to", "measured", "against healthy", "measured again")
        yield from _heading(f"Slowest pairs of {size_survey.row.name}, {units.size(size_survey.size)}")
        yield table(head, cells, (0.7, 2, 0.7, 2, 1.4, 1.3, 2))

    def _slowest_first_of_findings(self, size_survey: SizeSurvey) -> list[OutlierPair]:
        """The slowest pairs, those that use a component of a finding first: single slow measurements are normal."""
        row = size_survey.row
        is_explained = self.source.are_explained(size_survey.worst_ends, row, row.quantity)
        return [size_survey.worst[at] for at in np.argsort(~is_explained, kind="stable")[:_SLOWEST]]

    def _retests(self, size_survey: SizeSurvey) -> dict[tuple[int, int], list[float]]:
        """Times of the slowest pairs in rows that measured pairs again, in seconds."""
        times: dict[tuple[int, int], list[float]] = {(pair.src, pair.dst): [] for pair in size_survey.worst}
        for row in self.run.rows:
            repeats = row.facts.schedule.retest_of == size_survey.row.name or row.purpose in ("retest", "follow_up")
            if (
                not repeats
                or not row.statistic
                or row.kernel != size_survey.row.kernel
                or size_survey.size not in row.sizes
            ):
                continue
            index = row.sizes.index(size_survey.size)
            for src, dst in times:
                times[src, dst] += _times_of(row, index, OutlierPair(src, dst, 0.0, 0.0))
        return times

    def _hosts(self) -> Iterator[Any]:
        yield from _heading(f"Hosts ({len(self.run.hosts):,})")
        switch, states = self._switches(), self._states()
        grouped: dict[tuple[str, _HostState | None], list[str]] = {}
        for host, name in zip(self.run.hosts, switch, strict=True):
            grouped.setdefault((name, states.get(host)), []).append(host)
        lines = list(grouped.items())
        if len(lines) > _MOST_LINES:
            lines = sorted(lines, key=lambda line: line[0][1] in (None, _HostState(State.OK)))[:_MOST_LINES]
        folded = [_host_cells(units.fold(members, ", "), *key) for key, members in lines]
        yield table(("hosts", "switch", "state"), folded, (5, 1.2, 1.2))
        if left := len(self.run.hosts) - sum(len(members) for _, members in lines):
            yield paragraph(f"{units.plural(left, 'host')} left out of this table, those of findings last.")

    def _switches(self) -> list[str]:
        return [", ".join(names) or "-" for names in self.placement.host_switches]

    def _states(self) -> dict[str, _HostState]:
        """The gravest state of each host among the findings; of a host of none, those of its routes."""
        states: dict[str, _HostState] = {}
        findings = sorted(self.diagnosis.verdict.findings, key=lambda finding: finding.rank)
        for finding in findings:
            for host in finding.hosts:
                states.setdefault(host, _HostState(finding.state))
        for finding in findings:
            for node in finding.nodes if finding.component == "route" else ():
                states.setdefault(node, _HostState(finding.state, of_route=True))
        return states


class _HostState(NamedTuple):
    """The gravest state of a host among the findings, and whether it is that of a route of the host."""

    state: State
    of_route: bool = False


def _heading(text: str) -> Iterator[Any]:
    """A heading that does not stand at the end of a page."""
    yield CondPageBreak(90)
    yield paragraph(text, "heading")


def _times_of(row: Row, index: int, pair: OutlierPair) -> list[float]:
    """Times of one directed pair in a row, seconds."""
    times = row.times
    if row.layout == "list":
        rounds = np.flatnonzero(np.asarray(row.arrays["dst"][pair.src]) == pair.dst)
        values = np.asarray(times[pair.src])[rounds, index]
    else:
        values = np.asarray(times[:, pair.src, pair.dst, index])
    return [float(value) for value in values if np.isfinite(value)]


def _finding(finding: Any) -> tuple[Any, ...]:
    state = paragraph(finding.state, "head", finding.state)
    size = "; ".join(filter(None, (finding_order.effect(finding), finding_order.damage(finding))))
    return state, finding_order.subject(finding), size, ". ".join(filter(None, finding_order.details(finding)))


def _few_pairs(row: Row, surveys: list[SizeSurvey], lines: list[SizeLine]) -> Iterator[Any]:
    """Figures of a row without a distribution over pairs, and so without a matrix: those of the messages."""
    names = [name for name, _ in lines[0].messages]
    cells = [(line.size, *(words for _, words in line.messages)) for line in lines]
    yield from _heading(row.name)
    yield table(("size", *names), cells, (1,) * (1 + len(names)))
    if plot := curve(surveys):
        yield KeepTogether([Spacer(1, 5), plot_figure(plot)])


def _host_cells(host: str, switch: str, host_state: _HostState | None) -> tuple[Any, ...]:
    if host_state is None:
        return host, switch, "-"
    words = f"{host_state.state} route" if host_state.of_route else str(host_state.state)
    return host, switch, paragraph(words, "cell", host_state.state)


def _signatures(diagnosis: Diagnosis) -> Iterator[Any]:
    yield paragraph("Acceptance", "heading")
    verdict = diagnosis.verdict
    yield paragraph(f"Verdict of fablint: {finding_order.word(verdict)} (exit code {verdict.exit_code})")
    yield Spacer(1, 6)
    lines = [("measured by", "", "accepted [  ] rejected [  ] by", "")]
    lines += [(word, "", word, "") for word in ("name", "organisation", "date", "signature")]
    padded = [tuple(paragraph(cell, "text") for cell in line) for line in lines]
    signed = table((), padded, (1.3, 2.7, 3, 2.7))
    signed.setStyle([("TOPPADDING", (0, 1), (-1, -1), 12)])
    yield signed
