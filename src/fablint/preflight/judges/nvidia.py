"""Judge of the GPUs that nvidia-smi reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fablint.model.preflight_results import Result
from fablint.preflight.check import Check, Judge
from fablint.preflight.host import GPUS, Host
from fablint.preflight.judges.limits import limit
from fablint.preflight.judges.outputs import instead_of, without_answer
from fablint.snapshot.parsers.nvidia_smi import QUERY, Gpu

NVIDIA_SMI = "nvidia-smi -q -x, at level full"
_NO_GPU = "no GPU of NVIDIA"


def why_no_gpu(host: Host) -> str:
    """Return why nvidia-smi reports no GPU."""
    return f"nvidia-smi: {without_answer(host.command(QUERY))}" if host.snapshot.names(GPUS) else _NO_GPU


def per_gpu(judged: Callable[[Check, Host, Gpu], Result]) -> Judge:
    """Judge one property of each GPU of a host, without comparison of hosts."""

    def look(check: Check, host: Host) -> Iterator[Result]:
        if not host.snapshot.names(GPUS) and not host.nvidia_gpus:
            return
        output = host.command(QUERY)
        without = instead_of(check, host.name, "", output)
        if without is not None:
            yield without
        elif not host.nvidia_gpus:
            yield check.error(host.name, "", f"nvidia-smi: {without_answer(output)}")
        for gpu in host.nvidia_gpus:
            yield judged(check, host, gpu)

    return limit(look, _NO_GPU, reads=QUERY)
