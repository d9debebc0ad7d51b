"""Command lines of the OSU Micro-Benchmarks. Most of OSU's options are those of `bench`; these are the others."""

from __future__ import annotations

from dataclasses import replace

from fablint.cli.peers.peer_lines import GivenLine, Peer, PeerWords, without_words
from fablint.cli.peers.peer_options import PeerOption, absent, only, ours
from fablint.errors import UsageError
from fablint.model.registry import KernelInfo

_MEMORIES = {"cuda": "cuda", "rocm": "hip"}  # OSU's accelerators
_BUFFERS = ("H", "D")  # of rank 0 and of rank 1: in memory of the host or of the device


def _translate(line: GivenLine) -> PeerWords:
    """Translate -d and the places of the buffers, which stand after the options: `-d cuda D D`."""
    if not line.options and not line.words:
        return PeerWords(line.name)
    accelerator = line.options.get("d")
    if accelerator is not None and accelerator.lower() not in _MEMORIES:
        raise UsageError(f"-d {accelerator} of OSU is not available", f"choose {' or '.join(_MEMORIES)}")
    memory = _MEMORIES[accelerator.lower()] if accelerator else "host"
    places = [word.upper() for word in line.words]
    if not places:
        return _of_accelerator(line.name, memory)
    if len(places) != 2 or not {*places} <= {*_BUFFERS}:
        hint = "give D D (device) or H H (host) as the last words"
        raise UsageError(f"{line.name}: '{' '.join(line.words)}' are not places of buffers of two ranks", hint)
    why = "buffers are in host memory, as in an OSU without CUDA and ROCm: give -d cuda or -d rocm"
    note = f"{' '.join(places)} without -d: {why}"
    first, second = (memory if place == "D" else "host" for place in places)
    peer = [] if first == second else ["--peer-memory", second]
    return PeerWords(line.name, ["--memory", first, *peer], [note] if "D" in places and not accelerator else [])


def _kernels(name: str) -> list[KernelInfo]:
    from fablint.plan import every_row
    from fablint.workflows.benchmark import benchmark_registry

    return [row.kernel_info for row in every_row(name, benchmark_registry())]


def _is_one_sided(name: str) -> bool:
    """Return whether a benchmark has a window of remote memory."""
    return any("win" in kernel.options for kernel in _kernels(name))


def _is_collective(name: str) -> bool:
    return any(kernel.is_collective for kernel in _kernels(name))


def _overlaps(name: str) -> bool:
    return any(kernel.overlaps for kernel in _kernels(name))


def _of_accelerator(name: str, memory: str) -> PeerWords:
    """Return the words for -d alone: OSU's collectives use the device then, its other programs host memory."""
    if memory == "host":
        return PeerWords(name)
    if _is_collective(name):
        return PeerWords(name, ["--memory", memory])
    note = f"-d without D D: buffers are in host memory, as in OSU: give D D as the last words for --memory {memory}"
    return PeerWords(name, ["--memory", "host"], [note])


OSU = Peer(
    "OSU",
    (
        PeerOption("-d --accelerator", "TYPE", "cuda or rocm: memory of the device, where the last words are D D"),
        ours("-x", "N", "--warmup"),
        ours("-f --full", "", "--all-columns", _is_collective),
        ours("-w --win-options", "HOW", "--win", _is_one_sided),
        ours("-t --num-test-calls", "CALLS", "--tests", _overlaps),
        only("-R --print-rate", "0|1", "1", "the message rate is a column of osu_mbw_mr"),
        absent("-u --validation-warmup", "N", "-c checks every repetition, and none of them is repeated for it"),
        absent(
            "-I --mpi-session --session", "", "the engine starts MPI with MPI_Init, as OSU does by default: omit it"
        ),
        absent("-G --graph", "TYPES", "-o RUN keeps the figures, and fablint report RUN draws them"),
        absent("-D --ddt", "TYPE", "messages are contiguous bytes: omit it"),
        absent(
            "-P --papi",
            "EVENTS",
            "--counters reads the counters of the NICs; for those of the CPU run the launcher under perf",
        ),
        absent("-M --mem-limit", "BYTES", "sizes end at OSU's default of 512 MiB for each rank: give fewer with -m"),
        absent("-a --array-size", "N", "no computation runs on the device: omit it"),
        absent("-r --cuda-target", "TARGET", "no computation runs on the device: omit it"),
        absent("-N --nhbr", "TYPE", "there are no neighbourhood collectives"),
        absent("-k --root-rank", "RANK", "rank 0 is the root: omit it"),
    ),
    families=("OSU", "fablint"),
    translate=_translate,
)
# The letters of OSU for benchmarks whose originals have only long options.
LETTERS = replace(
    OSU,
    options=OSU.options[1:],
    families=("LinkTest", "net_sanitizer", "HPE", "SDSC", "GPCNeT"),
    translate=without_words,
)
