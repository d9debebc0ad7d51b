"""What is acted upon: findings of a verdict or of preflight, and the hosts that they are about."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fablint.act.words import said_by
from fablint.errors import UsageError
from fablint.model import Finding, State, host_of
from fablint.names import one_spelling, unfold

_NAMES = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,\[\]-]*")  # that may be part of a command
_BLAMED = (State.FAULT, State.SUSPECT)
_HINT = "give a run, its verdict.json, or what fablint preflight --json printed"


@dataclass(frozen=True)
class Source:
    """Findings, and the hosts that were asked or measured; None where nobody says which these are."""

    findings: Sequence[Finding]
    hosts: Sequence[str] | None = None

    def accused(self, finding: Finding) -> Sequence[str]:
        """The hosts that a finding is about: none for a switch, a cable between two, a way between hosts.

        Of a cable `A=B` and of settings that have a name of their own it takes a known host to be one.
        """
        routes = finding.component == "route" and said_by(finding)  # preflight's are those of a host
        name = finding.name.partition("/")[0] if routes else host_of(finding)
        if not _NAMES.fullmatch(name):
            return ()
        found = dict.fromkeys(map(self._spelled, unfold(name)))
        cable = finding.component == "cable" and "=" in finding.name
        setting = finding.component == "config" and "/" not in finding.name
        return [host for host in found if host in self._known] if cable or setting else list(found)

    @property
    def left(self) -> Sequence[str]:
        """The hosts of which nothing bad is known."""
        blamed = {host for one in self.findings if one.state in _BLAMED for host in self.accused(one)}
        return [host for host in self.hosts or () if host not in blamed]

    @cached_property
    def _known(self) -> Sequence[str]:
        """Those of the source; else those that findings call hosts, healthy ones included."""
        if self.hosts is not None:
            return self.hosts
        named = (unfold(host_of(one)) for one in self.findings if one.component == "host")
        return list(dict.fromkeys(host for names in named for host in names))

    @cached_property
    def _spelled(self) -> Callable[[str], str]:
        return one_spelling(self._known, [])


def parse_source(text: str, name: str) -> Source:
    """A verdict, or what preflight printed. Raises UsageError where it is neither."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(f"{name}: is no JSON", _HINT) from None
    if not isinstance(document, dict) or not isinstance(document.get("findings"), list):
        raise UsageError(f"{name}: has no findings", _HINT)
    return Source(_findings(document["findings"], name), _hosts(document.get("hosts"), name))


def _findings(found: list[Any], name: str) -> Sequence[Finding]:
    try:
        return TypeAdapter(list[Finding]).validate_python(found)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{name}: findings.{where}: {first['msg']}", _HINT) from None


def _hosts(found: object, name: str) -> Sequence[str] | None:
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(host, str) for host in found):
        raise UsageError(f"{name}: hosts: is no list of names", _HINT)
    return found
