"""Messages of NVIDIA's driver in the kernel log: Xid and SXid errors, and recoveries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fablint.snapshot.parsers.kernel_log import NOW, Event, Grade, Line, Recovery
from fablint.snapshot.parsers.nvidia_smi import Gpu

_INIT = "the driver could not initialise the GPU"
_ACTION = "Xid 154"  # GPU recovery action changed
_NO_ACTION = "None"


_XID = re.compile(r"NVRM: Xid \(PCI:(?P<device>[0-9a-fA-F:.]{1,20})\): (?P<number>\d{1,6})")
_SXID = re.compile(r"SXid \(PCI:(?P<device>[0-9a-fA-F:.]{1,20})\): (?P<number>\d{1,6}), (?P<kind>Fatal)?")
_CHANGED = re.compile(r"154, GPU recovery action changed from .{1,60} to 0x[0-9a-f]{1,8} \((?P<action>[^()]{1,60})\)")
_FAILED = re.compile(
    r"NVRM: (?:GPU (?P<device>[0-9a-fA-F:]{1,20})(?:\.[0-7])?: )?RmInitAdapter failed!"
    r"(?: (?P<code>\([\w:]{1,40}\)))?"
)
# NVIDIA's catalogue of Xids: 140 is an ECC error that the driver could not handle, 143 a GPU that was not
# initialised, 158 a GPU that does not answer; each requires a reset. 154 reports the recovery that others require.
_HARD = frozenset({48, 56, 57, 58, 62, 63, 64, 65, 68, 69, 73, 74, 79, 80, 81, 92, 95, 119, 120, 140, 143, 158})
_PROGRAMS = frozenset({13, 31, 43, 45})


def gpu_events(lines: Sequence[Line]) -> Iterator[Event]:
    """Yield errors of GPUs and of NVLink switches."""
    for line in lines:
        if match := _SXID.search(line.text):
            grade = Grade.FAIL if match["kind"] else Grade.NOTE
            yield Event(grade, f"SXid {match['number']}", match["device"], line)
        elif match := _XID.search(line.text):
            yield _xid(int(match["number"]), match["device"], line)
        elif match := _FAILED.search(line.text):
            what = f"{_INIT} {match['code'] or ''}".strip()
            yield Event(Grade.FAIL, what, (match["device"] or "").lower(), line)


def gpu_recoveries(gpus: Iterable[Gpu], lines: Sequence[Line]) -> Iterator[Recovery]:
    """Yield recoveries: Xid 154 without an action, a reload of the driver, a GPU that nvidia-smi lists now."""
    for line in lines:
        xid, changed = _XID.search(line.text), _CHANGED.search(line.text)
        if xid and changed and changed["action"] == _NO_ACTION:
            yield Recovery(xid["device"], line.place + 1)
        if "NVRM: loading NVIDIA" in line.text:
            yield Recovery("", line.place, (_INIT, _ACTION))
    for gpu in gpus:
        device = gpu.text("pci/pci_bus_id").lower().rpartition(".")[0][-len("0000:00:00") :]
        if device:
            in_order = gpu.text("gpu_recovery_action") == _NO_ACTION
            yield Recovery(device, NOW, (_INIT, _ACTION) if in_order else (_INIT,))


def _xid(number: int, device: str, line: Line) -> Event:
    if number == 154:
        changed = _CHANGED.search(line.text)
        action = changed["action"] if changed else "unknown"
        grade = Grade.NOTE if action == _NO_ACTION else Grade.FAIL
        return Event(grade, f"{_ACTION}, recovery action {action}", device, line)
    soft = Grade.NOTE if number in _PROGRAMS else Grade.WARN
    return Event(Grade.FAIL if number in _HARD else soft, f"Xid {number}", device, line)
