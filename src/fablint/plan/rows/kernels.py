"""The kernels, as far as planning and asking care: they mirror engine/registry/kernels.inc, in its order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Uses = Literal["messages", "one-sided", "requests", "collectives"]
Sizes = Literal["from 0", "from 1", "only 0", "only 8", "floats"]


@dataclass(frozen=True)
class Kernel:
    """What the members of a group do.

    `payload` says who sends the payload of a cell (src, dst). In a mutual kernel all ends do the same at once, so that
    there is no direction to choose.
    """

    what: str
    quantity: Literal["latency", "bandwidth"]
    payload: Literal["src", "dst", "both", "none"]
    uses: Uses = "messages"
    windowed: bool = False  # many messages in flight
    mutual: bool = False
    takes: Sizes = "from 1"
    sizes: str = "1:4M"  # when none are asked for

    @property
    def pattern(self) -> str:
        """The pattern when none is asked for."""
        return "world" if self.uses == "collectives" else "pair"

    @property
    def windows(self) -> bool:
        """Does it need an RMA window?"""
        return self.uses in ("one-sided", "requests")


_LATENCY = Kernel("half a round trip", "latency", "both", takes="from 0")
_BANDWIDTH = Kernel("one-way stream of windows, acknowledged", "bandwidth", "src", windowed=True)
_BIBANDWIDTH = Kernel("streams in both directions at once", "bandwidth", "both", windowed=True, mutual=True)
_PUTS = Kernel("a window of puts", "bandwidth", "src", "one-sided", windowed=True)
_ATOMIC = Kernel("one compare-and-swap", "latency", "both", "one-sided", takes="only 8", sizes="8")
_COLLECTIVE = Kernel("MPI_Alltoall", "latency", "both", "collectives", mutual=True, sizes="1:1M")

KERNELS = {
    "latency": _LATENCY,
    "bandwidth": _BANDWIDTH,
    "bibandwidth": _BIBANDWIDTH,
    "exchange": replace(_LATENCY, what="both ends send one message at once", mutual=True),
    "latency_persistent": replace(_LATENCY, what="latency with persistent requests"),
    "bandwidth_persistent": replace(_BANDWIDTH, what="bandwidth with persistent requests"),
    "bibandwidth_persistent": replace(_BIBANDWIDTH, what="bibandwidth with persistent requests"),
    "latency_mt": replace(_LATENCY, what="latency with several threads at each end"),
    "latency_mp": replace(_LATENCY, what="latency beside forked processes"),
    "put_latency": Kernel("one put until it is at the target", "latency", "src", "one-sided"),
    "put_bandwidth": _PUTS,
    "put_bibandwidth": replace(_PUTS, what="a window of puts in each direction at once", payload="both", mutual=True),
    "get_latency": Kernel("one get", "latency", "dst", "one-sided"),
    "get_bandwidth": replace(_PUTS, what="a window of gets", payload="dst"),
    "accumulate": Kernel("one accumulate", "latency", "src", "one-sided"),
    "get_accumulate": Kernel("one get-accumulate", "latency", "both", "one-sided"),
    "cas": _ATOMIC,
    "fop": replace(_ATOMIC, what="one fetch-and-add"),
    "rpc_put": replace(_PUTS, what="requests that the server answers with puts", payload="dst", uses="requests"),
    "rpc_get": replace(_PUTS, what="requests that the server answers with gets", uses="requests"),
    "barrier": replace(_COLLECTIVE, what="MPI_Barrier", payload="none", takes="only 0", sizes="0"),
    "bcast": replace(_COLLECTIVE, what="MPI_Bcast from rank 0"),
    "allreduce": replace(_COLLECTIVE, what="MPI_Allreduce, sum of floats", takes="floats", sizes="4:1M"),
    "allgather": replace(_COLLECTIVE, what="MPI_Allgather"),
    "alltoall": _COLLECTIVE,
}

# Pattern -> what its groups are; decides which kernels it can run.
PATTERNS = {
    "pair": "pairs",
    "pairs": "pairs",
    "all-pairs": "pairs",
    "bisection": "pairs",
    "random": "pairs",
    "rounds": "pairs",
    "fan-in": "stars",
    "fan-out": "stars",
    "clients-servers": "stars",
    "world": "world",
    "victim-aggressor": "pairs",
}


def runs_on(kernel: str, pattern: str) -> bool:
    """Can the kernel run on the groups of the pattern?"""
    shape, uses = PATTERNS[pattern], KERNELS[kernel].uses
    if "world" in (shape, KERNELS[kernel].pattern):
        return shape == KERNELS[kernel].pattern
    return shape == "pairs" or kernel == "bandwidth" or (uses == "requests" and pattern == "clients-servers")


def takes(kernel: str, size: int) -> bool:
    """Has the kernel a meaning for messages of `size` bytes?"""
    match KERNELS[kernel].takes:
        case "from 0":
            return True
        case "from 1":
            return size > 0
        case "only 0":
            return size == 0
        case "only 8":
            return size == 8
        case "floats":
            return size > 0 and size % 4 == 0
