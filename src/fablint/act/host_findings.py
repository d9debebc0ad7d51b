"""What is acted upon: findings of a verdict or of preflight, and the hosts that they are about."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from fablint.act.short_texts import said_by
from fablint.errors import UsageError
from fablint.model import Finding, State
from fablint.model.host_name import one_spelling

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")  # that may be part of a command
_SEEN = ("PASS", "WARN", "FAIL", "SUPPRESSED")
_HINT = "give a run, its verdict.json, or what fablint preflight --json printed"


class Mark(NamedTuple):
    """What a check of preflight came to on a part of a host."""

    host: str
    check: str
    outcome: str


@dataclass(frozen=True)
class HostFindings:
    """Findings and the hosts that were examined or measured; `hosts` is None where they are unknown."""

    findings: Sequence[Finding]
    hosts: Sequence[str] | None = None
    silent: frozenset[str] = frozenset()  # hosts that gave preflight no answer
    unfit: frozenset[str] = frozenset()  # hosts that preflight found not fit to be measured
    results: tuple[Mark, ...] = ()  # of preflight; empty where it did not find these
    verdict: str = ""  # word of the verdict of a measurement

    def reported_hosts(self, finding: Finding) -> Sequence[str]:
        """Hosts of a finding: none for a switch, a cable between two switches or a path between hosts.

        Of a cable `A=B` and of settings that have a name of their own it takes a known host to be one.
        """
        routes = finding.component == "route" and said_by(finding)  # preflight's are those of a host
        names = [
            name
            for component in finding.components
            for name in (component.ends[0].nodes if routes and component.ends else component.hosts)
        ]
        if not all(map(_NAME.fullmatch, names)):
            return ()
        result = dict.fromkeys(map(self._spelled, names))
        ends = finding.components[0].ends
        cable = finding.component == "cable" and len(ends) > 1
        setting = finding.component == "config" and not (ends and ends[0].part)
        return [host for host in result if host in self._known] if cable or setting else list(result)

    def left(self, *, with_warnings: bool = False) -> Sequence[str]:
        """Return the hosts that are neither at fault nor different; `with_warnings`: also those that are different.

        A host that preflight does not count as fit is excluded, also if output of one check was not understood.
        """
        out = self.unfit | {
            host for finding in self.findings if finding.state is State.FAULT for host in self.reported_hosts(finding)
        }
        out |= {result.host for result in self.results if result.outcome == "ERROR"}
        if not with_warnings:
            out |= self._differing | self._suspects
        return [host for host in self.hosts or () if host not in out]

    @property
    def _suspects(self) -> frozenset[str]:
        """Hosts that a measurement suspects; warnings of preflight are in `_differing`."""
        findings = (finding for finding in self.findings if finding.state is State.SUSPECT and not said_by(finding))
        return frozenset(host for one in findings for host in self.reported_hosts(one))

    @property
    def _differing(self) -> frozenset[str]:
        """Hosts with a warning of a check of preflight that at most half of the hosts have."""
        judged: dict[str, set[str]] = defaultdict(set)
        warned: dict[str, set[str]] = defaultdict(set)
        for result in self.results or self._warnings:
            if result.outcome in _SEEN:
                judged[result.check].add(result.host)
            if result.outcome == "WARN":
                warned[result.check].add(result.host)
        count = {check: len(hosts) if self.results else len(self.hosts or ()) for check, hosts in judged.items()}
        few = (hosts for check, hosts in warned.items() if 2 * len(hosts) <= count[check])
        return frozenset(host for hosts in few for host in hosts)

    @property
    def _warnings(self) -> Iterator[Mark]:
        """Warnings of preflight in findings."""
        for finding in self.findings:
            said = said_by(finding)
            if said and finding.state is State.SUSPECT:
                yield from (Mark(host, said[0], "WARN") for host in self.reported_hosts(finding))

    @cached_property
    def _known(self) -> Sequence[str]:
        """Return those of the source; else those that findings call hosts, healthy ones included."""
        if self.hosts is not None:
            return self.hosts
        return list(
            dict.fromkeys(host for finding in self.findings if finding.component == "host" for host in finding.hosts)
        )

    @cached_property
    def _spelled(self) -> Callable[[str], str]:
        return one_spelling(self._known, [])


def parse_source(text: str, name: str) -> HostFindings:
    """A verdict, or what preflight printed. Raises UsageError where it is neither."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(f"{name}: is not JSON", _HINT) from None
    if not isinstance(document, dict) or not isinstance(document.get("findings"), list):
        raise UsageError(f"{name}: has no findings", _HINT)
    hosts, findings = _hosts(document.get("hosts"), name), _findings(document["findings"], name)
    silent, unfit = (frozenset(_mapping(document.get(key))) for key in ("silent", "unfit"))
    verdict = document.get("verdict")
    marks = tuple(_marks(document.get("results")))
    return HostFindings(findings, hosts, silent, unfit, marks, verdict if isinstance(verdict, str) else "")


def _mapping(mapping: object) -> Mapping[str, object]:
    return mapping if isinstance(mapping, dict) else {}


def _marks(result: object) -> Iterator[Mark]:
    """The results of preflight, as far as they are such."""
    for item in result if isinstance(result, list) else ():
        words = [_mapping(item).get(key) for key in Mark._fields]
        if all(isinstance(word, str) for word in words):
            yield Mark(*map(str, words))


def _findings(findings: list[Any], name: str) -> Sequence[Finding]:
    try:
        return TypeAdapter(list[Finding]).validate_python(findings)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{name}: findings.{where}: {first['msg']}", _HINT) from None


def _hosts(hosts: object, name: str) -> Sequence[str] | None:
    if hosts is None:
        return None
    if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
        raise UsageError(f"{name}: hosts: is not a list of names", _HINT)
    return hosts
