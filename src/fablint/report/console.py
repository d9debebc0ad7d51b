"""The verdict as text, the answer first: at most 25 lines on a terminal, otherwise everything."""

from __future__ import annotations

import re
import sys
import textwrap

from fablint.model import Diagnosis, Finding, Placement, Run, State
from fablint.report import finding_order, run_facts, scopes
from fablint.report.coverage_words import coverage_words
from fablint.report.terminal_colours import coloured
from fablint.text import units

MAX_LINES = 25
_INTERVAL = re.compile(r" \[[^\[\]]*\d\]")  # of a figure: ` [-34.9, -33.7]`
# Blanks between a figure, its unit and its interval, and within the interval.
_BEFORE_UNIT = re.compile(
    r"(?<=\d) (?=(?:%|x|[num]?s|min|[KMG]?i?B|[MGT]B/s)(?:[\s,;:)\]]|$))"
    r"|(?<=[%x]) (?=\[[-+\d])|(?<=\d,) (?=[-+\d.]+\])"
)
_JOINED = "\N{NO-BREAK SPACE}"  # in place of these, while lines are wrapped
_CUT_FIGURE = re.compile(r"[-+]?[\d.,]+\.\.\.$")  # a figure is there as a whole, or not at all
_MARGIN = 12  # width of the left column
_SHORTEST_NAME = 16
_MOST_NOTES = 6  # a line each: warnings of preflight and suppressed findings, which a check tells nowhere else
_DETAIL_LINES = (2, 2, 1, 2)  # of a finding, on a terminal: known until when, evidence, ambiguity group, next step
_ROWS_SHOWN = 4
_STYLES = {"fault": "bold red", "incomplete": "bold yellow", "pass": "bold green", "local": "bold green"}
_STATE_STYLES = {
    State.FAULT: "red",
    State.SUSPECT: "yellow",
    State.CONFOUNDED: "magenta",
    State.SUPPRESSED: "blue",
    State.NOT_JUDGED: "cyan",
    State.OK: "green",
}


def console_summary(
    run: Run, diagnosis: Diagnosis, *, width: int | None = 80, color: bool = False, is_full: bool = False
) -> str:
    """Return the summary, newline-terminated: what is wrong, how much was measured, the figures, the instrument.

    Parameters
    ----------
    run, diagnosis
        What was measured, and what follows from it.
    width
        Columns, colour codes not counted; None: lines are neither wrapped nor shortened.
    color
        Add colour codes.
    is_full
        Everything. False: at most `MAX_LINES` lines, the gravest findings first.
    """
    painter = _Painter(width, color, is_full)
    verdict = diagnosis.verdict
    headline = finding_order.headline(verdict, run_facts.local_figures(run, diagnosis))
    head = [painter.line(finding_order.word(verdict), headline, _STYLES[verdict.verdict])]
    tail = _tail(run, diagnosis, painter, scopes.threshold_words(diagnosis.comparison) if diagnosis.comparison else "")
    room = MAX_LINES - len(head) - len(tail) - 2 if not is_full else sys.maxsize  # two blank lines around the findings
    body = _findings(finding_order.ordered(verdict), room, painter)
    return "\n".join([*head, "", *body, "", *tail] if body else [*head, "", *tail]) + "\n"


class _Painter:
    """Lines with a label in the left margin, fitted to the width, with colour where wanted."""

    def __init__(self, width: int | None, color: bool, is_full: bool) -> None:
        self.width = sys.maxsize if width is None else max(width, _MARGIN + 20)
        self.color, self.is_full = color, is_full

    def line(self, label: str, words: str, style: str = "") -> str:
        gap = max(_MARGIN, len(label) + 2)
        if self.is_full or len(words) <= self.width - gap:
            words = units.printable(words)
        else:
            words = _CUT_FIGURE.sub("...", units.shorten(words, self.width - gap))
        margin = " " * (gap - len(label))
        return ((coloured(label, style) if self.color and style else label) + margin + words).rstrip()

    def title(self, state: State, name: str, figures: str, more: str = "") -> list[str]:
        """A name with its figures, in as many lines as they need."""
        lines: list[str] = []
        for words in filter(None, (name, figures, more)):
            joined = f"{lines[-1]}  {words}" if lines else words
            lines = [*lines[:-1], joined] if self.is_full or len(joined) <= self.room(state) else [*lines, words]
        return [self.line("" if at else state, words, _STATE_STYLES[state]) for at, words in enumerate(lines)]

    def short_title(self, state: State, name: str, figures: str, more: str = "") -> str:
        """A name with its figures in one line: `more` only if there is room, a shortened name if there is little.

        Figures have no intervals where hardly anything of the name would be left.
        """
        room = self.room(state)
        whole = "  ".join(filter(None, (name, figures, more)))
        if len(whole) > room and figures:
            if room - len(figures) - 2 < min(len(name), _SHORTEST_NAME):
                figures = _INTERVAL.sub("", figures)
            whole = f"{units.shorten(name, max(room - len(figures) - 2, 0))}  {figures}"
        return self.line(state, whole, _STATE_STYLES[state])

    def room(self, label: str) -> int:
        """Columns beside a label."""
        return self.width - max(_MARGIN, len(label) + 2)

    def block(self, label: str, words: str, limit: int, style: str = "") -> list[str]:
        """Wrapped to at most `limit` lines, without limit where everything is printed."""
        room = self.room(label)
        words = _BEFORE_UNIT.sub(_JOINED, units.printable(words))
        most = None if self.is_full else limit
        wrapped = textwrap.wrap(words, room, break_on_hyphens=False, max_lines=most, placeholder=" ...") or [""]
        lines = [line.replace(_JOINED, " ") for line in wrapped]
        return [self.line(label if not index else "", line, style) for index, line in enumerate(lines)]


