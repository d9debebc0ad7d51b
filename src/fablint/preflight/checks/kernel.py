"""The kernel log: hardware, memory, GPUs, and the kernel itself. See `kernel_fabric` for NICs.

What says that the host is broken counts till it is booted again. What only warns does so for a day. Corrected errors
are a note, and a warning where there are many within a day.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from fablint.fitness import Result, Severity
from fablint.preflight.check import HostCheck
from fablint.preflight.host import Host
from fablint.preflight.kernel_log import ERROR, Event, Grade, Line, Pattern, hardware_errors
from fablint.preflight.wording import shortened, times

BDF = r"(?P<device>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
GPUS = "/proc/driver/nvidia/gpus"
MANY = 100  # corrected errors of a part within a day


class LogCheck(HostCheck):
    """Looks for lines of the kernel log that hold some words."""

    source = "the kernel log (/dev/kmsg, else dmesg)"
    words: ClassVar[tuple[str, ...]]  # a line of interest has one of them

    def look(self, host: Host) -> Iterable[Result]:
        log = host.snapshot.kernel_log
        if not log.ran or not log.text.strip():
            return [self.skipped(host.name, "", f"the kernel log cannot be read: {log.error or 'it is empty'}")]
        lines = host.kernel_log.lines_with(self.words)
        events = list(self.events(host, lines)) if lines else []
        if not events:
            lacks = self.lacks(host)
            return [self.skipped(host.name, "", lacks) if lacks else self.passed(host.name)]
        now = host.uptime_s or host.kernel_log.last_moment()
        by_device: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            by_device[event.device].append(event)
        return [self._judged(host.name, device, found, now) for device, found in by_device.items()]

    @abstractmethod
    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        """What the lines tell of."""

    def lacks(self, host: Host) -> str:
        """Why there is nothing that the log could tell of; empty where there is."""
        return ""

    def _judged(self, host: str, device: str, events: Sequence[Event], now: float) -> Result:
        """The worst of what is told of a part."""
        grades = [_faded(event, now) for event in events]
        many = _many(events, now)
        worst = max(grades)
        if many and worst is Grade.NOTE:
            count = many.total()
            told = f"{_counted(many)} within a day; last: {shortened(events[-1].line.text)}"
            return self.warned(host, device, told, count)
        bad = [event for event, grade in zip(events, grades, strict=True) if grade is worst]
        kinds: Counter[str] = Counter()
        for event in bad:
            kinds[event.what] += event.number
        message = f"{_counted(kinds)}; last: {shortened(bad[-1].line.text)}"
        if worst is Grade.FAIL:
            return self.wrong(host, device, message, kinds.total())
        if worst is Grade.WARN:
            return self.warned(host, device, message, kinds.total())
        return self.passed(host, device, message, kinds.total())


class PatternCheck(LogCheck):
    """One for which a table of patterns is enough."""

    patterns: ClassVar[tuple[Pattern, ...]]

    def __init_subclass__(cls) -> None:
        cls.words = tuple(dict.fromkeys(pattern.word for pattern in cls.patterns))

    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        for line in lines:
            for pattern in self.patterns:
                yield from pattern.events(line)


class LogHardware(LogCheck):
    id = "log.hw"
    what = "hardware errors that the platform's firmware reported"
    rule = "none that was recoverable or fatal; corrected ones are a note"
    severity = Severity.FAIL
    component = "host"
    mend = "drain the host and have the part replaced; look into the log of its BMC"
    words = (ERROR,)

    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        for record in hardware_errors(lines):
            severity = record.severity or "cut off, of unknown severity:"
            what = f"{severity} {record.section or 'hardware error'}"
            grade = Grade.FAIL if record.severity in ("recoverable", "fatal") else Grade.NOTE
            if not record.number:  # the host was booted since
                what, grade = f"{what} before the last boot", min(grade, Grade.WARN)
            yield Event(grade, what, record.device, record.lines[0], many=MANY if severity == "corrected" else 0)


class LogAer(LogCheck):
    id = "log.aer"
    what = "errors of PCI Express (Advanced Error Reporting)"
    rule = "none fatal, fewer than 5 non-fatal; corrected ones are a note, more than 100 a day a warning"
    severity = Severity.FAIL
    component = "host"
    mend = "reseat the card or its riser; look at the device's PCIe width and speed"
    words = (ERROR,)

    _MOST = 4  # uncorrected, non-fatal: programs that look for devices cause some
    _KIND = r"(?P<kind>Corrected|Correctable|Uncorrected|Uncorrectable)(?: \((?P<fatal>Fatal)\)| \([\w-]+\))?"
    _RECEIVED = re.compile(rf"AER: (?:Multiple )?{_KIND} error (?:message )?received(?::| from) *{BDF}")
    _ON_BUS = re.compile(rf"{BDF}: (?:AER: )?PCIe Bus Error: severity={_KIND}")

    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        """The port that receives an error tells of it, and then its device: it is one error."""
        told: dict[tuple[str, str], dict[str, list[Line]]] = defaultdict(lambda: defaultdict(list))
        for line in lines:
            for way in (self._RECEIVED, self._ON_BUS):
                if found := way.search(line.text):
                    kind = "corrected" if found["kind"].startswith("C") else "fatal" if found["fatal"] else "non-fatal"
                    told[found["device"], kind][way.pattern].append(line)
        for (device, kind), ways in told.items():
            errors = max(ways.values(), key=len)
            bad = Grade.FAIL if kind == "fatal" or len(errors) > self._MOST else Grade.WARN
            grade = Grade.NOTE if kind == "corrected" else bad
            for line in errors:
                yield Event(grade, f"{kind} PCIe error", device, line, many=MANY)


class LogEdac(LogCheck):
    id = "log.edac"
    what = "errors of the memory (EDAC)"
    rule = "none uncorrected; corrected ones are a note, more than 100 a day a warning"
    severity = Severity.FAIL
    component = "host"
    mend = "have the DIMM replaced that the log names"
    words = ("EDAC MC",)

    _ERROR = re.compile(r"EDAC (?P<device>\w{1,20})\b.*?: (?P<count>\d{1,9}) (?P<kind>CE|UE)\b")

    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        for line in lines:
            found = self._ERROR.search(line.text)
            if found and int(found["count"]):
                bad = found["kind"] == "UE"
                what = "uncorrected memory error" if bad else "corrected memory error"
                grade = Grade.FAIL if bad else Grade.NOTE
                yield Event(grade, what, found["device"], line, int(found["count"]), MANY)


class LogMce(LogCheck):
    id = "log.mce"
    what = "machine checks of the processors"
    rule = "none uncorrected; corrected ones are a note, more than 100 a day a warning"
    severity = Severity.FAIL
    component = "host"
    mend = "drain the host; have processor or memory replaced if it comes again"
    words = (ERROR,)

    _CHECK = re.compile(
        r"CPU (?P<cpu>\d{1,6}): Machine Check(?P<exception> Exception)?: .*Bank \d+: (?P<status>[0-9a-f]{1,16})\b"
    )
    _DECODED = re.compile(
        r"\[Hardware Error\]: (?P<kind>Corrected error|Deferred error|Uncorrected|System Fatal error)"
    )
    _UNCORRECTED = 1 << 61  # a bit of IA32_MCi_STATUS

    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        for line in lines:
            if line.text.startswith("{"):  # the firmware's, see log.hw
                continue
            if found := self._CHECK.search(line.text):
                bad = bool(found["exception"]) or bool(int(found["status"], 16) & self._UNCORRECTED)
                yield self._event(bad, f"cpu{found['cpu']}", line)
            elif found := self._DECODED.search(line.text):
                yield self._event(found["kind"].startswith(("U", "S")), "", line)
            elif "Machine check events logged" in line.text:
                yield Event(Grade.NOTE, "machine checks logged", "", line, many=MANY)

    @staticmethod
    def _event(bad: bool, device: str, line: Line) -> Event:
        if bad:
            return Event(Grade.FAIL, "uncorrected machine check", device, line)
        return Event(Grade.NOTE, "corrected machine check", device, line, many=MANY)


class LogGpu(LogCheck):
    id = "log.gpu"
    what = "errors of GPUs and NVLink switches (Xid, SXid)"
    rule = "none that says that the hardware is faulty; those that programs cause are a note"
    severity = Severity.FAIL
    component = "host"
    mend = "drain the host; reset or replace the GPU, as NVIDIA's list of Xid errors says"
    words = ("Xid (PCI:",)

    _XID = re.compile(r"NVRM: Xid \(PCI:(?P<device>[0-9a-fA-F:.]{1,20})\): (?P<number>\d{1,6})")
    _SXID = re.compile(r"SXid \(PCI:(?P<device>[0-9a-fA-F:.]{1,20})\): (?P<number>\d{1,6}), (?P<kind>Fatal)?")
    _HARD = frozenset({48, 56, 57, 58, 62, 63, 64, 65, 68, 69, 73, 74, 79, 80, 81, 92, 95, 119, 120})
    _PROGRAMS = frozenset({13, 31, 43, 45})

    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        for line in lines:
            if found := self._SXID.search(line.text):
                grade = Grade.FAIL if found["kind"] else Grade.NOTE
                yield Event(grade, f"SXid {found['number']}", found["device"], line)
            elif found := self._XID.search(line.text):
                number = int(found["number"])
                soft = Grade.NOTE if number in self._PROGRAMS else Grade.WARN
                yield Event(Grade.FAIL if number in self._HARD else soft, f"Xid {number}", found["device"], line)

    def lacks(self, host: Host) -> str:
        seen = host.snapshot.names(GPUS) or host.read("/sys/module/nvidia/version") is not None
        return "" if seen else "no NVIDIA GPU"


class LogKernel(PatternCheck):
    id = "log.kernel"
    what = "signs that the kernel is stuck or short of something"
    rule = "no soft lockup, hung task, lack of memory or full connection table within a day"
    severity = Severity.WARN
    component = "host"
    mend = "look at what the host does beside the measurement; reboot it if it stays"
    patterns = (
        Pattern(
            "soft lockup - CPU#",
            re.compile(r"soft lockup - CPU#(?P<device>\d{1,6})"),
            Grade.WARN,
            "soft lockup of a CPU",
        ),
        Pattern("blocked for more than ", re.compile(r"task .*blocked for more than \d+"), Grade.WARN, "hung task"),
        Pattern(
            "oom-kill:constraint=CONSTRAINT_",
            re.compile(r"oom-kill:constraint=CONSTRAINT_NONE"),
            Grade.WARN,
            "out of memory",
        ),
        Pattern(
            "oom-kill:constraint=CONSTRAINT_",
            re.compile(r"oom-kill:constraint=CONSTRAINT_(?!NONE)"),
            Grade.NOTE,
            "a job out of memory",
        ),
        Pattern("Out of memory: Kill ", re.compile(r"Out of memory: Kill "), Grade.WARN, "out of memory"),  # till 4.19
        Pattern(
            "table full, dropping packet", re.compile(r"nf_conntrack: table full"), Grade.WARN, "connection table full"
        ),
    )


def _faded(event: Event, now: float) -> Grade:
    return Grade.NOTE if event.grade is Grade.WARN and not event.recent(now) else event.grade


def _many(events: Sequence[Event], now: float) -> Counter[str]:
    """Notes of which there were more than there should be within the last day."""
    counts: Counter[str] = Counter()
    for event in events:
        if event.many and event.grade is Grade.NOTE and event.recent(now):
            counts[event.what] += event.number
    limits = {event.what: event.many for event in events}
    return Counter({what: count for what, count in counts.items() if count > limits[what]})


def _counted(kinds: Counter[str]) -> str:
    return "; ".join(times(what, count) for what, count in kinds.items())
