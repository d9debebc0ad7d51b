"""The text of a ticket: what is wrong with which part, how that is known, what to do next."""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from fablint.act.host_findings import HostFindings
from fablint.act.short_texts import loss, said_by
from fablint.model import Finding, State
from fablint.model.names import plural, printable
from fablint.text import evidence as seen
from fablint.text.actions import advice
from fablint.text.evidence_sentences import sentences

_REPORTED = (State.FAULT, State.SUSPECT, State.CONFOUNDED)
_DIRECTIONS = {"tx": " tx (sending)", "rx": " rx (receiving)", "both": " tx and rx", None: ""}
_VALUES = 4  # of a check that are reported for each part; of more values the first
_WIDTH = 76  # of a mail
_COLUMN = 13


def ticket_text(source: HostFindings) -> str:
    """Plain text, a part after the other, the gravest first."""
    parts = _by_part([finding for finding in source.findings if finding.state in _REPORTED])
    lines = [f"fablint found {_counted(parts)}"]
    for part, findings in parts.items():
        lines += ["", *_wrapped(part, "")]
        for finding in findings:
            lines += _finding(finding)
    if suppressed := [finding for finding in source.findings if finding.suppressed]:
        lines += ["", "known faults, which do not count:"]
        lines += [line for one in suppressed for line in _known(one)]
    if unjudged := sum(finding.state is State.NOT_JUDGED for finding in source.findings):
        lines += ["", f"not judged: {plural(unjudged, 'part')}"]
    return "\n".join(lines) + "\n"


def counted(source: HostFindings) -> str:
    """Return the number of entries of the ticket by state: `2 faults, 1 suspect`."""
    return _counted(_by_part([finding for finding in source.findings if finding.state in _REPORTED]))


def _counted(parts: Mapping[str, Sequence[Finding]]) -> str:
    counts = Counter(one.state for findings in parts.values() for one in findings)
    words = [plural(counts[state], state.lower()) for state in _REPORTED if counts[state]]
    return ", ".join(words) or "no part at fault and none suspect"


def _by_part(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """Findings by the name of their parts; identical findings are merged."""
    identical: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        identical[finding.model_copy(update={"components": ()}).model_dump_json() + finding.component].append(finding)
    parts: dict[str, list[Finding]] = defaultdict(list)
    for item in sorted(_few(list(identical.values())), key=lambda one: one.rank):
        parts[f"{item.component} {item.name}"].append(item)
    return parts


def _few(identical: Sequence[Sequence[Finding]]) -> list[Finding]:
    """A finding for each set of identical findings; one for all sets of a check with many values, such as counters."""
    kinds: dict[tuple[object, ...], list[Sequence[Finding]]] = defaultdict(list)
    for number, same in enumerate(identical):
        item, check = same[0], said_by(same[0])
        kinds[(item.state, item.component, check[0], item.next_step) if check else (number,)].append(same)
    findings: list[Finding] = []
    for sets in kinds.values():
        findings += [_merged([one for same in sets for one in same])] if len(sets) > _VALUES else map(_merged, sets)
    return findings


def _merged(findings: Sequence[Finding]) -> Finding:
    """All of them as one, with the first of what they say."""
    _, *others = dict.fromkeys((said_by(finding) or ("", sentences(finding.evidence))) for finding in findings)
    shown = [words for _, words in others[: _VALUES - 1]]
    rest = (seen.more(len(others) - len(shown)),) if len(others) > len(shown) else ()
    more = tuple(seen.message(words) for words in shown)
    components = tuple(dict.fromkeys(component for finding in findings for component in finding.components))
    return findings[0].model_copy(update={"components": components, "evidence": (*findings[0].evidence, *more, *rest)})


def _finding(finding: Finding) -> list[str]:
    figure = f"{loss(finding)}{_DIRECTIONS[finding.direction]}".strip()
    labelled = (
        (finding.state, figure or sentences(finding.evidence)),
        ("seen", sentences(finding.evidence) if figure else ""),
        ("source", _source(finding)),
        ("or else", ", ".join(one.text for one in finding.ambiguity_group)),
        ("next", advice(finding.next_step)),
    )
    return [line for label, words in labelled if words for line in _wrapped(words, label)]


def _known(finding: Finding) -> list[str]:
    assert finding.suppressed is not None
    component = f"{finding.component} {finding.name}{_DIRECTIONS[finding.direction]}"
    words = "; ".join(filter(None, (component, loss(finding), finding.suppressed.words)))
    return _wrapped(words, "known")


def _source(finding: Finding) -> str:
    return "read on the host, not inferred from times" if said_by(finding) else ""


def _wrapped(words: str, label: str) -> list[str]:
    """`  next       swap the cable`, and what has no room below it."""
    head = f"  {label:<{_COLUMN - 2}}" if label else ""
    indent = " " * _COLUMN
    return textwrap.wrap(
        printable(words), _WIDTH, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False
    )
