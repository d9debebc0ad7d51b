"""fablint on a GPU beside other programs: ucx_perftest in GPU memory, and copies by PyTorch; started by turns.

- Both ranks of ucx_perftest and of fablint use the same GPU where the host has one: the driver gives their processes
  the GPU in turns, which is most of the latency of either.
- PyTorch copies between pinned memory of the host and the GPU, or within the GPU, a window of copies in one stream and
  then one synchronisation, as the kernel gpu_loopback does. Of copies within the GPU, those of 1 MiB
  take PyTorch longer to start than the GPU to make: only the larger ones are compared.

    python benchmarks/gpu_peers.py [--repetitions 7] [--only copies]

Measures what is there: an NVIDIA GPU, a ucx_perftest and a UCX library with CUDA, a python3 with PyTorch on the PATH.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import which

from comparison.alternating import alternate
from comparison.failed_starts import output_of
from comparison.launching import Bench, begin
from comparison.peer_programs import Comparison, ucx_perftest
from comparison.peer_table import columns_of, print_lines
from transport_peers import LATENCY, compare

WINDOW, SAMPLES = 16, 20
COPIES = {"to-device": (1 << 20, 64 << 20), "to-host": (1 << 20, 64 << 20), "within-device": (64 << 20,)}  # bytes
MESSAGES = Comparison(
    "ucx cuda latency",
    f"{LATENCY} --transport ucx --memory cuda",
    ucx_perftest("tag_lat", memory="cuda"),
    (8, 4 << 20),
    (5000, 500),
)
TORCH = """
import json, statistics, sys, time, torch
copies, window, samples = map(json.loads, sys.argv[1:])
stream = torch.cuda.Stream()
for copy, sizes in copies.items():
    for size in sizes:
        host = torch.empty((window, size), dtype=torch.uint8, pin_memory=True)
        host.view(-1, 1 << 20)[:] = torch.randint(0, 255, (1 << 20,), dtype=torch.uint8)
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
"""


def torch_seconds() -> list[float]:
    """Seconds of each copy and size, measured by a start of PyTorch."""
    words = ["python3", "-c", TORCH, *map(json.dumps, (COPIES, WINDOW, SAMPLES))]
    return [float(line) for line in output_of(words).split()]


def own_seconds(bench: Bench, folder: Path) -> list[float]:
    """The same, measured by a start of the engine."""
    row = f"gpu_loopback --memory cuda --window {WINDOW} --samples {SAMPLES} --warmup 3"
    rows = [
        f"{row} --name {copy} --copy {copy} --sizes {','.join(map(str, sizes))}".split()
        for copy, sizes in COPIES.items()
    ]
    return [seconds for array in bench.engine_means(folder, rows, ranks=1) for seconds in array.tolist()]


def copy_lines(bench: Bench, repetitions: int, folder: Path) -> Iterator[str]:
    """A line for each copy and size."""
    starts = alternate({"ours": lambda: own_seconds(bench, folder), "theirs": torch_seconds}, repetitions)
    lines = [(copy, size) for copy, sizes in COPIES.items() for size in sizes]
    for line, (copy, size) in enumerate(lines):
        figures = {program: [size / seconds[line] / 1e9 for seconds in rows] for program, rows in starts.items()}
        yield f"{f'copies {copy}':<20} {'PyTorch':<13} {size:>9} {columns_of(figures, 'GB/s')}"


def main() -> None:
    arguments, bench = begin(__doc__.splitlines()[0])
    if not which("nvidia-smi"):
        print("no NVIDIA GPU: nvidia-smi is not installed")
        return
    print(f"{'measured':<20} {'program':<13} {'bytes':>9} {'fablint':>11} {'program':>11} unit  ratio [95 %]")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.only in MESSAGES.name and which(MESSAGES.program):
            measured = (
                compare(bench, MESSAGES, size, count, arguments.repetitions, folder)
                for size, count in zip(MESSAGES.sizes, MESSAGES.counts, strict=True)
            )
            print_lines(MESSAGES.name, measured)
        if arguments.only in "copies":
            print_lines("copies", copy_lines(bench, arguments.repetitions, folder))


if __name__ == "__main__":
    main()
