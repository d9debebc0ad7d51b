"""What one host has otherwise than the others: a rule needs no figure of anybody's when most agree."""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fablint.discover.facts import Expected
from fablint.model import Component, Finding, State
from fablint.snapshot import NicFact

LEAST_OTHERS = 2  # that agree, and more than half of all


@dataclass(frozen=True)
class _Rule:
    """A property of a NIC that all hosts should have alike."""

    value: Callable[[NicFact], Any]
    component: Component
    words: str  # with {} for the value
    next_step: str
    below: bool = False  # only what is less than the others' is at fault


_RULES = (
    _Rule(operator.attrgetter("mtu"), "config", "MTU {}", "set the same MTU; long messages are lost on the way"),
    _Rule(operator.attrgetter("speed"), "nic", "{} Mbit/s", "reseat the cable, look at the port of the switch", True),
    _Rule(operator.attrgetter("state"), "nic", "link {}", "look at cable, NIC and the port of the switch"),
)


def judge_fleet(nics: Iterable[NicFact]) -> list[Finding]:
    """NICs of the same name that differ from those of most hosts. Without a clear majority nothing is said."""
    by_name: dict[str, list[NicFact]] = defaultdict(list)
    for nic in nics:
        if nic.kind != "virtual":
            by_name[nic.name].append(nic)
    hosts = {nic.host for alike in by_name.values() for nic in alike}
    findings = []
    for name, alike in by_name.items():
        findings += _missing(name, alike, hosts)
        findings += [finding for rule in _RULES for finding in _judge(rule, alike)]
    return findings


def judge_expected(expected: Iterable[Expected], nics: Mapping[tuple[str, str], NicFact]) -> list[Finding]:
    """NICs that are not set as their switch tells them to be."""
    findings = []
    for asked in expected:
        nic = nics.get((asked.host, asked.nic))
        wrong = []
        if nic and asked.mtu and nic.mtu and nic.mtu != asked.mtu:
            wrong.append(f"MTU {nic.mtu}, the switch asks for {asked.mtu}")
        if nic and asked.address and nic.addresses and asked.address not in nic.addresses:
            wrong.append(f"address {', '.join(nic.addresses[:2])}, the switch asks for {asked.address}")
        if wrong:
            step = "set it as the switch tells, or mend the fabric manager's table"
            findings.append(_finding("config", f"{asked.host}/{asked.nic}", "; ".join(wrong), step))
    return findings


def _judge(rule: _Rule, alike: Sequence[NicFact]) -> list[Finding]:
    known = [(nic, value) for nic in alike if (value := rule.value(nic)) not in (None, "")]
    usual = _majority([value for _, value in known])
    if usual is None or (rule.component == "nic" and usual == "down"):
        return []
    others = sum(value == usual for _, value in known)
    return [
        _finding(
            rule.component,
            f"{nic.host}/{nic.name}",
            f"{rule.words.format(value)}, {others} others {usual}",
            rule.next_step,
        )
        for nic, value in known
        if value != usual and not (rule.below and value > usual)
    ]


def _missing(name: str, alike: Sequence[NicFact], hosts: set[str]) -> list[Finding]:
    there = {nic.host for nic in alike}
    if len(there) < LEAST_OTHERS or 2 * len(there) <= len(hosts):
        return []
    step = "look whether the NIC died or its driver is not loaded"
    return [
        _finding("nic", f"{host}/{name}", f"there is no {name}, {len(there)} others have it", step)
        for host in sorted(hosts - there)
    ]


def _majority(values: Sequence[Any]) -> Any:
    """The value that more than half share, of which at least two; None where there is none."""
    if not values:
        return None
    usual, count = Counter(values).most_common(1)[0]
    return usual if count >= LEAST_OTHERS and 2 * count > len(values) else None


def _finding(component: Component, name: str, evidence: str, next_step: str) -> Finding:
    return Finding(state=State.FAULT, component=component, name=name, evidence=evidence, next_step=next_step)
