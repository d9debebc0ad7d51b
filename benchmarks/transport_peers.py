"""Transports of fablint beside the programs of the same libraries, started by turns on the same two CPUs.

Measured are the programs that are installed: sockperf and iperf3 for TCP, ucx_perftest for UCX, fi_pingpong for
libfabric. Each comparison has the same message size, buffers, CPUs and polling ends. A ratio above 1 is a
longer latency or a higher bandwidth of fablint's. Where a program defines a figure otherwise, the table says so:

- iperf3 and ucx_perftest stream without end; fablint's bandwidth has an acknowledgement after each window, which is
  part of the time: with windows of 64 messages of 8 bytes in shared memory it takes 16 % of it. Windows of small
  messages are there twice as long as the queue of ucx_perftest, over TCP as long: with more in flight than the queue
  of the shared memory holds, UCX is slower, in either program.
- At the end of a window both ends must run; in a stream the receiver goes on while the sender waits for a CPU. On CPUs
  shared with other work, windows of 64 messages of 1 MiB are therefore slower than a stream. On undisturbed CPUs they
  are not: the smallest time per message was 69, 71 and 69 us with windows of 8, 16 and 32, and 84 us was the best mean
  of 32 messages of ucx_perftest. Large messages of UCX have windows of a quarter of all messages here.
- The server of sockperf waits in epoll_wait before every message of a TCP connection, fablint only receives.
- fi_pingpong measures round trips only; its MB/s are size / latency.
- ucx_perftest's put latency is half of a ping-pong of puts, each detected by polling the memory. It has no
  counterpart: fablint's put_latency ends when the put is confirmed, a round trip of its own.

    python benchmarks/transport_peers.py [--mpicxx mpicxx.mpich] [--prefix 'chrt -r 10'] [--only ucx]

The real-time scheduler must be the round-robin one: with `chrt -f`, the thread in which UCX connects never runs on the
CPU of a rank that polls.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from comparison.alternating import alternate
from comparison.failed_starts import FailedStart, output_of, read_from
from comparison.launching import Bench, begin
from comparison.peer_programs import IPERF3, SOCKPERF, Comparison, fi_pingpong, ucx_perftest
from comparison.peer_table import columns_of, print_installed

START_LIMIT_S = 10.0
RUN_LIMIT_S = 60.0


LATENCY = "latency --directions single --iterations {count} --warmup 1000"
STREAM = "bandwidth --directions single --buffers single --iterations {windows} --window {window} --warmup 4"


def ucx_comparisons(
    name: str, layers: str, counts: tuple[int, int, int], streams: tuple[int, int], window: int
) -> list[Comparison]:
    """`window`: of messages of 8 bytes."""
    environ = {"UCX_TLS": layers}
    return [
        Comparison(
            f"{name} latency",
            f"{LATENCY} --transport ucx",
            ucx_perftest("tag_lat"),
            (8, 1 << 10, 64 << 10),
            counts,
            environ=environ,
        ),
        Comparison(
            f"{name} bandwidth",
            f"{STREAM} --transport ucx",
            ucx_perftest("tag_bw", outstanding=64, rate=True),
            (8,),
            streams[:1],
            rate=True,
            window=window,
            environ=environ,
        ),
        Comparison(
            f"{name} bandwidth",
            f"{STREAM} --transport ucx",
            ucx_perftest("tag_bw", outstanding=64, rate=True),
            (1 << 20,),
            streams[1:],
            rate=True,
            window=streams[1] // 4,
            environ=environ,
        ),
    ]


COMPARISONS: Sequence[Comparison] = (
    Comparison(
        "tcp latency",
        f"{LATENCY} --transport tcp --device lo",
        SOCKPERF,
        (64, 1 << 10),
        (50_000, 50_000),
    ),
    Comparison(
        "tcp bandwidth",
        f"{STREAM} --transport tcp --device lo",
        IPERF3,
        (128 << 10, 1 << 20),
        (32_000, 4_000),
        rate=True,
        window=400,
    ),
    *ucx_comparisons("ucx tcp", "tcp,self", (50_000, 50_000, 10_000), (128_000, 2_000), 64),
    *ucx_comparisons("ucx shm", "posix,cma,self", (1_000_000, 500_000, 50_000), (2_000_000, 4_000), 128),
    Comparison(
        "ofi tcp latency",
        f"{LATENCY} --transport ofi --ofi-provider tcp --device lo",
        fi_pingpong("tcp"),
        (8, 1 << 10, 64 << 10),
        (50_000, 50_000, 10_000),
    ),
    Comparison(
        "ofi shm latency",
        f"{LATENCY} --transport ofi --ofi-provider shm",
        fi_pingpong("shm"),
        (8, 1 << 10, 64 << 10),
        (500_000, 300_000, 30_000),
    ),
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def wait_for_listener(port: int) -> None:
    """Return when a process listens on a port; a connection that asks would be taken for the client's."""
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            if re.search(rf":{port:04X} \S+ 0A ", Path(table).read_text()):
                return
        time.sleep(0.02)
    raise FailedStart(f"no server listens on port {port}")


