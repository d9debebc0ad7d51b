"""How the ranks of a run use GPUs: the path of the messages of GPU memory, and GPUs that several ranks share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fablint.model.host_name import GpuRef
from fablint.model.names import plural
from fablint.model.registry import GPU_MEMORIES

if TYPE_CHECKING:
    from fablint.model.facts.row_attributes import CarrierFacts
    from fablint.model.run import Run

_PATHS = {
    "direct": "given to the library directly",
    "staged": "staged through host memory: the transport does not report that it takes them directly",
}


def path_words(carrier: CarrierFacts) -> str:
    """Return where the messages of a row are and which path they take; '' of host memory."""
    memory, path = carrier.memory, _PATHS.get(carrier.gpu_path)
    return f"messages in memory of GPUs ({memory}), {path}" if memory in GPU_MEMORIES and path else ""


def sharing_words(run: Run) -> str:
    """Return which GPUs several ranks share; '' if each has one of its own."""
    ranks: dict[GpuRef, list[int]] = {}
    for rank, gpu in enumerate(run.facts.rank_gpu):
        if gpu:
            ranks.setdefault(GpuRef.of(run.rank_host[rank], gpu), []).append(rank)
    shared = {gpu: sharing for gpu, sharing in ranks.items() if len(sharing) > 1}
    if not shared:
        return ""
    gpu, sharing = max(shared.items(), key=lambda item: len(item[1]))
    what = f"{plural(len(shared), 'GPU')} shared by several ranks, {gpu} by {len(sharing)}"
    effect = "a rank waits for the others and has a part of its bandwidth"
    return f"{what}: {effect}, start one rank per GPU to measure the whole"
