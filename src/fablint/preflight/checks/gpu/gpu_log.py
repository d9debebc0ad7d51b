"""Check of the kernel log for errors of NVIDIA GPUs and NVLink switches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fablint.model.preflight_results import Severity
from fablint.preflight.checks.gpu.gpu_state import gpus
from fablint.preflight.checks.log_checks import GPUS, LogCheck
from fablint.preflight.host import Host
from fablint.snapshot.parsers.kernel_log import NOW, Event, Grade, Line, Recovery

_INIT = "the driver could not initialise the GPU"
_ACTION = "Xid 154"  # GPU recovery action changed
_NO_ACTION = "None"


class LogGpu(LogCheck):
    id = "log.gpu"
    what = "errors of GPUs and NVLink switches (Xid, SXid), and GPUs that the driver could not initialise"
    rule = (
        "none within a week that requires a reset or shows faulty hardware, until the driver reports that no recovery "
        "is required; errors of programs are a note"
    )
    severity = Severity.FAIL
    component = "host"
    remedy = "drain the host; reset or replace the GPU, as NVIDIA's list of Xid errors says"
    words = ("NVRM: ", "SXid (PCI:")

    _XID = re.compile(r"NVRM: Xid \(PCI:(?P<device>[0-9a-fA-F:.]{1,20})\): (?P<number>\d{1,6})")
    _SXID = re.compile(r"SXid \(PCI:(?P<device>[0-9a-fA-F:.]{1,20})\): (?P<number>\d{1,6}), (?P<kind>Fatal)?")
    _CHANGED = re.compile(
        r"154, GPU recovery action changed from .{1,60} to 0x[0-9a-f]{1,8} \((?P<action>[^()]{1,60})\)"
    )
    _FAILED = re.compile(
        r"NVRM: (?:GPU (?P<device>[0-9a-fA-F:]{1,20})(?:\.[0-7])?: )?RmInitAdapter failed!"
        r"(?: (?P<code>\([\w:]{1,40}\)))?"
    )
    # NVIDIA's catalogue of Xids: 140 is an ECC error that the driver could not handle, 143 a GPU that was not
    # initialised, 158 a GPU that does not answer; each requires a reset. 154 reports the recovery that others require.
    _HARD = frozenset({48, 56, 57, 58, 62, 63, 64, 65, 68, 69, 73, 74, 79, 80, 81, 92, 95, 119, 120, 140, 143, 158})
    _PROGRAMS = frozenset({13, 31, 43, 45})

    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        for line in lines:
            if match := self._SXID.search(line.text):
                grade = Grade.FAIL if match["kind"] else Grade.NOTE
                yield Event(grade, f"SXid {match['number']}", match["device"], line)
            elif match := self._XID.search(line.text):
                yield self._xid(int(match["number"]), match["device"], line)
            elif match := self._FAILED.search(line.text):
                what = f"{_INIT} {match['code'] or ''}".strip()
                yield Event(Grade.FAIL, what, (match["device"] or "").lower(), line)

    def recoveries(self, host: Host, lines: Sequence[Line]) -> Iterator[Recovery]:
        """Yield recoveries: Xid 154 without an action, a reload of the driver, a GPU that nvidia-smi lists now."""
        for line in lines:
            xid, changed = self._XID.search(line.text), self._CHANGED.search(line.text)
            if xid and changed and changed["action"] == _NO_ACTION:
                yield Recovery(xid["device"], line.place + 1)
            if "NVRM: loading NVIDIA" in line.text:
                yield Recovery("", line.place, (_INIT, _ACTION))
        for gpu in gpus(host):
            device = gpu.text("pci/pci_bus_id").lower().rpartition(".")[0][-len("0000:00:00") :]
            if device:
                in_order = gpu.text("gpu_recovery_action") == _NO_ACTION
                yield Recovery(device, NOW, (_INIT, _ACTION) if in_order else (_INIT,))

    def _xid(self, number: int, device: str, line: Line) -> Event:
        if number == 154:
            changed = self._CHANGED.search(line.text)
            action = changed["action"] if changed else "unknown"
            grade = Grade.NOTE if action == _NO_ACTION else Grade.FAIL
            return Event(grade, f"{_ACTION}, recovery action {action}", device, line)
        soft = Grade.NOTE if number in self._PROGRAMS else Grade.WARN
        return Event(Grade.FAIL if number in self._HARD else soft, f"Xid {number}", device, line)

    def lacks(self, host: Host) -> str:
        seen = host.snapshot.names(GPUS) or host.read("/sys/module/nvidia/version") is not None
        return "" if seen else "no NVIDIA GPU"
