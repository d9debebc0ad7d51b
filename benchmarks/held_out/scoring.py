"""A verdict beside the truth: what was named, what was missed, and which healthy components are at FAULT."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from held_out.scenario import Truth

Outcome = Literal["exact", "group", "suspect", "incomplete", "hidden", "missed", "misnamed"]

_ALTERNATIVE = (
    (re.compile(r"NIC of (\S+)"), r"\1/*"),
    (re.compile(r"port of (\S+) to (\S+)"), r"\1=\2"),
    (re.compile(r"(?:host|nic|cable|link|switch|group|route|config) (\S+)"), r"\1"),
)
_MANY = re.compile(r"[0-9,]+ (link|cable|switch|host|path|route)[es]*")


@dataclass(frozen=True)
class Score:
    """One run.

    Attributes:
        verdict: `pass fault incomplete`.
        outcome: of the faults together, the worst of them; empty for a healthy run.
        false: names of healthy components at FAULT.
        direction: was every direction that was stated of a named fault the true one?
        suspected: names of healthy components that are SUSPECT.
    """

    verdict: str
    outcome: str
    false: tuple[str, ...]
    direction: bool = True
    suspected: tuple[str, ...] = ()


def names_in(finding: Mapping[str, Any]) -> set[str]:
    """The components of a finding's name, unfolded."""
    return _unfolded(str(finding["text"]["name"]))


def alternatives_in(finding: Mapping[str, Any]) -> set[str]:
    """The components that the finding names as alternatives, unfolded."""
    alternatives: set[str] = set()
    for text in finding["text"]["ambiguity_group"]:
        alternatives |= _unfolded(_plain(str(text)))
    return alternatives


def _plain(text: str) -> str:
    for pattern, name in _ALTERNATIVE:
        if match := pattern.fullmatch(text):
            return match.expand(name)
    return text


def _unfolded(name: str) -> set[str]:
    if "[" not in name and "," not in name:
        return {name}
    try:
        return {str(one) for one in NodeSet(name, resolver=RESOLVER_NOGROUP)}
    except NodeSetException:
        return {name}


def _turned(names: set[str]) -> set[str]:
    """Names, and those of the same cables from their other ends."""
    return names | {"=".join(reversed(name.split("="))) for name in names if name.count("=") == 1}


def _match(names: set[str], true_names: frozenset[str]) -> bool:
    whole = _turned(names)
    if whole & true_names:
        return True
    hosts = {name.removesuffix("/*") for name in true_names if name.endswith("/*")}
    return any(name.partition("/")[0] in hosts for name in whole if "/" in name)


def score(verdict: Mapping[str, Any], truths: Sequence[Truth]) -> Score:
    """Compare."""
    findings = verdict["findings"]
    faults = [finding for finding in findings if finding["state"] == "FAULT"]
    allowed = frozenset().union(*(truth.names.exact | truth.names.series | truth.names.members for truth in truths))
    false, suspected = (
        tuple(
            f"{finding['text']['component']} {finding['text']['name']}"
            for finding in findings
            if finding["state"] == state and not _is_true(finding, allowed)
        )
        for state in ("FAULT", "SUSPECT")
    )
    if not truths:
        return Score(verdict["verdict"], "", false, suspected=suspected)
    outcomes = [_outcome(verdict, truth) for truth in truths]
    worst = max(outcomes, key=_ORDER.index)
    direction = all(_direction_right(faults, truth) for truth in truths)
    return Score(verdict["verdict"], worst, false, direction, suspected)


_ORDER: tuple[Outcome, ...] = ("exact", "group", "suspect", "incomplete", "hidden", "misnamed", "missed")


def _is_true(finding: Mapping[str, Any], allowed: frozenset[str]) -> bool:
    """Is each component that the finding puts at FAULT faulty, or the fault among its alternatives?"""
    names = names_in(finding)
    return all(_match({name}, allowed) for name in names) or (
        len(names) == 1 and _match(alternatives_in(finding), allowed)
    )


