"""What changed between two runs: text for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from fablint.model import Scope, State
from fablint.model.run_changes import ChangeState, FindingChange, MeasuredChange, RunChanges
from fablint.report import finding_order
from fablint.report.terminal_colours import coloured
from fablint.text import units
from fablint.text.sentences import finding_facts

FORMAT = 1  # of the JSON
_MARGIN = 12  # columns of the left margin
_STYLES = {"fault": "bold red", "incomplete": "bold yellow", "pass": "bold green"}
VERDICT_WORDS = {"fault": "WORSE", "incomplete": "UNDECIDED", "pass": "NOT WORSE"}
_STATE_STYLES = {ChangeState.WORSE: "red", ChangeState.BETTER: "green", ChangeState.UNDECIDED: "yellow"}
_ALL = 1 << 30


def changes_text(changes: RunChanges, *, most: int | None = None, color: bool = False) -> str:
    """The comparison as text, newline-terminated.

    Parameters
    ----------
    changes
        The comparison.
    most
        Hosts and findings that are listed, each; None: all.
    color
        Whether to write colour codes.
    """
    lines = [_line(VERDICT_WORDS[changes.verdict], headline(changes), _STYLES[changes.verdict] if color else ""), ""]
    limit = _ALL if most is None else most
    lines += [_measured(change, color) for change in changes.scopes]
    lines += [_measured(change, color) for change in changes.hosts[:limit]]
    if (more := len(changes.hosts) - limit) > 0:
        lines.append(_line("", f"... and {units.plural(more, 'more host')} (--all)"))
    findings = [_finding(change) for change in changes.findings]
    lines += findings[:limit]
    if (more := len(findings) - limit) > 0:
        lines.append(_line("", f"... and {units.plural(more, 'more finding')} (--all)"))
    lines += [*([""] if lines[-1] else []), *_coverage(changes)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _line(label: str, words: str, style: str = "") -> str:
    gap = " " * (max(_MARGIN, len(label) + 2) - len(label))
    return f"{coloured(label, style) if style else label}{gap}{units.printable(words)}"


def headline(changes: RunChanges) -> str:
    """Return what changed, in one sentence without the verdict word."""
    counts = (
        (_count(changes.hosts, ChangeState.WORSE), "host", "worse"),
        (_count(changes.hosts, ChangeState.BETTER), "host", "better"),
        (_count(changes.scopes, ChangeState.WORSE), "scope", "worse"),
        (_count(changes.scopes, ChangeState.BETTER), "scope", "better"),
        (_count(changes.scopes, ChangeState.UNDECIDED), "scope", "undecided"),
        (sum(one.kind == "new" and one.finding.state is State.FAULT for one in changes.findings), "new fault", ""),
        (sum(one.kind == "gone" and one.finding.state is State.FAULT for one in changes.findings), "fault", "gone"),
    )
    words = [f"{units.plural(count, noun)} {state}".rstrip() for count, noun, state in counts if count]
    unchanged = "no change" if changes.scopes else "nothing compared"
    return f"{', '.join(words) or unchanged}; margin {units.share_text(changes.margin)}"


def _count(changes: Sequence[MeasuredChange], state: ChangeState) -> int:
    """The number of hosts or scopes with changes of a state, each once for all rows, sizes and directions."""
    return len({one.component.hosts if one.component else one.scope for one in changes if one.state is state})


def subject(change: MeasuredChange) -> str:
    """Return what changed: all pairs of a scope (without a topology: all pairs), or a host or NIC with its
    direction.
    """
    if change.component is None:
        return "all pairs" if change.scope == Scope.UNKNOWN else f"all pairs, {change.scope}"
    return f"{change.component.text}{f' {change.direction}' if change.direction else ''}"


def _measured(change: MeasuredChange, color: bool) -> str:
    words = f"{subject(change)}  {units.effect(change.change, change.interval, change.quantity)}"
    style = _STATE_STYLES.get(change.state, "") if color else ""
    return _line(change.state, f"{words}  ({change.row} at {units.size(change.size)})", style)


def _finding(change: FindingChange) -> str:
    finding = change.finding
    suppression = f"({finding.suppressed.words})" if finding.suppressed else ""
    words = "  ".join(filter(None, (finding_order.subject(finding), finding_order.effect(finding), suppression)))
    return _line(change.kind, f"{finding.state} {words}")


def _coverage(changes: RunChanges) -> Iterator[str]:
    """Return what was compared, from which loss on every host is reported, and what was not compared."""
    yield _line("compared", f"{units.plural(changes.hosts_compared, 'host')} of both runs")
    for change in changes.seen:
        where = f"{change.row} at {units.size(change.size)}{f', {change.direction}' if change.direction else ''}"
        yield _line("", f"{where}: a loss of {units.share_text(change.smallest)} or more of any host is WORSE")
    for label, names in (("only old", changes.only_old), ("only new", changes.only_new)):
        if names:
            yield _line(label, units.fold(names, ", "))
    for note in changes.notes:
        yield _line("note", note)


def changes_facts(changes: RunChanges) -> dict[str, Any]:
    """The comparison as one JSON object; docs/how-to/compare.md describes it."""
    return {
        "format": FORMAT,
        "verdict": changes.verdict,
        "exit_code": changes.exit_code,
        "margin": changes.margin,
        "scopes": [_facts(change) for change in changes.scopes],
        "hosts": [_facts(change) for change in changes.hosts],
        "largest": [_facts(change) for change in changes.seen],
        "findings": [{"change": one.kind, **finding_facts(one.finding)} for one in changes.findings],
        "hosts_compared": changes.hosts_compared,
        "only_old": changes.only_old,
        "only_new": changes.only_new,
        "notes": changes.notes,
    }


def _facts(change: MeasuredChange) -> dict[str, Any]:
    """The fields of a change that it has."""
    facts = asdict(change) | {"component": change.component and change.component.model_dump(mode="json")}
    return {key: value for key, value in facts.items() if value not in (None, "")}
