"""The verdict on a terminal: at most 25 lines, the answer first."""

from __future__ import annotations

import textwrap

from fablint.model import Diagnosis, Finding, Placement, Row, Run, State
from fablint.report import finding_order, run_facts, scopes
from fablint.report.terminal_colours import coloured
from fablint.text import units
from fablint.text.action_sentences import advice
from fablint.text.evidence_sentences import sentences

MAX_LINES = 25
_MARGIN = 12  # width of the left column
_MOST_NOTES = 6  # a line each: warnings of preflight and suppressed findings, which a check tells nowhere else
_ROWS_SHOWN = 4
_STYLES = {"fault": "bold red", "incomplete": "bold yellow", "pass": "bold green"}
_STATE_STYLES = {
    State.FAULT: "red",
    State.SUSPECT: "yellow",
    State.CONFOUNDED: "magenta",
    State.NOT_JUDGED: "cyan",
    State.OK: "green",
}


def console_summary(run: Run, diagnosis: Diagnosis, *, width: int = 80, color: bool = False) -> str:
    """The summary, newline-terminated: at most `MAX_LINES` lines of `width` columns, colour codes not counted.

    Says in this order what is wrong, how much of the plan was done, what was measured and with what. The caller
    decides on colour (`NO_COLOR`, not a terminal: False).
    """
    painter = _Painter(width, color)
    verdict = diagnosis.verdict
    head = [painter.line(verdict.verdict.upper(), finding_order.headline(verdict), _STYLES[verdict.verdict])]
    tail = _tail(run, diagnosis, painter, scopes.threshold_words(diagnosis.comparison) if diagnosis.comparison else "")
    room = MAX_LINES - len(head) - len(tail) - 2  # two blank lines around the findings
    body = _findings(finding_order.ordered(verdict), room, painter)
    return "\n".join([*head, "", *body, "", *tail] if body else [*head, "", *tail]) + "\n"


class _Painter:
    """Lines with a label in the left margin, cut to the width, with colour where wanted."""

    def __init__(self, width: int, color: bool) -> None:
        self.width, self.color = max(width, _MARGIN + 20), color

    def line(self, label: str, words: str, style: str = "") -> str:
        gap = max(_MARGIN, len(label) + 2)
        words = units.shorten(words, self.width - gap)
        margin = " " * (gap - len(label))
        return ((coloured(label, style) if self.color and style else label) + margin + words).rstrip()

    def block(self, label: str, words: str, limit: int, style: str = "") -> list[str]:
        """Wrapped to at most `limit` lines."""
        room = self.width - max(_MARGIN, len(label) + 2)
        wrapped = textwrap.wrap(units.printable(words), room, break_on_hyphens=False) or [""]
        if len(wrapped) > limit:
            wrapped[limit - 1] = units.shorten(" ".join(wrapped[limit - 1 :]), room)
        return [self.line(label if not index else "", line, style) for index, line in enumerate(wrapped[:limit])]


def _findings(found: list[Finding], room: int, painter: _Painter) -> list[str]:
    """As many findings as have room, worst first, then how many were left out.

    The worst findings are printed in full as long as one line remains for each of the others.
    """
    blocks = [_finding(finding, painter) for finding in finding_order.faulty(found)]
    blocks += [
        painter.block(State.OK, _words(*part[:2]), 2, _STATE_STYLES[State.OK]) for part in finding_order.healthy(found)
    ]
    short = [
        painter.line(finding.state, _title(finding), _STATE_STYLES[finding.state])
        for finding in finding_order.faulty(found)
    ]
    short += [
        painter.line(State.OK, _words(*part[:2]), _STATE_STYLES[State.OK]) for part in finding_order.healthy(found)
    ]
    kept = min(len(blocks), room)
    while kept > 1 and sum(map(len, blocks[:kept])) + len(blocks) - kept > room:
        kept -= 1
    lines = [line for block in blocks[:kept] for line in block]
    if len(lines) + len(blocks) - kept <= room:
        return lines + short[kept:]
    named = kept + max(0, room - 1 - len(lines))
    return [*lines, *short[kept:named], painter.line("", f"... and {len(blocks) - named:,} more (see report)")]


