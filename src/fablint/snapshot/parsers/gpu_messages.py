"""Messages of NVIDIA's driver in the kernel log: Xid and SXid errors, and recoveries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fablint.snapshot.parsers.kernel_log import NOW, Event, Grade, Line, Recovery
from fablint.snapshot.parsers.nvidia_smi import Gpu

_INIT = "the driver could not initialise the GPU"
_BUS = "the GPU has fallen off the bus"
_LOCKED = "the GPU is probably locked"
_VERSIONS = "library and driver have different versions"
_ACTION = "Xid 154"  # GPU recovery action changed
_NO_ACTION = "None"


_XID = re.compile(r"NVRM: Xid \((?:PCI:)?(?P<device>[0-9a-fA-F:.]{1,20})\): (?P<number>\d{1,6})(?P<text>.*)")
_SXID = re.compile(r"SXid \(PCI:(?P<device>[0-9a-fA-F:.]{1,20})\): (?P<number>\d{1,6}), (?P<kind>Fatal)?")
_CHANGED = re.compile(r"154, GPU recovery action changed from .{1,60} to 0x[0-9a-f]{1,8} \((?P<action>[^()]{1,60})\)")
_FAILED = re.compile(
    r"NVRM: (?:GPU (?P<device>[0-9a-fA-F:]{1,20})(?:\.[0-7])?: )?RmInitAdapter failed!"
    r"(?: (?P<code>\([\w:]{1,40}\)))?"
)
# the severity of errors of NVLink 5 (Xid 144 to 150)
_SEVERITY = re.compile(r"(?:^|,) +(?:[A-Z][A-Z0-9_/]{1,30} +)?(?P<severity>Fatal|Non-?fatal)\b")
_NAMED = re.compile(r"\bXid (?P<number>\d{1,6})\b")
# without an Xid, where the driver does not know the GPU yet: one record, which logs print as three lines
_NAMES_GPU = re.compile(r"NVRM: (?:The NVIDIA )?GPU (?P<device>[0-9a-fA-F:]{1,20})(?:\.[0-7])?\b")
_FELL = re.compile(r"NVRM: .*fallen off the bus")
_LINES_OF_RECORD = 3
# NVIDIA's catalogue of Xids, immediate actions RESET_GPU, RESTART_BM, CHECK_MECHANICALS and CONTACT_SUPPORT for
# hardware: 48, 140 and 171 are uncorrectable memory errors, 54 a missing power cable, 56 to 58 and 74 links and memory
# of the GPU, 79 a GPU off the bus, 119 and 120 its firmware, 143 a GPU that was not initialised, 155 to 158 NVLink,
# retired resources and a GPU that does not answer, 167 PCI Express, 168 a part of the memory. 154 reports the recovery
# that others require.
_HARD = frozenset(
    {
        *(46, 48, 54, 56, 57, 58, 62, 64, 65, 74, 79, 81, 95, 109, 110, 119, 120),
        *(136, 140, 143, 155, 156, 158, 167, 168, 171, 172),
    }
)
_PROGRAMS = frozenset({13, 31, 43, 45})


def gpu_events(lines: Sequence[Line]) -> Iterator[Event]:
    """Yield errors of GPUs and of NVLink switches."""
    begun: tuple[Line, str] | None = None  # the first line of a record that may go on, and its GPU
    left = 0
    for line in lines:
        text = line.text
        if named := _NAMES_GPU.search(text):
            begun, left = (line, named["device"].lower()), _LINES_OF_RECORD
        left -= 1
        if match := _SXID.search(text):
            grade = Grade.FAIL if match["kind"] else Grade.NOTE
            yield Event(grade, f"SXid {match['number']}", match["device"], line)
        elif match := _XID.search(text):
            yield _xid(int(match["number"]), match["device"], match["text"], line)
        elif match := _FAILED.search(text):
            what = f"{_INIT} {match['code'] or ''}".strip()
            yield Event(Grade.FAIL, what, (match["device"] or "").lower(), line)
        elif "NVRM: API mismatch" in text:
            yield Event(Grade.WARN, _VERSIONS, "", line)
        elif "RC watchdog: GPU is probably locked" in text:
            yield Event(Grade.WARN, _LOCKED, "", line)
        elif _FELL.search(text):
            first, device = begun if begun and left >= 0 else (line, "")
            yield Event(Grade.FAIL, _BUS, device, first)


def gpu_recoveries(gpus: Iterable[Gpu], lines: Sequence[Line]) -> Iterator[Recovery]:
    """Yield recoveries: Xid 154 without an action, a reload of the driver, a GPU that nvidia-smi lists now."""
    for line in lines:
        xid, changed = _XID.search(line.text), _CHANGED.search(line.text)
        if xid and changed and changed["action"] == _NO_ACTION:
            yield Recovery(xid["device"], line.place + 1)
        if "NVRM: loading NVIDIA" in line.text:
            yield Recovery("", line.place, (_INIT, _BUS, _LOCKED, _VERSIONS, _ACTION))
    for gpu in gpus:
        device = gpu.text("pci/pci_bus_id").lower().rpartition(".")[0][-len("0000:00:00") :]
        if device:
            in_order = gpu.text("gpu_recovery_action") == _NO_ACTION
            yield Recovery(device, NOW, (_INIT, _BUS, _ACTION) if in_order else (_INIT, _BUS))


def _xid(number: int, device: str, text: str, line: Line) -> Event:
    if number == 154:
        changed = _CHANGED.search(line.text)
        action = changed["action"] if changed else "unknown"
        grade = Grade.NOTE if action == _NO_ACTION else Grade.FAIL
        return Event(grade, f"{_ACTION}, recovery action {action}", device, line)
    severity, named = _SEVERITY.search(text), _NAMED.search(text)
    grade = Grade.FAIL if severity and severity["severity"] == "Fatal" else _grade(number)
    what = f"Xid {number}"
    if named:  # it follows from the other, which may be in no line of its own
        grade, what = max(grade, _grade(int(named["number"]))), f"{what} after Xid {named['number']}"
    return Event(grade, what, device, line)


def _grade(number: int) -> Grade:
    """Return the grade of an Xid whose text says no more."""
    soft = Grade.NOTE if number in _PROGRAMS else Grade.WARN
    return Grade.FAIL if number in _HARD else soft
