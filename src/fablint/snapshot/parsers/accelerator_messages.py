"""Kernel log lines in which drivers of other accelerators report failures and recoveries: xe, i915, habanalabs.

The texts are those of the sources of Linux 4.4 to 6.18 (drivers/gpu/drm/xe/{xe_device,xe_gt}.c, drivers/gpu/drm/i915/
{i915_gpu_error.c,gt/intel_reset.c}, drivers/accel/habanalabs/common/device.c, until 6.2 in drivers/misc). Lines of
habanalabs begin with the number of the device, and some have its address since 6.8.
"""

from __future__ import annotations

from fablint.snapshot.parsers.kernel_log import BDF, Grade, Pattern, RecoveryPattern

_UNUSABLE = "declared unusable by its driver"
_RESET = "reset failed"
_STALLED = "GPU stalled"
_SILENT = "firmware without an answer"

_XE, _I915 = rf"xe {BDF}: \[drm\] ", rf"i915 {BDF}: \[drm\] "
_HABANA = r"(?:habanalabs|accel) (?P<device>(?:hl|accel)\d+): "

EVENTS = (
    Pattern("as wedged", rf"{_XE}.*Xe has declared device \S+ as wedged", Grade.FAIL, _UNUSABLE),
    Pattern("reset failed (", rf"{_XE}.*GT\d+: reset failed \(", Grade.FAIL, _RESET),
    Pattern("NG: ecode ", rf"(?:{_I915}|\[drm\] )GPU [A-Z]+: ecode ", Grade.WARN, _STALLED),
    Pattern("Failed to reset chip", rf"{_I915}.*Failed to reset chip", Grade.FAIL, _RESET),
    Pattern("Device heartbeat failed!", rf"{_HABANA}.*Device heartbeat failed!", Grade.WARN, _SILENT),
    Pattern("Device is NOT usable", rf"{_HABANA}.*Failed to reset! Device is NOT usable", Grade.FAIL, _RESET),
)
ENDINGS = (
    RecoveryPattern("Initialized xe ", rf"Initialized xe [\d.]+(?: \d+)? for {BDF} ", (_UNUSABLE, _RESET)),
    RecoveryPattern("Initialized i915 ", rf"Initialized i915 [\d.]+(?: \d+)? for {BDF} ", (_RESET, _STALLED)),
    RecoveryPattern(
        "Successfully finished resetting", rf"{_HABANA}Successfully finished resetting the ", (_SILENT, _RESET)
    ),
)
