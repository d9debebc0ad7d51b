"""The comparison of two runs as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from jinja2 import Template

from fablint.model import Run, State
from fablint.model.run_changes import FindingChange, MeasuredChange, RunChanges
from fablint.report import finding_order, summary
from fablint.report.changes.changes_document import VERDICT_WORDS, headline, subject
from fablint.report.drawings.palette import css_variables
from fablint.report.self_contained import asset, page_template, source_hash, write_page
from fablint.text import units
from fablint.text.evidence_sentences import sentences

_MOST_MARGINS = 20.0  # the axis ends at so many margins; a change beyond it is drawn at its end
_SPACE = 1.15  # of the axis beyond the longest interval
_WIDTH, _MIDDLE = 1000, 500  # of a drawing, whose pixels are stretched to the page's


def write_changes_page(changes: RunChanges, old: Run, new: Run, path: Path) -> None:
    """Write the comparison of two runs as a page.

    Parameters
    ----------
    changes
        What changed between the runs.
    old
        The earlier run.
    new
        The later run.
    path
        File to write, replaced in one step.

    Raises
    ------
    IncompleteError
        The disk is full.
    UsageError
        The page cannot be written for another reason.
    """
    write_page(render(changes, old, new), path, "fablint compare --html")


def render(changes: RunChanges, old: Run, new: Run) -> str:
    """Return the page as a string."""
    style = css_variables() + asset("report.css") + asset("changes.css", "fablint.report.changes")
    return _template().render(
        names=[run.path.name if run.path else "a run in memory" for run in (old, new)],
        changes=changes,
        word=VERDICT_WORDS[changes.verdict],
        headline=headline(changes),
        axis=Axis.of(changes),
        lines=[(title, words, _lines(listed)) for title, words, listed in _tables(changes)],
        findings_of=_findings(changes.findings),
        facts=list(_facts(old, new)),
        style=style,
        style_hash=source_hash(style),
    )


@cache
def _template() -> Template:
    """The template of the page, compiled once."""
    return page_template(
        "changes.html.j2", "fablint.report.changes", text=units, findings=finding_order, sentences=sentences
    )


@dataclass(frozen=True)
class ChangeLine:
    """One measured change as a line of a table."""

    change: MeasuredChange

    @property
    def subject(self) -> str:
        """All pairs of a scope, or a host."""
        return subject(self.change)

    @property
    def measured(self) -> str:
        """Row and size."""
        return f"{self.change.row} at {units.size(self.change.size)}"

    @property
    def slug(self) -> str:
        """Class of the style sheet."""
        return str(self.change.state).lower().replace(" ", "-")

    @cached_property
    def losses(self) -> tuple[float, float, float]:
        """Low end, change and high end as a loss: positive is worse."""
        sign = -1.0 if units.is_rate(self.change.quantity) else 1.0
        loss = sign * self.change.change
        low, high = sorted(sign * end for end in self.change.interval) if self.change.interval else (loss, loss)
        return low, loss, high


@dataclass(frozen=True)
class Axis:
    """The axis of all drawings: losses in the middle of which is 0, so that what is worse is to the right."""

    margin: float
    end: float

    @classmethod
    def of(cls, changes: RunChanges) -> Axis:
        """Choose the end of the axis by the longest interval."""
        shown = _lines((*changes.scopes, *changes.hosts, *changes.seen))
        longest = max((abs(loss) for line in shown for loss in line.losses), default=0.0)
        return cls(changes.margin, min(max(_SPACE * longest, 2 * changes.margin), _MOST_MARGINS * changes.margin))

    def at(self, loss: float) -> int:
        """Return the pixel of a loss; of one beyond the axis that of its end."""
        return round(_MIDDLE * (1 + max(-1.0, min(loss / self.end, 1.0))))

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the ends and of the middle."""
        return f"{units.share_text(self.end)} better", "0", f"{units.share_text(self.end)} worse"

    @property
    def limit(self) -> int:
        """Pixel of the margin."""
        return self.at(self.margin)


def _lines(changes: Sequence[MeasuredChange]) -> list[ChangeLine]:
    return [ChangeLine(change) for change in changes]


def _tables(changes: RunChanges) -> list[tuple[str, str, Sequence[MeasuredChange]]]:
    """Return title, explanation and changes of each table."""
    reported = "A host is compared with the other hosts, so that a change of all hosts is none of its own."
    largest = (
        "The largest change that the other hosts, the host's own drift or its switch may explain. A loss of any host"
        " of at least the last column is WORSE."
    )
    return [
        ("All pairs", "The time of a healthy pair of each scope, with its 95 % interval.", changes.scopes),
        ("Hosts that changed", reported, changes.hosts),
        ("Other hosts", largest, changes.seen),
    ]


def _findings(changes: Sequence[FindingChange]) -> list[tuple[str, list[FindingChange], list[FindingChange]]]:
    """Return faults and suspects by what became of them."""
    parts = []
    for kind in ("new", "gone", "unchanged"):
        changes_of_kind = sorted((one for one in changes if one.kind == kind), key=lambda one: one.finding.rank)
        faults = [one for one in changes_of_kind if one.finding.state is State.FAULT]
        if changes_of_kind:
            parts.append((kind, faults, [one for one in changes_of_kind if one not in faults]))
    return parts


def _facts(old: Run, new: Run) -> list[tuple[str, str, str]]:
    """Return label, words of the old run and words of the new run."""
    before, after = summary.launch_facts(old), summary.launch_facts(new)
    facts = [(label, before.get(label, ""), after.get(label, "")) for label in {**before, **after}]
    rows = [", ".join(row.name for row in run.rows) for run in (old, new)]
    return [*facts, ("rows", rows[0], rows[1])]
