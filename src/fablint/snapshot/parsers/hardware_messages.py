"""Messages of the kernel log about errors of hardware: records of the firmware, PCI Express, memory, machine checks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from fablint.snapshot.parsers.kernel_log import BDF, Event, Grade, Line, Recovery, hardware_errors

_MANY = 100  # corrected errors of a device within a day
_ENDED = ("fatal PCIe", "non-fatal PCIe")


def firmware_events(lines: Sequence[Line]) -> Iterator[Event]:
    """Yield the errors that the platform's firmware recorded."""
    for record in hardware_errors(lines):
        severity = record.severity or "cut off, of unknown severity:"
        what = f"{severity} {record.section or 'hardware error'}"
        grade = Grade.FAIL if record.severity in ("recoverable", "fatal") else Grade.NOTE
        if not record.number:  # the host was booted since
            what, grade = f"{what} before the last boot", min(grade, Grade.WARN)
        yield Event(grade, what, record.device, record.lines[0], many=_MANY if severity == "corrected" else 0)


_MOST = 4  # uncorrected, non-fatal: device scans cause some
_KIND = r"(?P<kind>Corrected|Correctable|Uncorrected|Uncorrectable)(?: \((?P<fatal>Fatal)\)| \([\w-]+\))?"
_RECEIVED = re.compile(rf"AER: (?:Multiple )?{_KIND} error (?:message )?received(?::| from) *{BDF}")
_ON_BUS = re.compile(rf"{BDF}: (?:AER: )?PCIe Bus Error: severity={_KIND}")
_PORT = re.compile(rf"(?P<port>{BDF.replace('P<device>', ':')}): AER: ")
_RECOVERED = re.compile(rf"{BDF}: (?:AER: )?[Dd]evice recovery successful")


def pcie_events(lines: Sequence[Line]) -> Iterator[Event]:
    """Yield PCIe errors; an error that both a port and its device report is counted once."""
    reports: dict[tuple[str, str], dict[str, list[Line]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        for pattern in (_RECEIVED, _ON_BUS):
            if match := pattern.search(line.text):
                kind = "corrected" if match["kind"].startswith("C") else "fatal" if match["fatal"] else "non-fatal"
                reports[match["device"], kind][pattern.pattern].append(line)
    for (device, kind), by_pattern in reports.items():
        errors = max(by_pattern.values(), key=len)
        bad = Grade.FAIL if kind == "fatal" or len(errors) > _MOST else Grade.WARN
        grade = Grade.NOTE if kind == "corrected" else bad
        many = _MANY if kind == "corrected" else _MOST
        for line in errors:
            yield Event(grade, f"{kind} PCIe error", device, line, many=many)


def pcie_recoveries(lines: Sequence[Line]) -> Iterator[Recovery]:
    """Yield recoveries, which the port above a device reports; older kernels report the device itself."""
    below: dict[str, dict[str, None]] = defaultdict(dict)
    for line in lines:
        received, port = _RECEIVED.search(line.text), _PORT.search(line.text)
        if received and port:
            below[port["port"]][received["device"]] = None
        if recovered := _RECOVERED.search(line.text):
            for device in (recovered["device"], *below[recovered["device"]]):
                yield Recovery(device, line.place, _ENDED)


_ERROR = re.compile(r"EDAC (?P<device>\w{1,20})\b.*?: (?P<count>\d{1,9}) (?P<kind>CE|UE)\b")


# the kernel gives up a page with an uncorrected error, whatever reported it: a machine check, the firmware, Arm's RAS
_GIVEN_UP = re.compile(r"(?:Memory failure|MCE):? 0x[0-9a-f]{1,16}: recovery action for .{1,60}: (?P<result>\w+)")


def memory_events(lines: Sequence[Line]) -> Iterator[Event]:
    """Yield memory errors (EDAC) with the number of errors that a line reports, and pages that the kernel gave up."""
    for line in lines:
        if given_up := _GIVEN_UP.search(line.text):
            grade = Grade.FAIL if given_up["result"] == "Failed" else Grade.WARN
            yield Event(grade, "memory page with an uncorrected error given up", "", line)
        match = _ERROR.search(line.text)
        if match and int(match["count"]):
            bad = match["kind"] == "UE"
            what = "uncorrected memory error" if bad else "corrected memory error"
            grade = Grade.FAIL if bad else Grade.NOTE
            yield Event(grade, what, match["device"], line, int(match["count"]), _MANY)


_CHECK = re.compile(
    r"CPU (?P<cpu>\d{1,6}): Machine Check(?P<exception> Exception)?: .*Bank \d+: (?P<status>[0-9a-f]{1,16})\b"
)
_DECODED = re.compile(r"\[Hardware Error\]: (?P<kind>Corrected error|Deferred error|Uncorrected|System Fatal error)")
_UNCORRECTED_BIT = 1 << 61  # a bit of IA32_MCi_STATUS


def machine_check_events(lines: Sequence[Line]) -> Iterator[Event]:
    """Yield machine checks, decoded or not."""
    for line in lines:
        if line.text.startswith("{"):  # from the firmware, see log.hw
            continue
        if match := _CHECK.search(line.text):
            bad = bool(match["exception"]) or bool(int(match["status"], 16) & _UNCORRECTED_BIT)
            yield _event(bad, f"cpu{match['cpu']}", line)
        elif match := _DECODED.search(line.text):
            yield _event(match["kind"].startswith(("U", "S")), "", line)
        elif "Machine check events logged" in line.text:
            yield Event(Grade.NOTE, "machine checks logged", "", line, many=_MANY)


def _event(bad: bool, device: str, line: Line) -> Event:
    if bad:
        return Event(Grade.FAIL, "uncorrected machine check", device, line)
    return Event(Grade.NOTE, "corrected machine check", device, line, many=_MANY)
