"""Kernel log lines in which the driver amdgpu reports failures and recoveries of GPUs.

The texts are those of the sources of Linux 5.6 to 6.18 (drivers/gpu/drm/amd/amdgpu: amdgpu_ras.c, amdgpu_ras_eeprom.c,
amdgpu_device.c, amdgpu_job.c, amdgpu_kms.c, amdgpu_xgmi.c, nbio_v7_4.c, nbio_v7_9.c; drivers/gpu/drm/amd/pm/swsmu;
drivers/gpu/drm/amd/amdkfd), and of ROCm's version of the driver. Until Linux 5.10 some lines have
`[drm:FUNCTION [amdgpu]] *ERROR*` and no device.
"""

from __future__ import annotations

from fablint.snapshot.parsers.kernel_log import BDF, Grade, Pattern, RecoveryPattern

_UNCORRECTABLE = "uncorrectable hardware error"
_DEFERRED = "deferred hardware error"
_INIT = "the driver could not initialise the GPU"
_RESET = "reset failed"
_RING = "ring timeout"
_LOST = "lost from the bus"
_LINKS = "XGMI links to the other GPUs not set up"
_REPLACE = "more bad pages than permitted"
_BOOT = "self-test at boot failed"
_PREEMPTION = "queue preemption failed"
_SILENT = "firmware without an answer"
_HOT = "GPU too hot"
_THROTTLED = "GPU throttled"

_MANY = 100  # corrected errors within a day
_GPU = rf"amdgpu {BDF}: "
_DRM = rf"(?:{_GPU}|\[drm).*"
_NAMELESS = rf"(?:{_GPU}|amdgpu: |kfd)"  # the first with a device since Linux 6.9

EVENTS = (
    Pattern(
        "hardware error",
        rf"{_GPU}.*\b(?<![\w-])[1-9]\d* (?:new )?uncorrectable hardware errors",
        Grade.FAIL,
        _UNCORRECTABLE,
    ),
    Pattern("ERREVENT_ATHUB_INTERRUPT", rf"{_DRM}ERREVENT_ATHUB_INTERRUPT\)? detected!", Grade.FAIL, _UNCORRECTABLE),
    Pattern("rror detected in UMC inst", rf"{_GPU}.*Uncorrectable error detected in UMC", Grade.FAIL, _UNCORRECTABLE),
    Pattern("hardware error", rf"{_GPU}.*[1-9]\d* (?:new )?deferred hardware errors", Grade.WARN, _DEFERRED),
    Pattern(
        "hardware error",
        rf"{_GPU}.*[1-9]\d* (?:new )?correctable hardware errors",
        Grade.NOTE,
        "correctable hardware error",
        _MANY,
    ),
    Pattern("Poison is c", rf"{_GPU}.*Poison is created", Grade.WARN, _DEFERRED),
    Pattern("poison is consumed", rf"{_GPU}.*poison is consumed by client", Grade.WARN, _DEFERRED),
    Pattern("Fatal error during GPU init", rf"{_GPU}.*Fatal error during GPU init", Grade.FAIL, _INIT),
    Pattern("GPU reset(", rf"{_GPU}.*GPU reset\(\d+\) failed", Grade.FAIL, _RESET),
    Pattern("GPU reset end with ret", rf"{_GPU}.*GPU reset end with ret = -", Grade.FAIL, _RESET),
    Pattern(" reset failed", rf"{_DRM}(?:ASIC|mode1|pre asic|link|Mode2) reset failed", Grade.FAIL, _RESET),
    Pattern("GPU Recovery Failed", rf"{_DRM}GPU Recovery Failed: ", Grade.FAIL, _RESET),
    Pattern("device lost from bus", rf"{_GPU}.*device lost from bus!", Grade.FAIL, _LOST),
    Pattern("error recovery failed", rf"{_GPU}.*PCIe error recovery failed", Grade.FAIL, _LOST),
    Pattern(" topology failure on device", rf"{_GPU}.*XGMI: [GS]et topology failure on device", Grade.FAIL, _LINKS),
    Pattern("RAS records:", rf"{_GPU}.*RAS records:\d+ exceeds? threshold:\d+", Grade.FAIL, _REPLACE),
    Pattern("Saved bad pages ", rf"{_GPU}.*Saved bad pages \d+ reaches threshold", Grade.FAIL, _REPLACE),
    Pattern("RAS records:", rf"{_GPU}.*RAS records:\d+ exceeds 90%", Grade.WARN, "few bad pages are left"),
    Pattern(
        "fw_status: 0x",
        rf"{_GPU}.*socket: \d+, aid: \d+.*fw_status: 0x[0-9a-f]+, .* failed",
        Grade.FAIL,
        _BOOT,
    ),
    Pattern(" timeout, signaled seq=", rf"{_DRM}\bring \S+ timeout, signaled seq=", Grade.WARN, _RING),
    Pattern(" timeout, but soft recovered", rf"{_DRM}\bring \S+ timeout, but soft recovered", Grade.NOTE, _RING),
    Pattern("ueue preemption failed", rf"{_DRM}[Qq]ueue preemption failed", Grade.WARN, _PREEMPTION),
    Pattern("might be in unrecoverable state", rf"{_GPU}.*MES might be in unrecoverable", Grade.WARN, _PREEMPTION),
    Pattern("might be in an unrecoverable", rf"{_NAMELESS}.*[Tt]he cp might be in an unrecov", Grade.WARN, _PREEMPTION),
    Pattern("fence wait loop timeout", rf"{_NAMELESS}.*qcm fence wait loop timeout expired", Grade.WARN, _PREEMPTION),
    Pattern("SMU: I'm not done with", rf"{_GPU}.*SMU: I'm not done with your previous com", Grade.WARN, _SILENT),
    Pattern("CTF) detected", rf"{_GPU}.*ERROR: GPU .*CTF\) detected!", Grade.WARN, _HOT),
    Pattern("over temperature range", rf"{_GPU}.*ERROR: GPU over temperature range", Grade.WARN, _HOT),
    Pattern("xpect performance decrease", rf"{_GPU}.*throttl.*expect performance decrease", Grade.WARN, _THROTTLED),
)
# the bad pages stay, and a GPU that is faulty at boot stays faulty
_ENDED = (_UNCORRECTABLE, _DEFERRED, _RESET, _RING, _PREEMPTION, _SILENT)
ENDINGS = (
    RecoveryPattern("GPU reset(", rf"{_GPU}.*GPU reset\(\d+\) succeeded!", _ENDED),
    RecoveryPattern(
        "Initialized amdgpu ", rf"Initialized amdgpu [\d.]+(?: \d+)? for {BDF} ", (*_ENDED, _INIT, _LOST, _LINKS)
    ),
    # without a device, as the lines that it ends
    RecoveryPattern("GPU reset(", r"GPU reset\(\d+\) succeeded!(?P<device>)", _ENDED),
)
