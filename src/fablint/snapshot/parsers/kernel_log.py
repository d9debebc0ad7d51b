"""Kernel log: lines, the events that they report, and hardware errors of several lines.

Lines are `<3>[  100.000001] text`, as in /dev/kmsg and `dmesg --raw`; priority and time may be missing. Files of syslog
and of the journal have `[  100.000001] HOST kernel: text`, or an ISO 8601 date instead of seconds since the
boot. Few lines are relevant, and a fleet has thousands of logs: a search for words selects lines first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from functools import cache, lru_cache
from typing import NamedTuple

from fablint.text.word_search import WordSearch

DAY_S = 86400.0
WEEK_S = 7 * DAY_S  # older events are ignored
NOW = 1 << 62  # position after all lines of the log

BDF = r"(?P<device>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"  # address of a PCI device
INTERFACE = r"(?P<device>[\w.-]{1,40})"
ERROR = "rror"  # in all lines with `Error` or `error`

_HEAD = re.compile(
    r"(?:<(?P<priority>\d{1,4})>)?"
    r"(?:\[ *(?P<moment>\d{1,10}\.\d{1,9})\]"
    r"|(?P<date>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)) "
    r"|\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: \d{4})?\]"  # local time of an unknown zone
    r"|\[ *\+\d{1,10}\.\d{1,9}\]|\[[A-Z][a-z]{2} ?\d{1,2} \d\d:\d\d\])?"  # of dmesg -H: since the line before
    r"(?:\[ *[TC]\d+\])? ?"
)
_SENDER = re.compile(r"(?:[\w.-]{1,100} )?kernel: (?:\[ *\d{1,10}\.\d{1,9}\] )?")
_PROGRAM = re.compile(r"[\w.-]{1,100} [\w.@/()-]{1,60}\[\d{1,10}\]: ")
_LAST_PRIORITY = 7  # of the kernel; messages of programs have higher priorities
_LONGEST = 1000  # letters of a line
_NUMBERED = re.compile(r"\{(\d{1,18})\}\[Hardware Error\]: (.*)")
_EARLIER = re.compile(r"(?:BERT: )?\[Hardware Error\]: (.*)")
_FIELD = re.compile(r"\s*(event severity|section_type|device_id): (.*)")


WATCHED: dict[str, None] = {}  # every log is searched for all of these words at once


def watch(words: Iterable[str]) -> None:
    """Register words for the common search of every kernel log."""
    WATCHED.update(dict.fromkeys(words))


class Line(NamedTuple):
    """Line of the log without its head."""

    text: str
    moment: float | None = None  # seconds since the host was booted
    place: int = 0  # position of its first character in the log

    def age(self, now: float) -> float | None:
        """Return the age in seconds at the time `now` (seconds since boot); None for a line without a time."""
        return None if self.moment is None else max(0.0, now - self.moment)


class Grade(IntEnum):
    """Severity of an event."""

    NOTE = 0
    WARN = 1
    FAIL = 2


class Event(NamedTuple):
    """Event that one or several lines report."""

    grade: Grade
    what: str
    device: str  # empty: the host
    line: Line
    number: int = 1
    many: int = 0  # more within a day are a warning; 0: no limit

    def is_recent(self, now: float) -> bool:
        """Tell whether the event is at most a day old; an event without a time is."""
        return (self.line.age(now) or 0.0) <= DAY_S

    def grade_now(self, now: float) -> Grade:
        """Return the grade at the event's age: a failure counts for a week, a warning for a day."""
        lasting = WEEK_S if self.grade is Grade.FAIL else DAY_S
        return self.grade if (self.line.age(now) or 0.0) <= lasting else Grade.NOTE


class Recovery(NamedTuple):
    """Recovery of a device, which ends earlier events."""

    device: str  # empty: of all devices
    place: int  # in the log
    whats: tuple[str, ...] = ("",)  # beginnings of the events that it ends

    def ends(self, event: Event) -> bool:
        """Tell whether the recovery ends an event."""
        same = self.device in ("", event.device)
        return same and event.line.place < self.place and event.what.startswith(self.whats)


@cache
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex)


class Pattern(NamedTuple):
    """Pattern of lines that report one kind of event; the group `device` is the device."""

    word: str
    regex: str
    grade: Grade
    what: str
    many: int = 0

    def events(self, line: Line) -> Iterator[Event]:
        """Yield the event of a line, if it matches."""
        match = _compiled(self.regex).search(line.text) if self.word in line.text else None
        if match is not None:
            device = match.groupdict().get("device") or ""
            yield Event(self.grade, self.what, device, line, many=self.many)


class RecoveryPattern(NamedTuple):
    """Pattern of lines that report a recovery; the group `device` is the device."""

    word: str
    regex: str
    whats: tuple[str, ...] = ("",)

    def recoveries(self, line: Line) -> Iterator[Recovery]:
        """Yield the recovery of a line, if it matches."""
        match = _compiled(self.regex).search(line.text) if self.word in line.text else None
        if match is not None:
            yield Recovery(match.groupdict().get("device") or "", line.place, self.whats)


