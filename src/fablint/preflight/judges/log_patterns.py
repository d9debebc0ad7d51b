"""Judge of the kernel log: search, grades, counts and ages of events."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from fablint.model.preflight_results import Result
from fablint.preflight.check import Check, Judge
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot.parsers.kernel_log import (
    Event,
    Grade,
    Line,
    Pattern,
    Recovery,
    RecoveryPattern,
    pattern_events,
    pattern_recoveries,
    watch,
    words_of,
)
from fablint.text.sanitise import ago, shortened, times

LOG = "kernel log"  # read by the checks that search it
KERNEL_LOG = "the kernel log (/dev/kmsg, else dmesg, else the journal)"


class _Judged(NamedTuple):
    """An event with its present grade."""

    event: Event
    grade: Grade
    ended: bool  # the device recovered
    recent: bool
    age: float | None  # seconds; None: the uptime is unknown


Events = Callable[[Sequence[Line]], Iterable[Event]]  # that lines report
Recoveries = Callable[[Host, Sequence[Line]], Iterable[Recovery]]
Changed = Callable[[Host, Iterable[Event]], Iterable[Event]]


def log_events(
    words: Sequence[str],
    events: Events,
    recoveries: Recoveries = lambda _, __: (),
    *,
    ending_words: Sequence[str] = (),
    changed: Changed = lambda _, events: events,
    lacks: Callable[[Host], str] = lambda _: "",
) -> Judge:
    """Judge the events of devices that lines of the kernel log report.

    Parameters
    ----------
    words, events
        Words of lines that report events, and a function that returns these.
    recoveries, ending_words
        Returns the recoveries that lines with these words report, or else the lines of the events.
    changed
        Changes or removes events.
    lacks
        Returns why the log cannot contain such events; '' if it can.
    """
    watch(words)

    def of_host(check: Check, host: Host) -> Sequence[Result]:
        log = host.snapshot.kernel_log
        if not log.ran or not log.text.strip():
            return [check.skip(host.name, "", f"the kernel log cannot be read: {log.error or 'it is empty'}")]
        lines = host.kernel_log.lines_with(words)
        result = list(changed(host, events(lines))) if lines else []
        if not result:
            why = lacks(host)
            return [check.skip(host.name, "", why) if why else check.ok(host.name)]
        endings = host.kernel_log.lines_with(ending_words) if ending_words else lines
        return _of_devices(check, host, result, list(recoveries(host, endings)))

    def results(check: Check, fleet: Fleet) -> Iterator[Result]:
        return (result for host in fleet.hosts for result in of_host(check, host))

    return Judge(results, compares=False, reads=LOG)


def _of_devices(check: Check, host: Host, events: Iterable[Event], recoveries: Sequence[Recovery]) -> Sequence[Result]:
    """Return the result for each device with events."""
    now = max(host.uptime_s or 0.0, host.kernel_log.last_moment())
    by_device: dict[str, list[_Judged]] = defaultdict(list)
    for event in events:
        ended = any(recovery.ends(event) for recovery in recoveries)
        grade = Grade.NOTE if ended else event.grade_now(now)
        age = None if host.uptime_s is None else event.line.age(now)
        by_device[shortened(event.device)].append(_Judged(event, grade, ended, event.is_recent(now), age))
    return [_judged(check, host.name, device, events_of_device) for device, events_of_device in by_device.items()]


def log_patterns(
    patterns: Sequence[Pattern],
    endings: Sequence[RecoveryPattern] = (),
    *,
    changed: Changed = lambda _, events: events,
    lacks: Callable[[Host], str] = lambda _: "",
) -> Judge:
    """Judge the events of a table of patterns.

    Parameters
    ----------
    patterns
        Patterns of lines that report events.
    endings
        Patterns of lines that report recoveries.
    changed, lacks
        See `log_events`.
    """
    return log_events(
        words_of(patterns),
        lambda lines: pattern_events(patterns, lines),
        lambda _, lines: pattern_recoveries(endings, lines),
        ending_words=words_of(endings),
        changed=changed,
        lacks=lacks,
    )


def _judged(check: Check, host: str, device: str, result: Sequence[_Judged]) -> Result:
    """Return the result for the worst events of a device."""
    worst = max(one.grade for one in result)
    many = _many(result)
    if many and worst is Grade.NOTE:
        message = f"{_counted(many)} within a day; {_last(result[-1])}"
        return check.warning(host, device, message, many.total())
    bad = [one for one in result if one.grade is worst]
    kinds: Counter[str] = Counter()
    for item in bad:
        kinds[f"{item.event.what} (recovered)" if item.ended else item.event.what] += item.event.number
    message = f"{_counted(kinds)}; {_last(bad[-1])}"
    if worst is Grade.FAIL:
        return check.failure(host, device, message, kinds.total())
    if worst is Grade.WARN:
        return check.warning(host, device, message, kinds.total())
    return check.ok(host, device, message, kinds.total())


def _many(result: Sequence[_Judged]) -> Counter[str]:
    """Count the notes within a day that exceed their limits."""
    counts: Counter[str] = Counter()
    for item in result:
        if item.event.many and item.grade is Grade.NOTE and item.recent:
            counts[item.event.what] += item.event.number
    limits = {one.event.what: one.event.many for one in result}
    return Counter({what: count for what, count in counts.items() if count > limits[what]})


def _last(item: _Judged) -> str:
    """Describe the last event: `last 3 h ago: TEXT`."""
    when = "last" if item.age is None else f"last {ago(item.age)}"
    return f"{when}: {shortened(item.event.line.text)}"


def _counted(kinds: Counter[str]) -> str:
    return "; ".join(times(shortened(what), count) for what, count in kinds.items())
