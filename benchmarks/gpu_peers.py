"""fablint on a GPU beside other programs: ucx_perftest in GPU memory, copies and collectives by PyTorch, by turns.

- Both ranks of ucx_perftest and of fablint use the same GPU where the host has one: the driver gives their processes
  the GPU in turns, which is most of the latency of either.
- PyTorch copies between pinned memory of the host and the GPU, or within the GPU, a window of copies in one stream and
  then one synchronisation, as the kernel gpu_loopback does.
- PyTorch calls the collectives of NCCL, as `--transport nccl` does, and waits for its stream after a batch. Two ranks
  share the GPU: NCCL takes them for ranks of two hosts (NCCL_HOSTID) and connects them over TCP. LD_LIBRARY_PATH should
  lead to the libnccl.so.2 of PyTorch.

    python benchmarks/gpu_peers.py [--repetitions 7] [--only copies]

Measures what is there: an NVIDIA GPU, a ucx_perftest and a UCX library with CUDA, a python3 with PyTorch on the PATH.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from shutil import which

import numpy as np
from comparison.alternating import alternate
from comparison.launching import LOCAL_RANK, Bench, begin
from comparison.peer_programs import Comparison, ucx_perftest
from comparison.peer_table import columns_of
from transport_peers import LATENCY, compare, free_port

SIZES = (1 << 20, 64 << 20)
WINDOW, SAMPLES = 16, 20
MESSAGES = Comparison(
    "ucx cuda latency",
    f"{LATENCY} --transport ucx --memory cuda",
    ucx_perftest("tag_lat", memory="cuda"),
    (8, 4 << 20),
    (5000, 500),
)


@dataclass(frozen=True)
class TorchComparison:
    """Rows of the engine and a program that measures the same with PyTorch; a start of either measures all."""

    name: str
    unit: str
    rows: Mapping[str, str]  # what is measured: words of the row, without sizes
    sizes: Sequence[int]
    program: str  # prints seconds, a line for each row and size
    words: Sequence[str]  # arguments of the program, after the sizes
    ranks: int = 1

    def figure(self, seconds: float, size: int) -> float:
        return seconds * 1e6 if self.unit == "us" else size / seconds / 1e9


COPIES = TorchComparison(
    "copies",
    "GB/s",
    {
        copy: f"gpu_loopback --memory cuda --copy {copy} --window {WINDOW} --samples {SAMPLES} --warmup 3"
        for copy in ("to-device", "to-host", "within-device")
    },
    SIZES,
    """
import statistics, sys, time, torch
sizes, window, samples = map(int, sys.argv[1].split(",")), int(sys.argv[2]), int(sys.argv[3])
hosts = {size: torch.randint(0, 255, (window, size), dtype=torch.uint8).pin_memory() for size in sizes}
stream = torch.cuda.Stream()
for copy in ("to-device", "to-host", "within-device"):
    for size, host in hosts.items():
        one = host.to("cuda")
        other = torch.empty_like(one)
        to, source = {"to-device": (one, host), "to-host": (host, one), "within-device": (other, one)}[copy]
        times = []
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            for _ in range(samples + 3):
                begin = time.perf_counter()
                for slot in range(window):
                    to[slot].copy_(source[slot], non_blocking=True)
                stream.synchronize()
                times.append((time.perf_counter() - begin) / window)
        print(statistics.mean(times[3:]))
""",
    (str(WINDOW), str(SAMPLES)),
)
BATCH = 20  # operations in the stream before one synchronisation, as nccl-tests does
COLLECTIVES = TorchComparison(
    "nccl",
    "us",
    {
        kernel: f"{kernel} --transport nccl --samples {SAMPLES} --batch {BATCH} --warmup 3"
        for kernel in ("allreduce", "allgather")
    },
    (8, 1 << 20, 8 << 20),
    """
import statistics, sys, time, torch
from torch import distributed
sizes = [int(size) for size in sys.argv[1].split(",")]
batch, samples, rank, port = map(int, sys.argv[2:])
torch.cuda.set_device(0)
distributed.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
data, gathered = (torch.zeros(max(sizes) * ranks // 4, device="cuda") for ranks in (1, 2))
operations = (
    lambda words: distributed.all_reduce(data[:words]),
    lambda words: distributed.all_gather_into_tensor(gathered[:2 * words], data[:words]),
)
for operation in operations:
    for size in sizes:
        times = []
        for _ in range(samples + 3):
            distributed.barrier()
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(batch):
                operation(size // 4)
            torch.cuda.current_stream().synchronize()
            times.append((time.perf_counter() - begin) / batch)
        if rank == 0:
            print(statistics.mean(times[3:]))
distributed.destroy_process_group()
""",
    (str(BATCH), str(SAMPLES)),
    ranks=2,
)


def torch_seconds(bench: Bench, one: TorchComparison) -> list[float]:
    """Start PyTorch; the ranks learn their numbers from mpiexec, and a free port of rank 0."""
    words = ["python3", "-c", one.program, ",".join(map(str, one.sizes)), *one.words]
    if one.ranks > 1:
        words = ["sh", "-c", f'exec "$@" {LOCAL_RANK} {free_port()}', "ranks", *words]
    return [float(line) for line in bench.run(one.ranks, words).split()]


def own_seconds(bench: Bench, one: TorchComparison, folder: Path) -> list[float]:
    sizes = f"--sizes {','.join(map(str, one.sizes))}"
    rows = [f"{row} --name {name} {sizes}".split() for name, row in one.rows.items()]
    return [seconds for row in bench.engine_means(folder, rows, one.ranks) for seconds in row.tolist()]


def torch_lines(bench: Bench, one: TorchComparison, repetitions: int, folder: Path) -> Iterator[str]:
    """A line for each row and size."""
    starts = {"ours": lambda: own_seconds(bench, one, folder), "theirs": lambda: torch_seconds(bench, one)}
    measured = {name: np.array(seconds).T for name, seconds in alternate(starts, repetitions).items()}  # (line, start)
    for line, (name, size) in enumerate(product(one.rows, one.sizes)):
        figures = {program: [one.figure(start, size) for start in rows[line]] for program, rows in measured.items()}
        yield f"{f'{one.name} {name}':<20} {'PyTorch':<13} {size:>9} {columns_of(figures, one.unit)}"


def main() -> None:
    arguments, bench = begin(__doc__.splitlines()[0])
    if not which("nvidia-smi"):
        print("no NVIDIA GPU: nvidia-smi is not installed")
        return
    # Of two ranks with one GPU, NCCL needs that they seem to be on two hosts.
    bench = replace(bench, prefix=("sh", "-c", f'NCCL_HOSTID={LOCAL_RANK} exec "$@"', "host", *bench.prefix))
    print(f"{'measured':<20} {'program':<13} {'bytes':>9} {'fablint':>11} {'program':>11} unit  ratio [95 %]")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.only in MESSAGES.name and which(MESSAGES.program):
            for size, count in zip(MESSAGES.sizes, MESSAGES.counts, strict=True):
                print(compare(bench, MESSAGES, size, count, arguments.repetitions, folder), flush=True)
        for one in (COPIES, COLLECTIVES):
            if arguments.only in one.name:
                for line in torch_lines(bench, one, arguments.repetitions, folder):
                    print(line, flush=True)


if __name__ == "__main__":
    main()
