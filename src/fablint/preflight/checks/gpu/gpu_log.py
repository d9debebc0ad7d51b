"""Check of the kernel log for errors of NVIDIA GPUs and NVLink switches."""

from __future__ import annotations

from fablint.model.preflight_results import Severity
from fablint.preflight.check import Check
from fablint.preflight.host import GPUS, Host
from fablint.preflight.judges import log_events
from fablint.preflight.judges.log_patterns import KERNEL_LOG
from fablint.snapshot.parsers.gpu_messages import gpu_events, gpu_recoveries


def _lacks(host: Host) -> str:
    seen = host.snapshot.names(GPUS) or host.read("/sys/module/nvidia/version") is not None
    return "" if seen else "no NVIDIA GPU"


LOG_GPU = Check(
    id="log.gpu",
    what="errors of GPUs and NVLink switches (Xid, SXid), and GPUs that the driver could not initialise",
    source=KERNEL_LOG,
    rule=(
        "none within a week that requires a reset or shows faulty hardware, until the driver reports that no recovery "
        "is required; errors of programs are a note"
    ),
    severity=Severity.FAIL,
    component="host",
    remedy="drain the host; reset or replace the GPU, as NVIDIA's list of Xid errors says",
    judge=log_events(
        ("NVRM: ", "SXid (PCI:"), gpu_events, lambda host, lines: gpu_recoveries(host.nvidia_gpus, lines), lacks=_lacks
    ),
)
