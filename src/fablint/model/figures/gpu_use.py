"""How the ranks of a run use GPUs: the path of the messages of GPU memory, and GPUs that several ranks share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fablint.model.host_name import GpuRef
from fablint.model.names import plural

if TYPE_CHECKING:
    from fablint.model.run import Run

_PATHS = {
    "direct": "given to the library directly",
    "staged": "staged through host memory: the transport does not report that it takes them directly",
}


def path_words(memory: str, gpu_path: str) -> str:
    """Return in which memory of GPUs the messages of a row are and which path they take; '' of host memory."""
    path = _PATHS.get(gpu_path)
    return f"messages in memory of GPUs ({memory}), {path}" if memory and path else ""


class SharedGpus(NamedTuple):
    """GPUs that several ranks share."""

    gpus: int
    gpu: str  # that most ranks share
    ranks: int  # of this one

    @property
    def words(self) -> str:
        """Return what that means, in words."""
        what = f"{plural(self.gpus, 'GPU')} shared by several ranks, {self.gpu} by {self.ranks}"
        effect = "a rank waits for the others and has a part of its bandwidth"
        return f"{what}: {effect}, start one rank per GPU to measure the whole"


def sharing_words(run: Run) -> str:
    """Return which GPUs several ranks share; '' if each has one of its own."""
    shared = shared_gpus(run)
    return shared.words if shared else ""


def shared_gpus(run: Run) -> SharedGpus | None:
    """Return the GPUs that several ranks share; None if each rank has one of its own."""
    ranks: dict[GpuRef, list[int]] = {}
    for rank, gpu in enumerate(run.facts.rank_gpu):
        if gpu:
            ranks.setdefault(GpuRef.of(run.rank_host[rank], gpu), []).append(rank)
    shared = {gpu: sharing for gpu, sharing in ranks.items() if len(sharing) > 1}
    if not shared:
        return None
    gpu, sharing = max(shared.items(), key=lambda item: len(item[1]))
    return SharedGpus(len(shared), str(gpu), len(sharing))
