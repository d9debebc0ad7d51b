"""Benchmarks of fablint beside the original programs, started by turns with the same launcher line.

Measured are the programs that are installed: those of OSU below `$OSU_HOME` or on the PATH, IMB-MPI1, mpiGraph, and
NPmpi of NetPIPE. They must be built for the MPI in use. A ratio above 1 is a longer latency or a higher bandwidth of
fablint's. `step` is the resolution of what the program prints: OSU's two decimals of a latency of 0.36 us are 3 %.

    OSU_HOME=... python benchmarks/peers.py [--mpicxx mpicxx.mpich] [--prefix 'chrt -f 10'] [--only osu_bw]
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from comparison.alternating import alternate
from comparison.failed_starts import read_from
from comparison.launching import Bench, begin
from comparison.peer_table import columns_of, print_installed


@dataclass(frozen=True)
class Printed:
    """A figure as a program prints it, in us or MB/s of 10^6 bytes, and the step to the next that it could print."""

    value: float
    step: float


@dataclass(frozen=True)
class Comparison:
    """A row of the engine and the program that measures the same. `{bytes}` in its words is the message size."""

    name: str
    row: str
    program: str
    words: str
    read: Callable[[str, int], Printed]
    sizes: tuple[int, ...] = (8, 1 << 10, 1 << 20)
    ranks: int = 2
    rate: bool = False
    both: bool = False  # the figure counts both directions

    @property
    def unit(self) -> str:
        return "MB/s" if self.rate else "us"

    def figure(self, seconds: float, size: int) -> float:
        """The engine's seconds per message in the program's unit."""
        pairs, directions = self.ranks // 2, 2 if self.both else 1
        return pairs * directions * size / seconds / 1e6 if self.rate else seconds * 1e6


def decimals(text: str) -> float:
    """The step of a printed number: 0.01 for `0.36`."""
    return 10.0 ** -len(text.partition(".")[2])


def read_osu(text: str, size: int) -> Printed:
    """The second column of the line of that size; of osu_cas_latency and osu_fop_latency of the only line."""
    lines = [line.split() for line in text.splitlines() if re.match(r"\d+\s", line)]
    value = next((words[1] for words in lines if int(words[0]) == size), lines[0][1] if len(lines) == 1 else "")
    return Printed(float(value), decimals(value))


def read_imb(column: int) -> Callable[[str, int], Printed]:
    """A column of the line of a size, counted from 0."""

    def read(text: str, size: int) -> Printed:
        lines = (line.split() for line in text.splitlines() if re.match(r"\s+\d+\s", line))
        value = next(words[column] for words in lines if int(words[0]) == size)
        return Printed(float(value), decimals(value))

    return read


def read_netpipe(text: str, size: int) -> Printed:
    """Lines such as `  3:       8 bytes  12345 times -->    340.62 Mbps in       0.18 usec`."""
    words = re.findall(r":\s+(\d+) bytes.*?in\s+([\d.]+) usec", text)
    value = next(time for length, time in words if int(length) == size)
    return Printed(float(value), decimals(value))


def read_mpigraph(text: str, size: int) -> Printed:
    """The mean of the send figures, which are in MiB/s, from the line `Send avg`."""
    value = re.findall(r"^Send avg\s+([\d.]+)", text, re.MULTILINE)[-1]
    unit = 2**20 / 1e6
    return Printed(unit * float(value), unit * decimals(value))


_OSU_RATES = (
    "osu_bw",
    "osu_bibw",
    "osu_bw_persistent",
    "osu_bibw_persistent",
    "osu_put_bw",
    "osu_put_bibw",
    "osu_get_bw",
)
_OSU_BOTH = ("osu_bibw", "osu_bibw_persistent", "osu_put_bibw")
_OSU_LATENCIES = (
    "osu_latency",
    "osu_latency_persistent",
    "osu_latency_mt",
    "osu_put_latency",
    "osu_get_latency",
    "osu_acc_latency",
    "osu_get_acc_latency",
)

_OSU_COLLECTIVES = (
    *("osu_alltoall", "osu_allgather", "osu_bcast", "osu_gather", "osu_scatter"),
    *("osu_allgatherv", "osu_alltoallv", "osu_alltoallw", "osu_gatherv", "osu_scatterv"),
)
_OSU_SUMS = (
    "osu_allreduce",
    "osu_reduce",
    "osu_reduce_scatter",
    "osu_reduce_scatter_block",
)  # of floats here, of bytes by OSU's default


_OSU_OVERLAPPED = (
    *("osu_ialltoall", "osu_iallgather", "osu_ibcast", "osu_igather", "osu_iscatter"),
    *("osu_iallgatherv", "osu_ialltoallv", "osu_ialltoallw", "osu_igatherv", "osu_iscatterv"),
)
_OSU_OVERLAPPED_SUMS = ("osu_iallreduce", "osu_ireduce", "osu_ireduce_scatter", "osu_ireduce_scatter_block")


def read_osu_pure(text: str, size: int) -> Printed:
    """The time without computation: after size, overall and computation."""
    value = next(line.split()[3] for line in text.splitlines() if re.match(rf"{size}\s", line))
    return Printed(float(value), decimals(value))


def osu(name: str, *, rate: bool = False, **more: object) -> Comparison:
    return Comparison(name, name, name, "-m {bytes}:{bytes}", read_osu, rate=rate, both=name in _OSU_BOTH, **more)


COMPARISONS: Sequence[Comparison] = (
    *(osu(name) for name in _OSU_LATENCIES),
    *(osu(name, rate=True) for name in _OSU_RATES),
    *(Comparison(name, name, name, "", read_osu, sizes=(8,)) for name in ("osu_cas_latency", "osu_fop_latency")),
    osu("osu_mbw_mr", rate=True),
    osu("osu_multi_lat"),
    *(osu(name) for name in _OSU_COLLECTIVES),
    *(Comparison(name, name, name, "-m {bytes}:{bytes}", read_osu_pure) for name in _OSU_OVERLAPPED),
    *(Comparison(name, name, name, "-T mpi_float -m {bytes}:{bytes}", read_osu_pure) for name in _OSU_OVERLAPPED_SUMS),
    *(Comparison(name, name, name, "-T mpi_float -m {bytes}:{bytes}", read_osu) for name in _OSU_SUMS),
    Comparison(
        "IMB PingPong",
        "latency --directions single --iterations {count} --warmup {warmup}",
        "IMB-MPI1",
        "PingPong -msglen {lengths} -iter {count} -iter_policy off",
        read_imb(2),
    ),
    Comparison(
        "IMB Sendrecv",
        "exchange --iterations {count} --warmup {warmup}",
        "IMB-MPI1",
        "Sendrecv -msglen {lengths} -iter {count} -iter_policy off",
        read_imb(4),
    ),
    Comparison(
        "IMB Uniband",
        "bandwidth --directions single --buffers single --window 64 --iterations {windows} --warmup 10",
        "IMB-MPI1",
        "Uniband -msglen {lengths} -iter {windows} -iter_policy off -window_size 64",
        read_imb(2),
        rate=True,
    ),
    Comparison(
        "NetPIPE",
        "latency --directions single --iterations {count} --warmup {warmup}",
        "NetPIPE",
        "-l {bytes} -u {bytes} -n {count} -p 0 -o /dev/null",
        read_netpipe,
        sizes=(8, 1 << 10),  # it sends what it received, out of the same buffer, which large messages show
    ),
    Comparison(
        "mpiGraph",
        "bibandwidth --window 64 --iterations {windows} --warmup 10 --buffers distinct",
        "mpiGraph",
        "{bytes} {windows} 64",
        read_mpigraph,
        sizes=(1 << 20,),
        rate=True,
    ),
)


def find_program(name: str, environ: Mapping[str, str], mpicxx: Path) -> Path | None:
    """Where a program is: below $OSU_HOME, else on the PATH. NetPIPE is called after the MPI in Debian."""
    names = {"NetPIPE": ["NPmpich2" if "mpich" in mpicxx.resolve().name else "NPopenmpi", "NPmpi"]}.get(name, [name])
    if name.startswith("osu_") and (home := environ.get("OSU_HOME")):
        program = next(
            (path for path in sorted(Path(home).rglob(name)) if os.access(path, os.X_OK) and path.is_file()), None
        )
        return program
    return next((Path(path) for one in names if (path := shutil.which(one))), None)


def compare(bench: Bench, comparison: Comparison, program: Path, size: int, repetitions: int, folder: Path) -> str:
    """A line of the table."""
    count = 20_000 if size < 64 << 10 else 400
    (lengths := folder / "lengths").write_text(f"{size}\n")
    counts = {"count": count, "warmup": max(count // 10, 10), "windows": 2000 if size < 64 << 10 else 40}
    values = {"bytes": size, "lengths": lengths, **counts}
    steps: list[float] = []

    def original() -> float:
        text = bench.run(comparison.ranks, [str(program), *comparison.words.format(**values).split()], both=True)
        printed = read_from(comparison.read, text, size)
        steps.append(printed.step)
        return printed.value

    row = [*comparison.row.format(**values).split(), "--sizes", str(size)]
    figures = alternate(
        {
            "ours": lambda: comparison.figure(bench.engine_seconds(folder, row, comparison.ranks), size),
            "theirs": original,
        },
        repetitions,
    )
    step = max(steps) / median(figures["theirs"])
    return f"{comparison.name:<22} {size:>8} {columns_of(figures, comparison.unit)}   step {step:.1%}"


def main() -> None:
    arguments, bench = begin(__doc__.splitlines()[0])
    print(f"{'benchmark':<22} {'bytes':>8} {'fablint':>11} {'original':>11} unit  ratio [95 %]")
    with tempfile.TemporaryDirectory() as folder:

        def lines(comparison: Comparison) -> Iterator[str] | None:
            program = find_program(comparison.program, os.environ, bench.mpicxx)
            if program is None:
                return None
            return (
                compare(bench, comparison, program, size, arguments.repetitions, Path(folder))
                for size in comparison.sizes
            )

        print_installed(COMPARISONS, arguments.only, lines)


if __name__ == "__main__":
    main()
