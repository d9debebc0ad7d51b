"""Base classes of checks. A new check is a class and a row of the table in check_registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from fablint.model import ComponentKind
from fablint.model.preflight_results import Outcome, Result, Rule, Severity
from fablint.preflight.class_values import LEAST_OTHERS as LEAST_OTHERS, Agreement, is_clear, majority_of, worded
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host

Value = float | str | None

_result = partial(tuple.__new__, Result)  # as fast again as Result(...): 10,000 hosts have 3 million results
_PASS, _SKIP = Outcome.PASS, Outcome.SKIP
_WRONG = {Severity.FAIL: Outcome.FAIL, Severity.WARN: Outcome.WARN, Severity.INFO: Outcome.PASS}


class Check(ABC):
    """A check. `id` begins with its subject and has at most 20 characters, the length of a reason in `sinfo -R`."""

    id: ClassVar[str]
    what: ClassVar[str]  # examined property
    source: ClassVar[str]  # where it is read
    rule: ClassVar[str]  # condition of a pass
    severity: ClassVar[Severity]  # of a violation
    component: ClassVar[ComponentKind]  # faulty component of a violation
    root: ClassVar[bool] = False  # visible to root only
    remedy: ClassVar[str]  # what to do about a violation
    follows: ClassVar[tuple[str, ...]] = ()  # checks that report the cause of a violation, of the same part
    compares: ClassVar[bool] = True  # compares hosts; hosts with an incomplete snapshot are excluded

    reads: ClassVar[str] = ""  # a long text that other checks read as well
    far_end: ClassVar[bool] = False  # also depends on the switch: a violation on all its hosts is not a fault of these
    expects: ClassVar[bool] = False  # a site file can give the values of `site_values`
    numeric: ClassVar[bool] = False  # these are numbers, not texts
    named: ClassVar[bool] = False  # every target is another setting, without a common value

    @abstractmethod
    def judge(self, fleet: Fleet) -> Iterator[Result]:
        """Yield at least one result for every host, and one for each of its components."""

    def site_values(self, host: Host) -> Mapping[str, Value]:
        """Return the values that a site file can expect, by target; None for values that are not visible.

        Called after `judge` for hosts of the same fleet.
        """
        return {}

    def lacking(self, host: Host, expected: Collection[str]) -> Mapping[str, Value]:
        """Return values of expected targets that are missing from `site_values`, if that is visible."""
        return {}

    def alias(self, target: str) -> str:
        """Return another name of a target in a site file."""
        return target

    def typical(self, values: Sequence[Value]) -> Value:
        """Return the value that a site file should expect of hosts with these values; None without clear agreement."""
        agreed = Agreement.of(values)
        (value, count), *others = agreed.values
        return value if not others or is_clear(count, agreed.total) else None

    def is_met(self, value: Value, expected: Value) -> bool:
        """Tell whether a value meets the expectation of a site file."""
        return value == expected

    def worded(self, target: str, value: Value) -> str:
        """Format a value: `MTU 1500`."""
        return f"{value:g}" if isinstance(value, float) else str(value)

    def against(self, host: str, target: str, value: Value, expected: Value, site: str) -> Result:
        """Return the result of comparing a value with the site file instead of with other hosts."""
        if self.is_met(value, expected):
            return self.ok(host, target, value=value)
        text = f"{expected:g}" if isinstance(expected, float) else expected
        message = f"{self.worded(target, value)}, {text} in {site}"
        return self.failure(host, target, message, value, expected)

    @classmethod
    def described(cls) -> Rule:
        """Return the description of the check for reports."""
        return Rule(
            cls.id, cls.what, cls.source, cls.rule, cls.severity, cls.component, cls.root, cls.remedy, cls.follows
        )

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
        self,
        clear: bool,
        host: str,
        target: str,
        message: str,
        value: Value = None,
        expected: Value = None,
        unit: str = "",
    ) -> Result:
        """Return a violation for a difference from other hosts; without a clear majority a warning."""
        if clear:
            return self.failure(host, target, message, value, expected, unit)
        return self.warning(host, target, message, value, expected)

    def skip(self, host: str, target: str, why: str) -> Result:
        """Return a skip for a property that is not visible. Never a pass."""
        return _result((self.id, host, target, _SKIP, why, None, None, "", "", None, ""))

    def error(self, host: str, target: str, message: str) -> Result:
        """Return an error for data that cannot be parsed."""
        return Result(self.id, host, target, Outcome.ERROR, message)


class HostCheck(Check):
    """Base of checks that judge each host on its own."""

    absent: ClassVar[str] = "there is none"  # reason for a skip without any result
    compares = False

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        for host in fleet.hosts:
            found = list(self.look(host))
            yield from found or [self.skip(host.name, "", self.absent)]

    @abstractmethod
    def look(self, host: Host) -> Iterable[Result]:
        """Return one result for each component of a host, with the name of the check, the host and the component.

        The host is read from its snapshot. Without a result the host is skipped with the text `absent`: it has no such
        component. Data that cannot be parsed are a result with the outcome ERROR; nothing is raised.
        """


class UniformCheck(Check):
    """Base of checks of a property that must be equal on similar hosts.

    Similar hosts are those of one class (`Host.kind`); similar components have the same part number. Without a clear
    majority all hosts of the class have one warning that counts the values. A poor value is a warning for all hosts
    that have it, however many; a host that differs from a poor value is not wrong.
    """

    words: ClassVar[str]  # those of `worded`: `MTU {}`, `{} GPU[s]`
    absent: ClassVar[str] = "not visible"
    below: ClassVar[bool] = False  # only a lower value than on other hosts is wrong
    by_class: ClassVar[bool] = False  # compares components by name within a class, also those with another part number
    expects = True

    @abstractmethod
    def values(self, host: Host) -> Mapping[str, Any]:
        """Return the value of each target; None if it is not visible."""

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        like: dict[tuple[str, ...], list[tuple[str, Any]]] = defaultdict(list)
        for host in fleet.hosts:
            values = self.values(host)
            if not values:
                yield self.skip(host.name, "", self.absent)
            for target, value in values.items():
                if value is None:
                    yield self.skip(host.name, target, self.absent)
                elif self.by_class:
                    like[target, host.kind].append((host.name, value))
                else:
                    like[target, *host.like(target)].append((host.name, value))
        for (target, *_), known in like.items():
            yield from self._compared(target, known)

    def _compared(self, target: str, known: Sequence[tuple[str, Any]]) -> Iterator[Result]:
        agreed = Agreement.of([value for _, value in known])
        usual, count = agreed.usual, agreed.count
        if self.below:
            agreed = agreed.with_more_as_usual
        divided = agreed.is_divided and (usual is None or any(self._is_wrong(value, usual) for _, value in known))
        for host, value in known:
            if divided:
                yield self.warning(host, target, agreed.kinds(self.words), value)
            elif self.is_poor(value) and (usual is None or value == usual):
                yield self.warning(host, target, f"{worded(self.words, value)}{among(agreed, value)}", value)
            elif usual is None:
                yield self.skip(host, target, f"{worded(self.words, value)}; no majority to compare with")
            elif not self._is_wrong(value, usual) or (self.is_poor(usual) and not self.is_poor(value)):
                yield self.ok(host, target, value=value)
            else:
                message = f"{worded(self.words, value)}, {count} other{'s' if count > 1 else ''} {usual}"
                yield self.difference(agreed.is_clear, host, target, message, value, usual)

    def site_values(self, host: Host) -> Mapping[str, Value]:
        return self.values(host)

    def is_met(self, value: Value, expected: Value) -> bool:
        return not self._is_wrong(value, expected)

    def worded(self, target: str, value: Value) -> str:
        return worded(self.words, value)

    def is_poor(self, value: Any) -> bool:
        """Tell whether a value slows down messages even if all hosts have it."""
        return False

    def _is_wrong(self, value: Any, usual: Any) -> bool:
        return bool(value < usual if self.below else value != usual)


def among(agreed: Agreement, value: Any) -> str:
    """Return ` on 6 of 8 similar hosts`; '' for a single host."""
    count = next((count for one, count in agreed.values if one == value), 0)
    return f" on {count} of {agreed.total} similar hosts" if agreed.total > 1 else ""


def majority(values: Sequence[Any]) -> tuple[Any, int]:
    """Return the value of more than half, at least two, with its count; (None, 0) if there is none."""
    return majority_of(Counter(values).most_common())