def _outcome(verdict: Mapping[str, Any], truth: Truth) -> Outcome:
    findings = verdict["findings"]
    if truth.missing:
        return _outcome_of_missing(verdict, truth)
    states: dict[str, list[Mapping[str, Any]]] = {}
    for finding in findings:
        states.setdefault(finding["state"], []).append(finding)
    faults = states.get("FAULT", [])
    if any(_match(names_in(one), truth.names.exact) for one in faults):
        return "exact"
    true_names = truth.names.exact | truth.names.series
    if any(_match(names_in(one) | alternatives_in(one), true_names) for one in faults):
        return "group"
    if truth.names.members and _all_named(faults, truth.names.members):
        return "group"
    if verdict["verdict"] == "pass":
        return "hidden" if _below_bound(states.get("OK", []), truth) else "missed"
    if any(_match(names_in(one) | alternatives_in(one), true_names) for one in states.get("SUSPECT", [])) or (
        verdict["verdict"] == "incomplete" and (states.get("SUSPECT") or states.get("CONFOUNDED"))
    ):
        return "suspect"
    return "incomplete" if verdict["verdict"] == "incomplete" else "misnamed"


def _all_named(findings: Sequence[Mapping[str, Any]], members: frozenset[str]) -> bool:
    """Is every member of the faulty component named, a cable by either of its directions?"""
    named = set().union(*(names_in(finding) for finding in findings))
    return {_cable(name) for name in members} <= {_cable(name) for name in named}


def _cable(name: str) -> str:
    """The cable of a link or a cable, with its ends in one order; another name as it is."""
    ends = name.replace(">", "=").split("=")
    return "=".join(sorted(ends)) if len(ends) == 2 else name


def _outcome_of_missing(verdict: Mapping[str, Any], truth: Truth) -> Outcome:
    """Is the component without measurements named, and no other one with it?"""
    true_names = truth.names.exact | truth.names.series
    named = [finding for finding in verdict["findings"] if finding["state"] in ("FAULT", "NOT JUDGED")]
    right = [finding for finding in named if all(_match({name}, true_names) for name in names_in(finding))]
    if any(_match(names_in(finding), truth.names.exact) for finding in right):
        return "exact"
    if right or any(_match(alternatives_in(finding), true_names) for finding in named):
        return "group"
    if truth.names.members and _all_named(named, truth.names.members):
        return "group"
    if verdict["verdict"] == "pass":
        return "missed"
    doubted = [finding for finding in verdict["findings"] if finding["state"] in ("SUSPECT", "CONFOUNDED")]
    if any(_match(names_in(finding) | alternatives_in(finding), true_names) for finding in doubted):
        return "suspect"
    return "incomplete" if verdict["verdict"] == "incomplete" else "misnamed"


def _below_bound(ok: Sequence[Mapping[str, Any]], truth: Truth) -> bool:
    """Is the loss so small that the printed bounds of the component allow it? Without a bound it is not."""
    for quantity, loss in truth.loss.items():
        bounds = [
            abs(float(item["effect"]))
            for item in ok
            if item.get("effect") is not None and item.get("quantity") == quantity and _concerns(item, truth)
        ]
        if loss > (max(bounds) if bounds else 0.0):
            return False
    return True


def _concerns(finding: Mapping[str, Any], truth: Truth) -> bool:
    all_concerns = truth.names.exact | truth.names.series
    if many := _MANY.fullmatch(str(finding["text"]["name"])):
        return truth.fault.kind in (many[1], {"link": "cable"}.get(many[1]))
    return _match(names_in(finding), all_concerns)


def _direction_right(faults: Sequence[Mapping[str, Any]], truth: Truth) -> bool:
    if truth.fault.kind not in ("host", "nic"):
        return True
    stated = {
        fault["direction"]
        for fault in faults
        if fault.get("direction") and _match(names_in(fault), truth.names.exact | truth.names.series)
    }
    return not stated or truth.fault.direction in stated or stated == {"tx", "rx"}
