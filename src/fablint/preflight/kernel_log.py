"""The kernel log: its lines, what they tell of, and hardware errors whose lines belong together.

Lines are `<3>[  100.000001] text`; priority and time may be missing. Most lines of a log are of no interest, and a
fleet has a thousand logs: lines are looked for by words first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

DAY_S = 86400.0

ERROR = "rror"  # is in all lines of `Error` and `error`, and in few others

_HEAD = re.compile(r"(?:<(?P<priority>\d{1,4})>)?(?:\[ *(?P<moment>\d{1,10}\.\d{1,9})\])?(?:\[ *[TC]\d+\])? ?")
_LAST_PRIORITY = 7  # of the kernel; above are messages that programs wrote there
_LONGEST = 1000  # letters of a line
_NUMBERED = re.compile(r"\{(\d{1,18})\}\[Hardware Error\]: (.*)")
_EARLIER = re.compile(r"(?:BERT: )?\[Hardware Error\]: (.*)")
_FIELD = re.compile(r"\s*(event severity|section_type|device_id): (.*)")


class Line(NamedTuple):
    """A line of the log."""

    text: str
    moment: float | None = None  # seconds since the host was booted


class Grade(IntEnum):
    """How bad an event is."""

    NOTE = 0
    WARN = 1
    FAIL = 2


class Event(NamedTuple):
    """What a line, or several, tell of."""

    grade: Grade
    what: str
    device: str  # empty: the host
    line: Line
    number: int = 1
    many: int = 0  # more than so many within a day are worth a warning; 0: any number is only a note

    def recent(self, now: float) -> bool:
        """Within the last day? An event without a time is taken as recent."""
        return self.line.moment is None or now - self.line.moment <= DAY_S


class Pattern(NamedTuple):
    """Lines that tell of one thing: they hold the word, and match; the group `device` names the part."""

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
    _found: dict[str, dict[int, int]] = field(default_factory=dict, repr=False)  # word: where its lines begin and end

    def lines_with(self, words: Iterable[str]) -> list[Line]:
        """Lines of the kernel that hold one of the words, in order."""
        places: dict[int, int] = {}
        for word in words:
            if word not in self._found:
                self._found[word] = dict(self._places(word))
            places |= self._found[word]
        return [line for begin, end in sorted(places.items()) if (line := line_of(self.text[begin:end])) is not None]

    def _places(self, word: str) -> Iterator[tuple[int, int]]:
        at = self.text.find(word)
        while at >= 0:
            end = self.text.find("\n", at)
            end = len(self.text) if end < 0 else end
            yield self.text.rfind("\n", 0, at) + 1, end
            at = self.text.find(word, end)

    def last_moment(self) -> float:
        """When the last line was written, in seconds since the host was booted; 0 where no line tells."""
        for text in reversed(self.text[-4096:].splitlines()):
            line = line_of(text)
            if line is not None and line.moment is not None:
                return line.moment
        return 0.0


def line_of(text: str) -> Line | None:
    """A line without its head; None where no part of the kernel wrote it."""
    head = _HEAD.match(text)
    if head is None:
        return Line(text[:_LONGEST])
    if int(head["priority"] or 0) > _LAST_PRIORITY:
        return None
    return Line(text[head.end() : head.end() + _LONGEST].rstrip(), float(head["moment"]) if head["moment"] else None)


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
