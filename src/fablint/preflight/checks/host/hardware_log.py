"""The kernel log: hardware, memory and the kernel itself. See `network_log`, `gpu_log`, `storage_log`.

An event that shows a broken host counts for a week, one that only warns for a day, and neither after the log reports
that the same device recovered. Corrected errors are a note, and a warning where there are many within a day.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from fablint.model.preflight_results import Severity
from fablint.preflight.checks.log_checks import BDF, MANY, LogCheck, PatternCheck
from fablint.preflight.host import Host
from fablint.snapshot.parsers.kernel_log import (
    ERROR,
    Event,
    Grade,
    Line,
    Pattern,
    Recovery,
    RecoveryPattern,
    hardware_errors,
)

_RCU_STALL = "RCU stall"
_UNCORRECTED = ("fatal PCIe", "non-fatal PCIe")


class LogHardware(LogCheck):
    id = "log.hw"
    what = "hardware errors that the platform's firmware reported"
    rule = "none that was recoverable or fatal; corrected ones are a note"
    severity = Severity.FAIL
    component = "host"
    remedy = "drain the host and have the part replaced; check the log of its BMC"
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
    rule = (
        "none fatal that the device did not recover from, fewer than 5 non-fatal within a week; "
        "corrected ones are a note, more than 100 a day a warning"
    )
    severity = Severity.FAIL
    component = "host"
    remedy = "reseat the card or its riser; check the device's PCIe width and speed"
    words = (ERROR, "evice recovery successful")

    _MOST = 4  # uncorrected, non-fatal: programs that look for devices cause some
    _KIND = r"(?P<kind>Corrected|Correctable|Uncorrected|Uncorrectable)(?: \((?P<fatal>Fatal)\)| \([\w-]+\))?"
    _RECEIVED = re.compile(rf"AER: (?:Multiple )?{_KIND} error (?:message )?received(?::| from) *{BDF}")
    _ON_BUS = re.compile(rf"{BDF}: (?:AER: )?PCIe Bus Error: severity={_KIND}")
    _PORT = re.compile(rf"(?P<port>{BDF.replace('P<device>', ':')}): AER: ")
    _RECOVERED = re.compile(rf"{BDF}: (?:AER: )?[Dd]evice recovery successful")

    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        """A port and its device report the same error: it is counted once."""
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
            many = MANY if kind == "corrected" else self._MOST
            for line in errors:
                yield Event(grade, f"{kind} PCIe error", device, line, many=many)

    def recoveries(self, host: Host, lines: Sequence[Line]) -> Iterator[Recovery]:
        """The port above a device reports that the device recovered; older kernels name the device."""
        below: dict[str, dict[str, None]] = defaultdict(dict)
        for line in lines:
            received, port = self._RECEIVED.search(line.text), self._PORT.search(line.text)
            if received and port:
                below[port["port"]][received["device"]] = None
            if recovered := self._RECOVERED.search(line.text):
                for device in (recovered["device"], *below[recovered["device"]]):
                    yield Recovery(device, line.place, _UNCORRECTED)


class LogEdac(LogCheck):
    id = "log.edac"
    what = "errors of the memory (EDAC)"
    rule = "none uncorrected; corrected ones are a note, more than 100 a day a warning"
    severity = Severity.FAIL
    component = "host"
    remedy = "have the DIMM replaced that the log names"
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
    remedy = "drain the host; have processor or memory replaced if it comes again"
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


class LogKernel(PatternCheck):
    id = "log.kernel"
    what = "signs that the kernel is damaged, stuck or short of something"
    rule = "no oops within a week; no stall, lockup, hung task, lack of memory or full connection table within a day"
    severity = Severity.FAIL
    component = "host"
    remedy = "reboot the host after an oops; else check what it does during the measurement, and reboot it if it stays"
    patterns = (
        # of every architecture: `Oops: 0000 [#1] SMP`, `general protection fault: 0000 [#1]`, `Oops: Kernel access of
        # bad area, sig: 11 [#1]`; lines about programs have no such number
        Pattern(
            "[#",
            re.compile(r"\b(?:Oops|BUG|Internal error|fault|opcode|trap|error|bounds|segment|int3)\b.*\[#\d{1,6}\]"),
            Grade.FAIL,
            "kernel oops",
        ),
        Pattern("BUG: Bad page ", re.compile(r"BUG: Bad page (?:state|map)"), Grade.WARN, "damaged memory management"),
        Pattern(
            "detected stall",
            re.compile(r"INFO: \w+ (?:self-detected stall on CPU|detected stalls on CPUs)"),
            Grade.WARN,
            _RCU_STALL,
        ),
        Pattern(
            "detected expedited stalls",
            re.compile(r"INFO: \w+ detected expedited stalls on CPUs"),
            Grade.WARN,
            _RCU_STALL,
        ),
        Pattern(
            "soft lockup - CPU#",
            re.compile(r"soft lockup - CPU#(?P<device>\d{1,6})"),
            Grade.WARN,
            "soft lockup of a CPU",
        ),
        Pattern(
            "hard LOCKUP on cpu ",
            re.compile(r"hard LOCKUP on cpu (?P<device>\d{1,6})"),
            Grade.WARN,
            "hard lockup of a CPU",
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
    endings = (RecoveryPattern("INFO: Stall ended", re.compile("INFO: Stall ended before"), (_RCU_STALL,)),)
