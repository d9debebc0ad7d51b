"""A check is a row: what it examines, where, how it is judged, and what a violation means.

A new check is a row in a module of `checks` and its place in `check_registry`. A judge is one of `judges`, or a
function of the module that yields the results of all hosts of a fleet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import eq

from fablint.model import ComponentKind
from fablint.model.preflight_results import Outcome, Result, Rule, Severity
from fablint.preflight.class_values import Agreement, is_clear
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host

Value = float | str | None

TIMED_OUT = "no answer in time"
UNREADABLE = "the output cannot be parsed"
_TOO_LONG = "it printed more than "
ABSENT = "absent"  # value of a setting that a host lacks

_result = partial(tuple.__new__, Result)  # as fast again as Result(...): 10,000 hosts have 3 million results
_PASS, _SKIP = Outcome.PASS, Outcome.SKIP
_WRONG = {Severity.FAIL: Outcome.FAIL, Severity.WARN: Outcome.WARN, Severity.INFO: Outcome.PASS}

Absent = str | Callable[[Host], str]  # why a host has no component to judge, or no value


def was_ended(why: str) -> bool:
    """Tell whether a program was ended before it had printed everything."""
    return why == TIMED_OUT or why.startswith(_TOO_LONG)


def typical_value(values: Sequence[Value]) -> Value:
    """Return the value that a site file should expect of hosts with these values; None without clear agreement."""
    agreed = Agreement.of(values)
    (value, count), *others = agreed.values
    return value if not others or is_clear(count, agreed.total) else None


def plain_words(_: str, value: Value) -> str:
    """Return a value as text."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _always(_: Host, __: Value, ___: Value) -> bool:
    return True


def _not_visible(_: Host) -> str:
    return ""


@dataclass(frozen=True)
class SiteValues:
    """Values of a check that a site file can expect of a host instead of those of similar hosts.

    A target is a component, or the setting `GROUP NAME` of one of `groups`.
    """

    values: Callable[[Fleet, Host], Mapping[str, Value]]  # by target; None: not visible
    worded: Callable[[str, Value], str] = plain_words  # by target, or by the name of a setting; None: it is missing
    numeric: bool = False  # numbers, not texts
    named: bool = False  # every target is another setting, without a common value
    is_met: Callable[[Value, Value], bool] = eq  # whether a value meets an expectation
    is_severe: Callable[[Host, Value, Value], bool] = _always  # whether a violation is more than a warning
    typical: Callable[[Sequence[Value]], Value] = typical_value  # of the hosts of a class
    groups: Callable[[Host], Collection[str]] | None = None  # of settings
    missing: Callable[[Host], str] = _not_visible  # value of expected targets that a host lacks; '' if not visible


@dataclass(frozen=True)
class Judge:
    """How a check judges the hosts of a fleet.

    `results` yields at least one result for every host, and one for each of its components.
    """

    results: Callable[[Check, Fleet], Iterable[Result]]
    compares: bool = True  # compares hosts; hosts with an incomplete snapshot are excluded
    reads: str = ""  # a long text that other checks read as well
    site: SiteValues | None = None


@dataclass(frozen=True, kw_only=True)
class Check(Rule):
    """A check. `id` begins with its subject and has at most 20 characters, the length of a reason in `sinfo -R`.

    Most rows are about a setting, whose violation is a warning.
    """

    judge: Judge
    rule: str = "the same as on most similar hosts"
    severity: Severity = Severity.WARN
    component: ComponentKind = "config"
    root: bool = False
    far_end: bool = False  # also depends on the switch: a violation on all its hosts is not a fault of these

    def results(self, fleet: Fleet) -> Iterable[Result]:
        """Return the results of all hosts of a fleet."""
        return self.judge.results(self, fleet)

    def ok(self, host: str, target: str = "", message: str = "", value: Value = None, unit: str = "") -> Result:
        """Return a pass."""
        return _result((self.id, host, target, _PASS, message, value, None, unit, "", None, ""))

    def failure(
        self, host: str, target: str, message: str, value: Value = None, expected: Value = None, unit: str = ""
    ) -> Result:
        """Return a violation with the severity of the check."""
        return Result(self.id, host, target, _WRONG[self.severity], message, value, expected, unit)

    def warning(self, host: str, target: str, message: str, value: Value = None, expected: Value = None) -> Result:
        """Return a warning, whatever the severity of the check."""
        return Result(self.id, host, target, Outcome.WARN, message, value, expected)

    def difference(
        self, clear: bool, host: str, target: str, message: str, value: Value = None, expected: Value = None
    ) -> Result:
        """Return a violation for a difference from other hosts; without a clear majority a warning."""
        return (self.failure if clear else self.warning)(host, target, message, value, expected)

    def skip(self, host: str, target: str, why: str) -> Result:
        """Return a skip for a property that is not visible. Never a pass."""
        return _result((self.id, host, target, _SKIP, why, None, None, "", "", None, ""))

    def error(self, host: str, target: str, message: str) -> Result:
        """Return an error for data that cannot be parsed."""
        return Result(self.id, host, target, Outcome.ERROR, message)

    def absence(self, host: Host, target: str, absent: Absent) -> Result:
        """Return the result for a property that is not visible.

        An error after a timeout or for an output that cannot be parsed, else a skip.
        """
        why = absent if isinstance(absent, str) else absent(host)
        return (self.error if why.endswith((TIMED_OUT, UNREADABLE)) else self.skip)(host.name, target, why)