def _findings(findings: list[Finding], room: int, painter: _Painter) -> list[str]:
    """Return as many findings as have room, worst first, then how many were left out.

    The worst findings are printed in full as long as one line remains for each of the others.
    """
    blocks = [_finding(finding, painter) for finding in finding_order.faulty(findings)]
    blocks += [painter.title(State.OK, *part[:2]) for part in finding_order.healthy(findings)]
    short = [painter.short_title(finding.state, *_title(finding)) for finding in finding_order.faulty(findings)]
    short += [painter.short_title(State.OK, *part[:2]) for part in finding_order.healthy(findings)]
    kept = min(len(blocks), room)
    while kept > 1 and sum(map(len, blocks[:kept])) + len(blocks) - kept > room:
        kept -= 1
    lines = [line for block in blocks[:kept] for line in block]
    if len(lines) + len(blocks) - kept <= room:
        return lines + short[kept:]
    lines = lines[: room - 1]  # fewer than those of the worst finding, on the narrowest terminals
    named = kept + max(0, room - 1 - len(lines))
    return [*lines, *short[kept:named], painter.line("", f"... and {len(blocks) - named:,} more (--all shows them)")]


def _finding(finding: Finding, painter: _Painter) -> list[str]:
    """Part, direction and effect; evidence; what else it could be; next step."""
    details = [part for part in zip(finding_order.details(finding), _DETAIL_LINES, strict=True) if part[0]]
    lines = [line for words, most in details for line in painter.block("", words, most)]
    return painter.title(finding.state, *_title(finding)) + lines


def _title(finding: Finding) -> tuple[str, str, str]:
    return finding_order.subject(finding), finding_order.effect(finding), finding_order.damage(finding)


def _tail(run: Run, diagnosis: Diagnosis, painter: _Painter, thresholds: str) -> list[str]:
    """Return what of the network was not looked at, coverage, what was measured, thresholds, the instrument, notes."""
    lines = [line for unseen in diagnosis.verdict.network for line in painter.block("network", unseen, 2)]
    if words := coverage_words(run, diagnosis.verdict):
        lines += painter.block("coverage", words, 2)
    lines += _limits(finding_order.limits(diagnosis.verdict), painter)
    origin = "; simulated, no real fabric" if run.facts.simulated is not None else ""
    counts = (units.plural(len(run.hosts), "host"), units.plural(run.ranks, "rank"), units.plural(len(run.rows), "row"))
    what = ", ".join(counts)
    lines += painter.block("measured", f"{what}; run {run.state}{origin}", 1)
    lines += _by_distance(run, diagnosis, painter) or _by_row(run, diagnosis, painter)
    lines += painter.block("thresholds", thresholds, 2) if thresholds else []
    lines += painter.block("instrument", run_facts.instrument(run), 2)
    notes = run_facts.notes(run, diagnosis)
    shown = notes if painter.is_full or len(notes) <= _MOST_NOTES else notes[: _MOST_NOTES - 1]
    lines += [line for note in shown for line in painter.block("note", note, 1)]
    if len(notes) > len(shown):
        lines.append(painter.line("note", f"... and {len(notes) - len(shown)} more (--all shows them)"))
    return lines


def _limits(limits: str, painter: _Painter) -> list[str]:
    """Return a line for each sentence of the limits where they fit, else all of them as one text."""
    sentences_of_limits = [words for words in re.split(r"; |(?<=cases): ", limits) if words]
    if max(map(len, sentences_of_limits), default=0) > painter.room("limits"):
        return painter.block("limits", limits, 5)
    return [painter.line("" if at else "limits", words) for at, words in enumerate(sentences_of_limits)]


def _by_distance(run: Run, diagnosis: Diagnosis, painter: _Painter) -> list[str]:
    """A line for each distance; none where the run has no rounds by distance."""
    scope_lines = scopes.scope_lines(run, Placement.of(run, diagnosis.topology))
    if not scope_lines:
        return []
    short_lines = scopes.short_lines(scope_lines)
    return [line for section, words in short_lines for line in painter.block("", f"{section}: {words}", 2)]


def _by_row(run: Run, diagnosis: Diagnosis, painter: _Painter) -> list[str]:
    """A line for each of the first rows."""
    lines = []
    shown = run.rows if painter.is_full else run.rows[:_ROWS_SHOWN]
    for row in shown:
        size = run_facts.informative_size(row)
        figure = run_facts.typical(row, size, run_facts.fit_of(diagnosis, row, size))
        lines += painter.block("", f"{row.name} at {units.size(size)}: {figure}", 2)
    if len(run.rows) > len(shown):
        lines.append(painter.line("", f"... and {units.plural(len(run.rows) - len(shown), 'more row')}"))
    return lines
