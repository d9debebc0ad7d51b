"""Transports of fablint over RDMA beside perftest and the programs of the libraries, started by turns.

All run in the virtual machine of the test bed rdmavm, between two nodes with Soft-RoCE devices. The processor is
emulated where KVM does not run the machine: the times are no times of RDMA, their ratios compare what the programs
do around the same device. A ratio above 1 is a longer latency or a higher bandwidth of fablint's.

- The latencies of perftest are medians of single messages, and so are fablint's beside them. Those of ucx_perftest and
  fi_pingpong are means, most of which is a few waits for a CPU or a timer, of 50 ms and more.
- fi_pingpong has no messages before those that it measures, and the first message over ofi_rxm connects the two ends,
  which takes as long as hundreds of messages. It therefore sends many.
- A window of fablint's is all messages of a bandwidth, as perftest has it: an end that has to wait for a CPU at the
  start and at the end of each window of a few would be slower. perftest waits as long as fablint for an
  acknowledgement before it sends again (-u).
- A bandwidth takes about 8 s, without a warm-up, as in perftest. Beside other work, Linux stops a real-time process for
  50 ms in each second, unless the process has waited in that second. The virtual machine is busy while the engine
  starts, and idle while perftest waits for its other end: of streams of 0.8 s only those of fablint were stopped, and
  had 5 to 10 % less bandwidth.
- A start of ib_read_lat or ib_atomic_lat, or of the kernels beside them, is of one of two kinds, 38 us or 100 us and
  more for each message: the kernel thread of the device has a CPU of its own, or stops the process that polls.
- ib_write_lat has no counterpart: it is half of a ping-pong of writes, each detected by polling the memory. fablint's
  put_latency ends when the other end has acknowledged the write.

    python benchmarks/rdma_peers.py [--only ib_send] [--repetitions 15]

`chrt -r 10 python ...` on a machine shared with other work.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from comparison.alternating import turns
from comparison.peer_programs import Comparison, fi_pingpong, perftest, ucx_perftest
from comparison.peer_table import columns_of

from fablint.measure import build_engine
from fablint.measure.progress import NoProgress
from fablint.store import read_run
from fablint.system import System

BED = Path(__file__).resolve().parents[2] / "shared" / "rdmavm" / "rdmavm"
CANNOT_RUN = 77
SERVER, CLIENT = "10.77.0.2", "10.77.0.1"
START_LIMIT_S = 60

ONE = "--directions single --iterations {count} --batch 1 --warmup 10"
WINDOW = "--directions single --buffers single --iterations {windows} --window {window} --batch 1 --warmup 0"
STREAM = 10000  # messages of a bandwidth: one window
COMPARISONS: Sequence[Comparison] = (
    Comparison("verbs latency", f"latency --transport verbs {ONE}", perftest("ib_send_lat"), (8, 4096), (3000, 2000)),
    Comparison("verbs get", f"get_latency --transport verbs {ONE}", perftest("ib_read_lat"), (8,), (8000,)),
    Comparison(
        "verbs fop", f"fop --transport verbs {ONE}", perftest("ib_atomic_lat", "-A FETCH_AND_ADD"), (8,), (8000,)
    ),
    *(
        Comparison(
            f"verbs {kernel}",
            f"{kernel} --transport verbs {WINDOW}",
            perftest(program),
            (65536,),
            (STREAM,),
            rate=True,
            window=STREAM,
        )
        for kernel, program in (
            ("bandwidth", "ib_send_bw"),
            ("put_bandwidth", "ib_write_bw"),
            ("get_bandwidth", "ib_read_bw"),
        )
    ),
    Comparison(
        "ucx rc latency",
        f"latency --transport ucx {ONE}",
        ucx_perftest("tag_lat"),
        (8, 4096),
        (3000, 2000),
        environ={"UCX_TLS": "rc,self"},
    ),
    Comparison(
        "ofi verbs latency",
        f"latency --transport ofi --ofi-provider 'verbs;ofi_rxm' {ONE}",
        fi_pingpong("verbs;ofi_rxm"),
        (8,),
        (3000,),
    ),
)

LIBRARY = """\
cd {folder}
export FABLINT_TOKEN={token}
listens() {{ on node1 cat /proc/net/tcp /proc/net/tcp6 | grep -q ":$1 [0-9A-F:]* 0A "; }}
"""


def words_of(comparison: Comparison, text: str, values: dict[str, object]) -> list[str]:
    environ = [f"{name}={value}" for name, value in comparison.environ.items()]
    return ["env", *environ, "timeout", str(START_LIMIT_S), *shlex.split(text.format(**values))]


def start_lines(comparison: Comparison, program: str, number: int, size: int, count: int) -> str:
    """The lines of the script that start both ends of `ours` or `theirs` and wait for them."""
    port = 20000 + number
    values = {"bytes": size, "count": count, "port": port, "server": SERVER}
    if program == "ours":
        row = (
            comparison.row.format(count=count, window=comparison.window, windows=count // comparison.window)
            + f" --sizes {size}"
        )
        engine = f"./fablint-engine --rendezvous {CLIENT}:{port} --ranks 2"
        ends, ready = (f"{engine} --rank 1", f"{engine} --rank 0 -q -o {number}.run {row}"), ""
    else:
        ends = tuple(
            f"{shlex.quote(comparison.program)} {words}" for words in (comparison.peer.server, comparison.peer.client)
        )
        ready = f"for n in $(seq 200); do listens {port:04X} && break; sleep 0.05; done\n"
    server, client = (shlex.join(words_of(comparison, text, values)) for text in ends)
    return f"on node1 {server} >{number}.server 2>&1 &\n{ready}{client} >{number}.out 2>&1\nwait\n"


def figure(comparison: Comparison, program: str, number: int, size: int, folder: Path) -> float | None:
    """What a start measured; None if it failed, as perftest does where the clock of the processor is disturbed."""
    try:
        if program == "theirs":
            return comparison.peer.read((folder / f"{number}.out").read_text(), size)
        row = read_run(folder / f"{number}.run").rows[-1]
        return comparison.figure(float(row.arrays[f"time_{comparison.peer.statistic}"][0, 0, 0]), size)
    except (IndexError, OSError, ValueError):
        return None


def compare(comparison: Comparison, size: int, count: int, repetitions: int, engine: Path) -> str:
    """A line of the table: one boot of the virtual machine."""
    order = list(turns(("ours", "theirs"), repetitions))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(engine, folder / "fablint-engine")
        starts = (start_lines(comparison, program, number, size, count) for number, program in enumerate(order))
        library = LIBRARY.format(folder=shlex.quote(name), token=os.urandom(16).hex())
        (folder / "script").write_text(library + "".join(starts))
        limit = str(len(order) * 2 * START_LIMIT_S)
        boot = [BED, "run", "--timeout", limit, "--share", name, "--", "bash", folder / "script"]
        done = subprocess.run(boot, capture_output=True, text=True, check=False)
        if done.returncode == CANNOT_RUN:
            raise SystemExit(done.stderr.strip().splitlines()[-1])
        figures: dict[str, list[float]] = {"ours": [], "theirs": []}
        for number, program in enumerate(order):
            value = figure(comparison, program, number, size, folder)
            if value is not None:
                figures[program].append(value)
    failed = len(order) - sum(map(len, figures.values()))
    columns = columns_of(figures, comparison.unit) if all(figures.values()) else "no figure"
    return f"{comparison.name:<19} {comparison.program:<13} {size:>6} {columns}" + (
        f" {failed} starts failed" if failed else ""
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=15, help="starts of every program [15]")
    parser.add_argument("--only", default="", help="comparisons whose name or program contains this")
    arguments = parser.parse_args()
    if not BED.exists():
        raise SystemExit("the test bed rdmavm is not beside the checkout: nothing is measured")
    engine = build_engine(System(), NoProgress(), with_mpi=False).path
    print(f"{arguments.repetitions} starts of each, in a virtual machine")
    print(f"{'transport':<19} {'program':<13} {'bytes':>6} {'fablint':>11} {'program':>11} unit  ratio [95 %]")
    for comparison in COMPARISONS:
        if arguments.only in comparison.name or arguments.only in comparison.program:
            for size, count in zip(comparison.sizes, comparison.counts, strict=True):
                print(compare(comparison, size, count, arguments.repetitions, engine), flush=True)
    print(f"load averages at the end: {', '.join(f'{load:.1f}' for load in os.getloadavg())}")


if __name__ == "__main__":
    main()