def _finding(finding: Finding, painter: _Painter) -> list[str]:
    """Part, direction and effect; evidence; what else it could be; next step."""
    lines = painter.block(finding.state, _title(finding), 2, _STATE_STYLES[finding.state])
    if finding.evidence:
        lines += painter.block("", sentences(finding.evidence), 2)
    if finding.ambiguity_group:
        group = ", ".join(one.text for one in finding.ambiguity_group)
        lines += painter.block("", f"indistinguishable from: {group}", 1)
    if finding.next_step:
        lines += painter.block("", f"next: {advice(finding.next_step)}", 2)
    return lines


def _title(finding: Finding) -> str:
    return _words(finding_order.subject(finding), finding_order.effect(finding))


def _words(*words: str) -> str:
    return "  ".join(filter(None, words))


def _tail(run: Run, diagnosis: Diagnosis, painter: _Painter, thresholds: str) -> list[str]:
    """What of the network was not looked at, coverage, what was measured, thresholds, the instrument, notes."""
    coverage = diagnosis.verdict.coverage
    words = [f"{coverage.pairs_measured:,} of {coverage.pairs_planned:,} pairs measured"]
    words.append(f"{coverage.hosts_judged:,} of {units.plural(coverage.hosts, 'host')} judged")
    if coverage.links:
        words.append(f"{coverage.links_judged:,} of {units.plural(coverage.links, 'link')}")
    lines = [line for unseen in diagnosis.verdict.network for line in painter.block("network", unseen, 2)]
    lines.append(painter.line("coverage", ", ".join(words)))
    lines += [painter.line("limits", words) for words in [finding_order.limits(diagnosis.verdict)] if words]
    origin = "; simulated, no real fabric" if "simulated" in run.attributes else ""
    counts = (units.plural(len(run.hosts), "host"), units.plural(run.ranks, "rank"), units.plural(len(run.rows), "row"))
    what = ", ".join(counts)
    lines.append(painter.line("measured", f"{what}; run {run.state}{origin}"))
    lines += _by_distance(run, diagnosis, painter) or _by_row(run, diagnosis, painter)
    lines += painter.block("thresholds", thresholds, 2) if thresholds else []
    lines += painter.block("instrument", run_facts.instrument(run), 2)
    notes = run_facts.notes(run, diagnosis)
    shown = notes if len(notes) <= _MOST_NOTES else notes[: _MOST_NOTES - 1]
    lines += [painter.line("note", note) for note in shown]
    if len(notes) > len(shown):
        lines.append(painter.line("note", f"... and {len(notes) - len(shown)} more (see report)"))
    return lines


def _by_distance(run: Run, diagnosis: Diagnosis, painter: _Painter) -> list[str]:
    """A line for each distance, and for what was skipped; none where the run has no rounds by distance."""
    found = scopes.scope_lines(run, Placement.of(run, diagnosis.topology))
    if not found:
        return []
    lines = [painter.line("", f"{section}: {words}") for section, words in scopes.short_lines(found)]
    skipped = [row for row in run.rows if row.attributes.get("state") == "skipped"]
    return lines + [_skipped(row, painter) for row in skipped[:_ROWS_SHOWN]]


def _by_row(run: Run, diagnosis: Diagnosis, painter: _Painter) -> list[str]:
    """A line for each of the first rows."""
    lines = []
    for row in run.rows[:_ROWS_SHOWN]:
        if row.attributes.get("state") == "skipped":
            lines.append(_skipped(row, painter))
            continue
        size = run_facts.informative_size(row)
        figure = run_facts.typical(row, size, run_facts.fit_of(diagnosis, row, size))
        lines.append(painter.line("", f"{row.name} at {units.size(size)}: {figure}"))
    if len(run.rows) > _ROWS_SHOWN:
        lines.append(painter.line("", f"... and {units.plural(len(run.rows) - _ROWS_SHOWN, 'more row')}"))
    return lines


def _skipped(row: Row, painter: _Painter) -> str:
    return painter.line("", f"{row.name}: skipped, {row.attributes.get('reason', 'no reason given')}")