def pattern_events(patterns: Iterable[Pattern], lines: Iterable[Line]) -> Iterator[Event]:
    """Yield the events of lines that match patterns."""
    return (event for line in lines for pattern in patterns for event in pattern.events(line))


def pattern_recoveries(patterns: Iterable[RecoveryPattern], lines: Iterable[Line]) -> Iterator[Recovery]:
    """Yield the recoveries of lines that match patterns."""
    return (recovery for line in lines for pattern in patterns for recovery in pattern.recoveries(line))


def words_of(patterns: Iterable[Pattern | RecoveryPattern]) -> tuple[str, ...]:
    """Return the words of lines that patterns can match."""
    return tuple(dict.fromkeys(pattern.word for pattern in patterns))


@dataclass
class HardwareError:
    """Lines of a record of the platform's firmware (ACPI Platform Error Interfaces)."""

    number: str  # empty: found at boot, from before the boot
    lines: list[Line] = field(default_factory=list)
    severity: str = ""  # empty: the line is missing
    section: str = ""
    device: str = ""


@dataclass
class KernelLog:
    """Text of a log, with a cache of search results for several checks."""

    text: str
    booted: float | None = None  # seconds since 1970; None: dates cannot be converted
    _found: dict[str, dict[int, int]] = field(default_factory=dict, repr=False)  # word: begin and end of its lines
    _searched: bool = field(default=False, repr=False)  # for the words of all checks

    def lines_with(self, words: Iterable[str]) -> list[Line]:
        """Return the kernel's lines with at least one of the words, in order."""
        if not self._searched:
            self._searched = True
            self._find(WATCHED)
        places: dict[int, int] = {}
        for word in words:
            if word not in WATCHED and word not in self._found:
                self._find((word,))
            if word in self._found:
                places |= self._found[word]
        texts = ((begin, self.text[begin:end]) for begin, end in sorted(places.items()))
        return [line for begin, text in texts if (line := line_of(text, begin, self.booted)) is not None]

    def _find(self, words: Iterable[str]) -> None:
        """Find the lines of words; most words are in no log."""
        for word, at in _search(tuple(words)).places(self.text).items():
            self._found[word] = dict(map(self._line_at, at))

    def _line_at(self, at: int) -> tuple[int, int]:
        """Return begin and end of the line at a position."""
        end = self.text.find("\n", at)
        return self.text.rfind("\n", 0, at) + 1, len(self.text) if end < 0 else end

    def last_moment(self) -> float:
        """Return the time of the last line in seconds since boot; 0 if no line has a time."""
        for text in reversed(self.text[-4096:].splitlines()):
            line = line_of(text, booted=self.booted)
            if line is not None and line.moment is not None:
                return line.moment
        return 0.0


@lru_cache(maxsize=64)
def _search(words: tuple[str, ...]) -> WordSearch:
    return WordSearch(words)


def line_of(text: str, place: int = 0, booted: float | None = None) -> Line | None:
    """Parse a line; None for a message that a program wrote."""
    head = _HEAD.match(text)
    if head is None:
        return Line(text[:_LONGEST], None, place)
    if int(head["priority"] or 0) > _LAST_PRIORITY:
        return None
    rest = text[head.end() : head.end() + _LONGEST]
    sender = _SENDER.match(rest)
    if sender is None and head["date"] and _PROGRAM.match(rest):
        return None
    return Line(rest[sender.end() if sender else 0 :].rstrip(), _moment(head, booted), place)


def _moment(head: re.Match[str], booted: float | None) -> float | None:
    """Return the time of a line in seconds since the boot."""
    if head["moment"]:
        return float(head["moment"])
    if head["date"] and booted is not None:
        with suppress(ValueError, OverflowError):  # an invalid date
            return datetime.fromisoformat(head["date"].replace(",", ".")).timestamp() - booted
    return None


def hardware_errors(lines: Sequence[Line]) -> list[HardwareError]:
    """Group lines by the number of their record; lines without a number are the record of the boot."""
    result: dict[str, HardwareError] = {}
    for line in lines:
        numbered = _NUMBERED.match(line.text)
        rest = numbered or _EARLIER.match(line.text)
        entry = _FIELD.match(rest[rest.re.groups]) if rest else None
        number = numbered[1] if numbered else ""
        if rest is None or not (numbered or entry):
            continue
        record = result.setdefault(number, HardwareError(number))
        record.lines.append(line)
        if entry and entry[1] == "event severity":
            record.severity = entry[2].strip().lower()
        elif entry and entry[1] == "section_type":
            record.section = record.section or entry[2].strip()
        elif entry:
            record.device = record.device or entry[2].strip()
    return list(result.values())
