"""What a check is: a small class that looks at hosts and says what it saw. A new one is a class and a table row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from fablint.model import ComponentKind
from fablint.model.preflight_results import Outcome, Result, Rule, Severity
from fablint.preflight.class_values import LEAST_OTHERS as LEAST_OTHERS, Agreement, is_clear, majority_of
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host

Value = float | str | None

_WRONG = {Severity.FAIL: Outcome.FAIL, Severity.WARN: Outcome.WARN, Severity.INFO: Outcome.PASS}


class Check(ABC):
    """A check. `id` begins with the family and has at most 20 letters: so much of a reason `sinfo -R` shows."""

    id: ClassVar[str]
    what: ClassVar[str]  # is looked at
    source: ClassVar[str]  # where it is read
    rule: ClassVar[str]  # when it holds
    severity: ClassVar[Severity]  # of what does not hold
    component: ClassVar[ComponentKind]  # what is at fault then
    root: ClassVar[bool] = False  # is it seen by root only?
    remedy: ClassVar[str]  # what to do
    compares: ClassVar[bool] = True  # hosts with each other: takes no part of what a host was not able to say in time

    reads: ClassVar[str] = ""  # a long text of each host that other checks read as well
    far_end: ClassVar[bool] = False  # the switch decides it as well: seen on all of its hosts, it is no fault of these
    expects: ClassVar[bool] = False  # a site file can give the values of `site_values`
    numeric: ClassVar[bool] = False  # these are figures, not words
    named: ClassVar[bool] = False  # every target is a setting of its own: no value holds for all of them

    @abstractmethod
    def judge(self, fleet: Fleet) -> Iterator[Result]:
        """What is seen on all hosts: something of every host, and of each of its parts."""

    def site_values(self, host: Host) -> Mapping[str, Value]:
        """The values of a host that a site file can expect, by target; None where a value cannot be seen.

        Called after `judge`, of hosts of the same fleet.
        """
        return {}

    def lacking(self, host: Host, expected: Collection[str]) -> Mapping[str, Value]:
        """Values of targets that a site file expects and `site_values` does not have, where it can be seen."""
        return {}

    def alias(self, target: str) -> str:
        """Another name by which a site file can expect the value of a target."""
        return target

    def typical(self, values: Sequence[Value]) -> Value:
        """The value that a site file should expect of hosts with these; None where they do not agree clearly."""
        agreed = Agreement.of(values)
        (value, count), *others = agreed.values
        return value if not others or is_clear(count, agreed.total) else None

    def is_met(self, value: Value, expected: Value) -> bool:
        """Is a value what the site file expects?"""
        return value == expected

    def worded(self, target: str, value: Value) -> str:
        """`MTU 1500`."""
        return f"{value:g}" if isinstance(value, float) else str(value)

    def against(self, host: str, target: str, value: Value, expected: Value, site: str) -> Result:
        """What a value comes to beside that of the site file, which takes the place of what other hosts have."""
        if self.is_met(value, expected):
            return self.passed(host, target, value=value)
        wanted = f"{expected:g}" if isinstance(expected, float) else expected
        message = f"{self.worded(target, value)}, {wanted} in {site}"
        return self.wrong(host, target, message, value, expected)

    @classmethod
    def described(cls) -> Rule:
        return Rule(cls.id, cls.what, cls.source, cls.rule, cls.severity, cls.component, cls.root, cls.remedy)

    def passed(self, host: str, target: str = "", message: str = "", value: Value = None, unit: str = "") -> Result:
        return Result(self.id, host, target, Outcome.PASS, message, value, None, unit)

    def wrong(
        self, host: str, target: str, message: str, value: Value = None, expected: Value = None, unit: str = ""
    ) -> Result:
        """It does not hold; how bad that is, is the check's severity."""
        return Result(self.id, host, target, _WRONG[self.severity], message, value, expected, unit)

    def warned(self, host: str, target: str, message: str, value: Value = None, expected: Value = None) -> Result:
        """Less bad than the check's severity says."""
        return Result(self.id, host, target, Outcome.WARN, message, value, expected)

    def differs(
        self,
        clear: bool,
        host: str,
        target: str,
        message: str,
        value: Value = None,
        expected: Value = None,
        unit: str = "",
    ) -> Result:
        """It is not as others have it. Without a clear majority of others that is a warning at most."""
        if clear:
            return self.wrong(host, target, message, value, expected, unit)
        return self.warned(host, target, message, value, expected)

    def skipped(self, host: str, target: str, why: str) -> Result:
        """It cannot be seen. Never a pass."""
        return Result(self.id, host, target, Outcome.SKIP, why)

    def unclear(self, host: str, target: str, message: str) -> Result:
        """What was read cannot be parsed."""
        return Result(self.id, host, target, Outcome.ERROR, message)


