"""Words of preflight: what a check says of a host, and what all of them together say of many."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from fablint.model import ComponentKind, Note
from fablint.model.host_name import DeviceRef

NETWORK, PING = "net.examined", "net.ping"  # ids of checks that say which network was looked at


class Outcome(StrEnum):
    """What came of a check on a host."""

    PASS = "PASS"
    WARN = "WARN"  # not as it should be, but the host can be used
    FAIL = "FAIL"  # the host is not fit
    SKIP = "SKIP"  # cannot be seen here, and why
    ERROR = "ERROR"  # it was asked, and the answer cannot be understood: never a pass
    SUPPRESSED = "SUPPRESSED"  # WARN or FAIL that the site file suppresses until a date


class Severity(StrEnum):
    """What it means when a check does not hold."""

    FAIL = "fail"
    WARN = "warn"
    INFO = "info"  # reported only


class Suppressed(NamedTuple):
    """What a suppressed result was, and what the site file says about it."""

    outcome: Outcome  # WARN or FAIL
    until: str  # the last day, `2026-12-31`
    reason: str

    @property
    def words(self) -> str:
        """`WARN, suppressed until 2026-12-31: BIOS update`."""
        return f"{self.outcome}, suppressed until {self.until}: {self.reason}"


class Result(NamedTuple):
    """What one check says of one part of one host."""

    check: str  # its id
    host: str
    target: str  # `hsn0`, `mlx5_0/1`, `cpu3`; empty: the host itself
    outcome: Outcome
    message: str = ""  # for people, with the value and what was expected: `MTU 1500, 15 others 9000`
    value: int | float | str | None = None  # pydantic warns of an int that is to be written as a float
    expected: int | float | str | None = None
    unit: str = ""
    cause: str = ""  # what the hosts of which it is said share, where that explains it: `switch s3`
    suppressed: Suppressed | None = None  # of a result whose outcome is SUPPRESSED
    peer: str = ""  # the other host of a pair

    @property
    def name(self) -> str:
        """The part: `nid001013/hsn0`."""
        return DeviceRef.of(self.host, self.target)


@dataclass(frozen=True)
class Rule:
    """What a check looks at and when it holds, for people."""

    id: str
    what: str
    source: str
    rule: str
    severity: Severity
    component: ComponentKind
    root: bool
    remedy: str
    follows: tuple[str, ...] = ()  # ids of checks: what the first of them reports about the same part is the cause


@dataclass(frozen=True)
class Fitness:
    """What all checks say of all hosts."""

    hosts: Sequence[str]  # that were asked
    results: Sequence[Result]
    rules: Mapping[str, Rule]  # by id
    silent: Mapping[str, str] = field(default_factory=dict)  # hosts that gave no snapshot, and why
    notes: Sequence[Note] = ()  # about the site file: suppressions that have expired

    @cached_property
    def unfit(self) -> Mapping[str, str]:
        """Hosts that should not be measured, and the first reason. Switches that fail are not among them."""
        reasons = {host: f"no answer: {why}" for host, why in self.silent.items()}
        asked = set(self.hosts)
        for result in self.results:
            if result.outcome is Outcome.FAIL and result.host in asked:
                reasons.setdefault(result.host, f"{result.check} {result.target} {result.message}".replace("  ", " "))
        return reasons

    @cached_property
    def not_examined(self) -> Mapping[str, str]:
        """Hosts whose network was not looked at, and why. They are neither fit nor unfit."""
        return {
            result.host: result.message
            for result in self.results
            if result.check == NETWORK and result.outcome is Outcome.ERROR
        }

    @cached_property
    def unexamined(self) -> Mapping[str, list[str]]:
        """Hosts whose network was not looked at, by the reason."""
        result: dict[str, list[str]] = defaultdict(list)
        for host, why in self.not_examined.items():
            result[why].append(host)
        return result

    @cached_property
    def not_pinged(self) -> str:
        """Return why no host has pinged another, where there are several; empty where one has."""
        pings = [result for result in self.results if result.check == PING]
        if len({ping.host for ping in pings}) < 2 or any(ping.outcome is not Outcome.SKIP for ping in pings):
            return ""
        return Counter(ping.message for ping in pings).most_common(1)[0][0]

    def remedy(self, result: Result) -> str:
        """Return what to do about a result: about its cause, where another check reports that of the same part."""
        rule, reporting = self.rules[result.check], self._reporting.get((result.host, result.target), ())
        return self.rules[next((check for check in rule.follows if check in reporting), result.check)].remedy

    @cached_property
    def _reporting(self) -> Mapping[tuple[str, str], set[str]]:
        """Ids of the checks that fail or warn, by host and part."""
        checks: dict[tuple[str, str], set[str]] = defaultdict(set)
        for result in self.results:
            if result.outcome is not Outcome.PASS and result.outcome in (Outcome.FAIL, Outcome.WARN):
                checks[result.host, result.target].add(result.check)
        return checks

    @cached_property
    def exit_code(self) -> int:
        """1: a host is unfit, or a switch; 3: something could not be understood; 0: warnings at most."""
        outcomes = {result.outcome for result in self.results}
        if self.silent or Outcome.FAIL in outcomes:
            return 1
        return 3 if Outcome.ERROR in outcomes else 0


def hosts_by_result(results: Iterable[Result]) -> Mapping[tuple[str, str, Outcome, str], list[str]]:
    """Hosts with equal results, by check, target, outcome and message."""
    outcomes: dict[tuple[str, str, Outcome, str], list[str]] = defaultdict(list)
    for result in results:
        outcomes[result.check, result.target, result.outcome, result.message].append(result.host)
    return outcomes
