"""Check of the kernel log for errors of GPUs and NVLink switches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fablint.model.preflight_results import Severity
from fablint.preflight.check import Check
from fablint.preflight.host import GPUS, Host
from fablint.preflight.judges import log_events
from fablint.preflight.judges.log_patterns import KERNEL_LOG
from fablint.snapshot.parsers import accelerator_messages, amd_gpu_messages
from fablint.snapshot.parsers.gpu_messages import gpu_events, gpu_recoveries
from fablint.snapshot.parsers.kernel_log import (
    Event,
    Line,
    Recovery,
    pattern_events,
    pattern_recoveries,
    words_of,
)

_NVIDIA_WORDS = ("NVRM: ", "SXid (PCI:")
_PATTERNS = amd_gpu_messages.EVENTS + accelerator_messages.EVENTS
_ENDINGS = amd_gpu_messages.ENDINGS + accelerator_messages.ENDINGS


def _events(lines: Sequence[Line]) -> Iterator[Event]:
    yield from gpu_events(lines)
    yield from pattern_events(_PATTERNS, lines)


def _recoveries(host: Host, lines: Sequence[Line]) -> Iterable[Recovery]:
    yield from gpu_recoveries(host.nvidia_gpus, lines)
    yield from pattern_recoveries(_ENDINGS, lines)


def _lacks(host: Host) -> str:
    modules = (f"/sys/module/{name}/version" for name in ("nvidia", "amdgpu"))
    seen = host.snapshot.names(GPUS) or host.accelerators or any(host.read(path) is not None for path in modules)
    return "" if seen else "no GPU or accelerator"


LOG_GPU = Check(
    id="log.gpu",
    what="errors of GPUs and NVLink switches (Xid, SXid, RAS), and GPUs that the driver could not initialise or reset",
    source=KERNEL_LOG,
    rule=(
        "none within a week that requires a reset or shows faulty hardware, until the driver reports that no recovery "
        "is required or that a reset succeeded; stalled rings and heat warn for a day; errors of programs are a note"
    ),
    severity=Severity.FAIL,
    component="host",
    remedy="drain the host; reset or replace the GPU, as NVIDIA's list of Xid errors or AMD's list of RAS errors says",
    judge=log_events(
        _NVIDIA_WORDS + words_of(_PATTERNS),
        _events,
        _recoveries,
        ending_words=("NVRM: ", *words_of(_ENDINGS)),
        lacks=_lacks,
    ),
)
