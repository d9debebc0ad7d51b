"""Base of checks of the kernel log: search, grades, counts and ages of events."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple

from fablint.model.preflight_results import Result
from fablint.preflight.base import HostCheck
from fablint.preflight.host import Host
from fablint.snapshot.parsers.kernel_log import (
    Event,
    Grade,
    Line,
    Pattern,
    Recovery,
    RecoveryPattern,
    watch,
)
from fablint.text.sanitise import ago, shortened, times

BDF = r"(?P<device>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"


GPUS = "/proc/driver/nvidia/gpus"


MANY = 100  # corrected errors of a device within a day


class _Judged(NamedTuple):
    """An event with its present grade."""

    event: Event
    grade: Grade
    ended: bool  # the device recovered
    recent: bool
    age: float | None  # seconds; None: the uptime is unknown


class LogCheck(HostCheck):
    """Base of checks of kernel log lines with certain words."""

    source = "the kernel log (/dev/kmsg, else dmesg, else the journal)"
    reads = "kernel log"
    words: ClassVar[tuple[str, ...]]  # words of lines that report events
    ending_words: ClassVar[tuple[str, ...]] = ()  # words of lines that report recoveries

    def __init_subclass__(cls) -> None:
        watch(getattr(cls, "words", ()))

    def look(self, host: Host) -> Iterable[Result]:
        log = host.snapshot.kernel_log
        if not log.ran or not log.text.strip():
            return [self.skip(host.name, "", f"the kernel log cannot be read: {log.error or 'it is empty'}")]
        lines = host.kernel_log.lines_with(self.words)
        events = list(self.events(host, lines)) if lines else []
        if not events:
            lacks = self.lacks(host)
            return [self.skip(host.name, "", lacks) if lacks else self.ok(host.name)]
        now = max(host.uptime_s or 0.0, host.kernel_log.last_moment())
        dated = host.uptime_s is not None
        endings = host.kernel_log.lines_with(self.ending_words) if self.ending_words else lines
        recoveries = list(self.recoveries(host, endings))
        by_device: dict[str, list[_Judged]] = defaultdict(list)
        for event in events:
            ended = any(recovery.ends(event) for recovery in recoveries)
            grade = Grade.NOTE if ended else event.grade_now(now)
            age = event.line.age(now) if dated else None
            by_device[shortened(event.device)].append(_Judged(event, grade, ended, event.is_recent(now), age))
        return [self._judged(host.name, device, found) for device, found in by_device.items()]

    @abstractmethod
    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        """Yield the events that the lines report."""

    def recoveries(self, host: Host, lines: Sequence[Line]) -> Iterator[Recovery]:
        """Yield recoveries; `lines` are those with `ending_words`, or the lines of the events if there are none."""
        return iter(())

    def lacks(self, host: Host) -> str:
        """Return why the log cannot contain such events; '' if it can."""
        return ""

    def _judged(self, host: str, device: str, found: Sequence[_Judged]) -> Result:
        """Return the result for the worst events of a device."""
        worst = max(one.grade for one in found)
        many = _many(found)
        if many and worst is Grade.NOTE:
            message = f"{_counted(many)} within a day; {_last(found[-1])}"
            return self.warning(host, device, message, many.total())
        bad = [one for one in found if one.grade is worst]
        kinds: Counter[str] = Counter()
        for one in bad:
            kinds[f"{one.event.what} (recovered)" if one.ended else one.event.what] += one.event.number
        message = f"{_counted(kinds)}; {_last(bad[-1])}"
        if worst is Grade.FAIL:
            return self.failure(host, device, message, kinds.total())
        if worst is Grade.WARN:
            return self.warning(host, device, message, kinds.total())
        return self.ok(host, device, message, kinds.total())


class PatternCheck(LogCheck):
    """Base of checks with a table of patterns."""

    patterns: ClassVar[tuple[Pattern, ...]]
    endings: ClassVar[tuple[RecoveryPattern, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.words = tuple(dict.fromkeys(pattern.word for pattern in cls.patterns))
        cls.ending_words = tuple(dict.fromkeys(ending.word for ending in cls.endings))
        super().__init_subclass__()

    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        for line in lines:
            for pattern in self.patterns:
                yield from pattern.events(line)

    def recoveries(self, host: Host, lines: Sequence[Line]) -> Iterator[Recovery]:
        for line in lines:
            for ending in self.endings:
                yield from ending.recoveries(line)


def _many(found: Sequence[_Judged]) -> Counter[str]:
    """Count the notes within a day that exceed their limits."""
    counts: Counter[str] = Counter()
    for one in found:
        if one.event.many and one.grade is Grade.NOTE and one.recent:
            counts[one.event.what] += one.event.number
    limits = {one.event.what: one.event.many for one in found}
    return Counter({what: count for what, count in counts.items() if count > limits[what]})


def _last(one: _Judged) -> str:
    """Describe the last event: `last 3 h ago: TEXT`."""
    when = "last" if one.age is None else f"last {ago(one.age)}"
    return f"{when}: {shortened(one.event.line.text)}"


def _counted(kinds: Counter[str]) -> str:
    return "; ".join(times(shortened(what), count) for what, count in kinds.items())