@contextmanager
def running(words: Sequence[str], environ: Mapping[str, str]) -> Iterator[None]:
    server = subprocess.Popen(words, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        server.terminate()
        server.wait()


def peer_figure(bench: Bench, comparison: Comparison, size: int, count: int, cpus: Sequence[int]) -> float:
    """Start the server on the first CPU and the client on the second, and read what the client prints."""
    values = {"bytes": size, "count": count, "port": free_port(), "server": "127.0.0.1"}
    environ = {**os.environ, **comparison.environ}

    def words(text: str, cpu: int) -> list[str]:
        return ["taskset", "-c", str(cpu), *bench.prefix, comparison.peer.program, *text.format(**values).split()]

    with running(words(comparison.peer.server, cpus[0]), environ):
        wait_for_listener(values["port"])
        client = words(comparison.peer.client, cpus[1])
        text = output_of(client, environ, limit_s=RUN_LIMIT_S)
    return read_from(comparison.peer.read, text, size)


def pinned(bench: Bench, cpus: Sequence[int], environ: Mapping[str, str]) -> Bench:
    """The same with rank i on CPU i of the list, and with further variables for every rank."""
    ranks = "${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-$PMI_RANK}}"
    script = f'set -- {" ".join(map(str, cpus))} -- "$@"; eval cpu=\\$$(({ranks} + 1)); shift {len(cpus) + 1}; '
    prefix = ("env", *(f"{name}={value}" for name, value in environ.items()), "sh", "-c")
    return replace(bench, prefix=(*prefix, script + 'exec taskset -c "$cpu" "$@"', "pinned", *bench.prefix))


def compare(bench: Bench, comparison: Comparison, size: int, count: int, repetitions: int, folder: Path) -> str:
    """A line of the table."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    row = comparison.row.format(count=count, window=comparison.window, windows=count // comparison.window).split()
    engine = pinned(bench, cpus, comparison.environ)
    figures = alternate(
        {
            "ours": lambda: comparison.figure(engine.engine_seconds(folder, [*row, "--sizes", str(size)]), size),
            "theirs": lambda: peer_figure(bench, comparison, size, count, cpus),
        },
        repetitions,
    )
    return f"{comparison.name:<18} {comparison.peer.program:<13} {size:>8} {columns_of(figures, comparison.unit)}"


def main() -> None:
    arguments, bench = begin(__doc__.splitlines()[0])
    print(f"{'transport':<18} {'program':<13} {'bytes':>8} {'fablint':>11} {'program':>11} unit  ratio [95 %]")
    with tempfile.TemporaryDirectory() as folder:

        def lines(comparison: Comparison) -> Iterator[str]:
            for size, count in zip(comparison.sizes, comparison.counts, strict=True):
                yield compare(bench, comparison, size, count, arguments.repetitions, Path(folder))

        print_installed(COMPARISONS, arguments.only, lambda one: lines(one) if shutil.which(one.program) else None)
    print(f"load averages at the end: {', '.join(f'{load:.1f}' for load in os.getloadavg())}")


if __name__ == "__main__":
    main()