class HostCheck(Check):
    """One that needs no other host."""

    absent: ClassVar[str] = "there is none"  # why a host has nothing to look at
    compares = False

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        for host in fleet.hosts:
            found = list(self.look(host))
            yield from found or [self.skipped(host.name, "", self.absent)]

    @abstractmethod
    def look(self, host: Host) -> Iterable[Result]:
        """What is seen on a host; nothing where it has no such part."""


class UniformCheck(Check):
    """A property that similar hosts have alike: who differs from most of them is named with what they have.

    Like are hosts of one class (`Host.kind`), and of parts those with the same part number. Where the majority is not
    clear, nobody in particular is wrong: all hosts of the class share one warning that counts the kinds. A value that
    is poor by itself is a warning of all hosts that have it, however many; who differs from it is not wrong.
    """

    words: ClassVar[str]  # with {} for the value: `MTU {}`
    absent: ClassVar[str] = "cannot be seen"
    below: ClassVar[bool] = False  # only what is less than the others' is wrong
    by_class: ClassVar[bool] = False  # compares part numbers as well: all parts of this name of a class
    expects = True

    @abstractmethod
    def values(self, host: Host) -> Mapping[str, Any]:
        """The value of each target; None where it cannot be seen."""

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        like: dict[tuple[str, ...], list[tuple[str, Any]]] = defaultdict(list)
        for host in fleet.hosts:
            values = self.values(host)
            if not values:
                yield self.skipped(host.name, "", self.absent)
            for target, value in values.items():
                if value is None:
                    yield self.skipped(host.name, target, self.absent)
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
                yield self.warned(host, target, agreed.kinds(self.words), value)
            elif self.is_poor(value) and (usual is None or value == usual):
                yield self.warned(host, target, f"{self.words.format(value)}{among(agreed, value)}", value)
            elif usual is None:
                yield self.skipped(host, target, f"{self.words.format(value)}; no majority to compare with")
            elif not self._is_wrong(value, usual) or (self.is_poor(usual) and not self.is_poor(value)):
                yield self.passed(host, target, value=value)
            else:
                message = f"{self.words.format(value)}, {count} other{'s' if count > 1 else ''} {usual}"
                yield self.differs(agreed.is_clear, host, target, message, value, usual)

    def site_values(self, host: Host) -> Mapping[str, Value]:
        return self.values(host)

    def is_met(self, value: Value, expected: Value) -> bool:
        return not self._is_wrong(value, expected)

    def worded(self, target: str, value: Value) -> str:
        return self.words.format(value)

    def is_poor(self, value: Any) -> bool:
        """Does it slow messages down even where all hosts have it so?"""
        return False

    def _is_wrong(self, value: Any, usual: Any) -> bool:
        return bool(value < usual if self.below else value != usual)


def among(agreed: Agreement, value: Any) -> str:
    """` on 6 of 8 similar hosts`; empty where there is one host."""
    count = next((count for one, count in agreed.values if one == value), 0)
    return f" on {count} of {agreed.total} similar hosts" if agreed.total > 1 else ""


def majority(values: Sequence[Any]) -> tuple[Any, int]:
    """The value that more than half share, of which at least two, and how many; (None, 0) where there is none."""
    return majority_of(Counter(values).most_common())
