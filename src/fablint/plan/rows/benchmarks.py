"""The registry of benchmarks, engine/registry/benchmarks.inc: the row that measures what a named program measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fablint.errors import InternalError, UsageError
from fablint.model.registry import KERNELS
from fablint.model.registry.engine_tables import read_table
from fablint.text.suggestions import did_you_mean

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
    every = [*kernels, *registry.values(), *COMPOSED]
    families = list(dict.fromkeys(one.family for one in every))
    return sorted(every, key=lambda one: families.index(one.family))


def find_benchmark(name: str, registry: Mapping[str, Benchmark]) -> Benchmark:
    """The benchmark of that name; OSU's may be named without `osu_` where no kernel is called so.

    Raises
    ------
    UsageError
        There is none.
    """
    known = {benchmark.name: benchmark for benchmark in list_benchmarks(registry)}
    found = known.get(name) or known.get(f"osu_{name}")
    if found is None:
        raise UsageError(
            f"there is no benchmark '{name}'", did_you_mean(name, known, "fablint bench --list shows what there is")
        )
    return found
