"""The registry of benchmarks, engine/registry/benchmarks.inc: the row that measures what a named program measures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fablint.errors import InternalError, UsageError
from fablint.model.registry import KERNELS
from fablint.model.registry.engine_tables import read_table
from fablint.text.suggestions import nearest

KERNEL_FAMILY = "fablint"


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of another program as one row. `row` is a line of a plan."""

    name: str
    family: str  # the program, or the set of programs, that it comes from
    row: str
    what: str  # half a sentence


def read_benchmarks(text: str, source: str) -> dict[str, Benchmark]:
    """Read the table engine/registry/benchmarks.inc.

    Parameters
    ----------
    text
        Content of the table.
    source
        Its name, for messages.

    Returns
    -------
    dict
        The benchmarks by name, in the order of the table.

    Raises
    ------
    InternalError
        A line is malformed, or a name occurs twice: the table comes with fablint.
    """
    benchmarks: dict[str, Benchmark] = {}
    for entry in read_table(text, "BENCHMARK", "name family row what", source):
        benchmark = Benchmark(**entry.fields)
        if not all(entry.fields.values()) or benchmark.name in benchmarks:
            raise InternalError(
                f"{source}:{entry.line}: benchmark '{benchmark.name}' occurs twice or has an empty field",
                "reinstall fablint",
            )
        benchmarks[benchmark.name] = benchmark
    return benchmarks


# Those that are more than one row: composed of benchmarks of the registry by plan/rows/bench_rows.py.
COMPOSED = (
    Benchmark(
        "net_sanitizer",
        "net_sanitizer",
        "netsan_put, then netsan_get; without servers netsan_alltoall",
        "servers and clients in both directions, or all clients with each other",
    ),
    Benchmark(
        "congestion",
        "GPCNeT",
        "congestion_latency, then congestion_bandwidth",
        "what aggressors do to their neighbours",
    ),
)


def list_benchmarks(registry: Mapping[str, Benchmark]) -> list[Benchmark]:
    """All that `fablint bench` measures by name, family by family: the kernels first, those of several rows last."""
    kernels = [Benchmark(name, KERNEL_FAMILY, name, kernel.description) for name, kernel in KERNELS.items()]
    benchmarks = [*kernels, *registry.values(), *COMPOSED]
    families = list(dict.fromkeys(one.family for one in benchmarks))
    return sorted(benchmarks, key=lambda one: families.index(one.family))


# Letters in a name that is not a benchmark -> what it may mean. The first that occur count.
_MEANINGS = {
    "msg_rate message_rate msgrate mr": "osu_mbw_mr",
    "bidir bibw biband duplex": "bibandwidth or osu_bibw",
    "incast fan_in": "osu_bw_fan_in",
    "congest noise interfer": "congestion",
    "bisec": "linktest_bisection or bisec_bw",
    "reducescatter reduce_sc": "osu_reduce_scatter or reduce_scatter_perf",
    "allreduce all_reduce": "allreduce or osu_allreduce",
    "allgather all_gather": "allgather or osu_allgather",
    "alltoall all2all all_to_all a2a": "alltoall or osu_alltoall",
    "broadcast bcast": "bcast or osu_bcast",
    "barrier sync": "barrier or osu_barrier",
    "gather": "gather or osu_gather",
    "scatter": "scatter or osu_scatter",
    "reduc": "reduce or osu_reduce",
    "halo neighbo stencil sendrecv": "exchange",
    "atomic fetch": "fop or cas",
    "compare swap": "cas",
    "accumul": "accumulate",
    "throughput": "bandwidth or osu_bw",
    "write put one_sided onesided rma": "put_bandwidth or put_latency",
    "read get": "get_bandwidth or get_latency",
    "init start hello": "osu_init or osu_hello",
    "thread": "osu_latency_mt",
    "gpu device memcpy pcie": "gpu_loopback",
    "rtt ping lat delay": "latency or osu_latency",
    "bandw bw stream speed rate": "bandwidth or osu_bw",
    "p2p point pair": "latency or bandwidth",
}
_SIMILARITY = 0.75  # of the letters of two names: one of them is misspelled
_ALL = "fablint bench --list shows all"
# Programs of OSU and nccl-tests that have no kernel, by their names.
_WITHOUT_KERNEL = {
    r"osu_i?neighbor_\w+": "collectives of neighbours",
    r"(gather|hypercube|reduce|scatter|sendrecv|alltoallv)_perf": "this program of nccl-tests",
    r"osu_(all|bcast|barrier|gather|scatter|reduce)\w*_persistent": "persistent collectives",
}


def _suggestion(name: str, names_of_benchmarks: Iterable[str]) -> str:
    """Return what a name that does not exist may mean: the name that it misspells, else what its letters say."""
    if absent := next((what for names, what in _WITHOUT_KERNEL.items() if re.fullmatch(names, name)), ""):
        return f"fablint does not measure {absent}; {_ALL}"
    letters = name.lower().replace("-", "_")
    is_word = any(letters in words.split() for words in _MEANINGS)
    if not is_word and (close := nearest(name, names_of_benchmarks, _SIMILARITY)):
        return f"did you mean {close}"
    meanings = (meant for words, meant in _MEANINGS.items() if any(word in letters for word in words.split()))
    return f"{meant} may be what you mean; {_ALL}" if (meant := next(meanings, "")) else _ALL


def find_benchmark(name: str, registry: Mapping[str, Benchmark]) -> Benchmark:
    """The benchmark of that name; OSU's may be named without `osu_` where no kernel is called so.

    Raises
    ------
    UsageError
        There is none.
    """
    benchmarks = {benchmark.name: benchmark for benchmark in list_benchmarks(registry)}
    result = benchmarks.get(name) or benchmarks.get(f"osu_{name}")
    if result is None:
        raise UsageError(f"there is no benchmark '{name}'", _suggestion(name, benchmarks))
    return result
