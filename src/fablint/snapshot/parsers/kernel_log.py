"""The kernel log: its lines, the events that they report, and hardware errors that take several lines.

Lines are `<3>[  100.000001] text`, as /dev/kmsg and `dmesg --raw` have them; priority and time may be missing. Files of
syslog and of the journal have `[  100.000001] HOST kernel: text`, or a date by ISO 8601 instead of seconds since the
boot. Most lines of a log are of no interest, and a fleet has a thousand logs: lines are searched for by words first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from fablint.text.word_search import WordSearch

DAY_S = 86400.0
WEEK_S = 7 * DAY_S  # an event of that age says nothing about the host of today
NOW = 1 << 62  # as a place in the log: behind all of its lines

ERROR = "rror"  # is in all lines of `Error` and `error`, and in few others

_HEAD = re.compile(
    r"(?:<(?P<priority>\d{1,4})>)?"
    r"(?:\[ *(?P<moment>\d{1,10}\.\d{1,9})\]"
    r"|(?P<date>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)) "
    r"|\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: \d{4})?\])?"  # in a local time that is not known here
    r"(?:\[ *[TC]\d+\])? ?"
)
_SENDER = re.compile(r"(?:[\w.-]{1,100} )?kernel: (?:\[ *\d{1,10}\.\d{1,9}\] )?")
_PROGRAM = re.compile(r"[\w.-]{1,100} [\w.@/()-]{1,60}\[\d{1,10}\]: ")
_LAST_PRIORITY = 7  # of the kernel; above are messages that programs wrote there
_LONGEST = 1000  # letters of a line
_NUMBERED = re.compile(r"\{(\d{1,18})\}\[Hardware Error\]: (.*)")
_EARLIER = re.compile(r"(?:BERT: )?\[Hardware Error\]: (.*)")
_FIELD = re.compile(r"\s*(event severity|section_type|device_id): (.*)")


_watched: dict[str, None] = {}  # words for which every log is searched: for all of them at once


def watch(words: Iterable[str]) -> None:
    """Name words for which every kernel log will be searched."""
    _watched.update(dict.fromkeys(words))


class Line(NamedTuple):
    """A line of the log."""

    text: str
    moment: float | None = None  # seconds since the host was booted
    place: int = 0  # where it begins in the log

    def age(self, now: float) -> float | None:
        """Seconds that have passed; None for a line without a time."""
        return None if self.moment is None else max(0.0, now - self.moment)


class Grade(IntEnum):
    """How bad an event is."""

    NOTE = 0
    WARN = 1
    FAIL = 2


class Event(NamedTuple):
    """What a line, or several, report."""

    grade: Grade
    what: str
    device: str  # empty: the host
    line: Line
    number: int = 1
    many: int = 0  # more than so many within a day are worth a warning; 0: any number is only a note

    def is_recent(self, now: float) -> bool:
        """Within the last day? An event without a time is taken as recent."""
        return (self.line.age(now) or 0.0) <= DAY_S

    def grade_now(self, now: float) -> Grade:
        """Its grade at its age: a failure counts for a week, a warning for a day."""
        lasting = WEEK_S if self.grade is Grade.FAIL else DAY_S
        return self.grade if (self.line.age(now) or 0.0) <= lasting else Grade.NOTE


class Recovery(NamedTuple):
    """The end of earlier events of a device."""

    device: str  # empty: of all devices
    place: int  # in the log
    whats: tuple[str, ...] = ("",)  # how the events begin that it ends

    def ends(self, event: Event) -> bool:
        same = self.device in ("", event.device)
        return same and event.line.place < self.place and event.what.startswith(self.whats)


class Pattern(NamedTuple):
    """Lines that report one kind of event: they hold the word, and match; the group `device` names the part."""

    word: str
    regex: re.Pattern[str]
    grade: Grade
    what: str
    many: int = 0

    def events(self, line: Line) -> Iterator[Event]:
        found = self.regex.search(line.text) if self.word in line.text else None
        if found is not None:
            device = found.groupdict().get("device") or ""
            yield Event(self.grade, self.what, device, line, many=self.many)


class RecoveryPattern(NamedTuple):
    """Lines that report the end of events: they hold the word, and match; the group `device` names the part."""

    word: str
    regex: re.Pattern[str]
    whats: tuple[str, ...] = ("",)

    def recoveries(self, line: Line) -> Iterator[Recovery]:
        found = self.regex.search(line.text) if self.word in line.text else None
        if found is not None:
            yield Recovery(found.groupdict().get("device") or "", line.place, self.whats)


@dataclass
class HardwareError:
    """The lines of one record of the platform's firmware (ACPI Platform Error Interfaces)."""

    number: str  # empty: it was found at boot and tells of what was before
    lines: list[Line] = field(default_factory=list)
    severity: str = ""  # empty: that line was cut off
    section: str = ""
    device: str = ""


@dataclass
class KernelLog:
    """The text of a log. What was found in it is kept: several checks look for the same."""

    text: str
    booted: float | None = None  # seconds since 1970; None: dates are not understood
    _found: dict[str, dict[int, int]] = field(default_factory=dict, repr=False)  # word: where its lines begin and end

    def lines_with(self, words: Iterable[str]) -> list[Line]:
        """Lines of the kernel that hold one of the words, in order."""
        places: dict[int, int] = {}
        for word in words:
            if word not in self._found:
                searched = _watched if word in _watched else (word,)
                found = _search(tuple(searched)).places(self.text)
                self._found.update((one, dict(map(self._line_at, at))) for one, at in found.items())
            places |= self._found[word]
        texts = ((begin, self.text[begin:end]) for begin, end in sorted(places.items()))
        return [line for begin, text in texts if (line := line_of(text, begin, self.booted)) is not None]

    def _line_at(self, at: int) -> tuple[int, int]:
        """Where the line of a place begins and ends."""
        end = self.text.find("\n", at)
        return self.text.rfind("\n", 0, at) + 1, len(self.text) if end < 0 else end

    def last_moment(self) -> float:
        """When the last line was written, in seconds since the host was booted; 0 where no line tells."""
        for text in reversed(self.text[-4096:].splitlines()):
            line = line_of(text, booted=self.booted)
            if line is not None and line.moment is not None:
                return line.moment
        return 0.0


@lru_cache(maxsize=64)
def _search(words: tuple[str, ...]) -> WordSearch:
    return WordSearch(words)


def line_of(text: str, place: int = 0, booted: float | None = None) -> Line | None:
    """A line without its head; None where no part of the kernel wrote it."""
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
    """Seconds since the boot."""
    if head["moment"]:
        return float(head["moment"])
    if head["date"] and booted is not None:
        with suppress(ValueError, OverflowError):  # the 99th of a month
            return datetime.fromisoformat(head["date"].replace(",", ".")).timestamp() - booted
    return None


def hardware_errors(lines: Sequence[Line]) -> list[HardwareError]:
    """Records whose lines have the same number; those without one are the record of the boot."""
    found: dict[str, HardwareError] = {}
    for line in lines:
        numbered = _NUMBERED.match(line.text)
        rest = numbered or _EARLIER.match(line.text)
        told = _FIELD.match(rest[rest.re.groups]) if rest else None
        number = numbered[1] if numbered else ""
        if rest is None or not (numbered or told):
            continue
        record = found.setdefault(number, HardwareError(number))
        record.lines.append(line)
        if told and told[1] == "event severity":
            record.severity = told[2].strip().lower()
        elif told and told[1] == "section_type":
            record.section = record.section or told[2].strip()
        elif told:
            record.device = record.device or told[2].strip()
    return list(found.values())
