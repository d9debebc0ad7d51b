"""Checks of the kernel log for errors of hardware, memory and the kernel. See `network_log`, `gpu_log`, `storage_log`.

A failure counts for a week, a warning for a day, and neither after the log reports a recovery of the device. Corrected
errors are a note; many within a day are a warning.
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
    what = "hardware errors reported by the platform's firmware"
    rule = "no recoverable or fatal error; corrected errors are a note"
    severity = Severity.FAIL
    component = "host"
    remedy = "drain the host and replace the component; check the log of its BMC"
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
        "no fatal error without a recovery, fewer than 5 non-fatal errors within a week; "
        "corrected errors are a note, more than 100 per day a warning"
    )
    severity = Severity.FAIL
    component = "host"
    remedy = "reseat the card or its riser; check the device's PCIe width and speed"
    words = (ERROR, "evice recovery successful")

    _MOST = 4  # uncorrected, non-fatal: device scans cause some
    _KIND = r"(?P<kind>Corrected|Correctable|Uncorrected|Uncorrectable)(?: \((?P<fatal>Fatal)\)| \([\w-]+\))?"
    _RECEIVED = re.compile(rf"AER: (?:Multiple )?{_KIND} error (?:message )?received(?::| from) *{BDF}")
    _ON_BUS = re.compile(rf"{BDF}: (?:AER: )?PCIe Bus Error: severity={_KIND}")
    _PORT = re.compile(rf"(?P<port>{BDF.replace('P<device>', ':')}): AER: ")
    _RECOVERED = re.compile(rf"{BDF}: (?:AER: )?[Dd]evice recovery successful")

    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        """Yield PCIe errors; an error that both a port and its device report is counted once."""
        reports: dict[tuple[str, str], dict[str, list[Line]]] = defaultdict(lambda: defaultdict(list))
        for line in lines:
            for pattern in (self._RECEIVED, self._ON_BUS):
                if match := pattern.search(line.text):
                    kind = "corrected" if match["kind"].startswith("C") else "fatal" if match["fatal"] else "non-fatal"
                    reports[match["device"], kind][pattern.pattern].append(line)
        for (device, kind), by_pattern in reports.items():
            errors = max(by_pattern.values(), key=len)
            bad = Grade.FAIL if kind == "fatal" or len(errors) > self._MOST else Grade.WARN
            grade = Grade.NOTE if kind == "corrected" else bad
            many = MANY if kind == "corrected" else self._MOST
            for line in errors:
                yield Event(grade, f"{kind} PCIe error", device, line, many=many)

    def recoveries(self, host: Host, lines: Sequence[Line]) -> Iterator[Recovery]:
        """Yield recoveries, which the port above a device reports; older kernels report the device itself."""
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
    what = "memory errors (EDAC)"
    rule = "no uncorrected error; corrected errors are a note, more than 100 per day a warning"
    severity = Severity.FAIL
    component = "host"
    remedy = "replace the DIMM that the log names"
    words = ("EDAC MC",)

    _ERROR = re.compile(r"EDAC (?P<device>\w{1,20})\b.*?: (?P<count>\d{1,9}) (?P<kind>CE|UE)\b")

    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        for line in lines:
            match = self._ERROR.search(line.text)
            if match and int(match["count"]):
                bad = match["kind"] == "UE"
                what = "uncorrected memory error" if bad else "corrected memory error"
                grade = Grade.FAIL if bad else Grade.NOTE
                yield Event(grade, what, match["device"], line, int(match["count"]), MANY)


class LogMce(LogCheck):
    id = "log.mce"
    what = "machine check exceptions"
    rule = "no uncorrected error; corrected errors are a note, more than 100 per day a warning"
    severity = Severity.FAIL
    component = "host"
    remedy = "drain the host; replace processor or memory if the error recurs"
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
            if line.text.startswith("{"):  # from the firmware, see log.hw
                continue
            if match := self._CHECK.search(line.text):
                bad = bool(match["exception"]) or bool(int(match["status"], 16) & self._UNCORRECTED)
                yield self._event(bad, f"cpu{match['cpu']}", line)
            elif match := self._DECODED.search(line.text):
                yield self._event(match["kind"].startswith(("U", "S")), "", line)
            elif "Machine check events logged" in line.text:
                yield Event(Grade.NOTE, "machine checks logged", "", line, many=MANY)

    @staticmethod
    def _event(bad: bool, device: str, line: Line) -> Event:
        if bad:
            return Event(Grade.FAIL, "uncorrected machine check", device, line)
        return Event(Grade.NOTE, "corrected machine check", device, line, many=MANY)


class LogKernel(PatternCheck):
    id = "log.kernel"
    what = "kernel faults: oopses, stalls, lockups, lack of memory or connection entries"
    rule = "no oops within a week; no stall, lockup, blocked task, lack of memory or full connection table within a day"
    severity = Severity.FAIL
    component = "host"
    remedy = "reboot the host after an oops; otherwise check its processes, and reboot it if the fault persists"
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
        Pattern("blocked for more than ", re.compile(r"task .*blocked for more than \d+"), Grade.WARN, "blocked task"),
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
        Pattern(
            "Out of memory: Kill ", re.compile(r"Out of memory: Kill "), Grade.WARN, "out of memory"
        ),  # until Linux 4.19
        Pattern(
            "table full, dropping packet", re.compile(r"nf_conntrack: table full"), Grade.WARN, "connection table full"
        ),
    )
    endings = (RecoveryPattern("INFO: Stall ended", re.compile("INFO: Stall ended before"), (_RCU_STALL,)),)
