"""The registry of benchmarks, engine/registry/benchmarks.inc: the row that measures what a named program measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fablint.errors import InternalError, UsageError
from fablint.plan.kernels import KERNELS
from fablint.plan.values import did_you_mean

KERNEL_FAMILY = "fablint"


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of another program as one row. `row` is a line of a plan."""

    name: str
    family: str  # the program, or the set of programs, that it comes from
    row: str
    what: str  # half a sentence


def read_benchmarks(text: str, source: str) -> dict[str, Benchmark]:
    """The benchmarks by name, in the order of the file.

    Args:
        text: the registry: a C++ raw string literal, one benchmark per line as `name | family | row | what`, lines that
            begin with `#` are comments.
        source: its name, for messages.

    Raises:
        InternalError: a line that is none, or a name twice: fablint brought the file along.
    """
    found: dict[str, Benchmark] = {}
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("#") or bare in ('R"(', ')"'):
            continue
        fields = [field.strip() for field in bare.split("|")]
        if len(fields) != 4 or not all(fields) or fields[0] in found:
            raise InternalError(f"{source}:{number}: '{bare}' is no benchmark, or one twice", "reinstall fablint")
        found[fields[0]] = Benchmark(*fields)
    return found


# Those that are more than one row: composed of benchmarks of the registry by plan/bench.py.
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
    kernels = [Benchmark(name, KERNEL_FAMILY, name, kernel.what) for name, kernel in KERNELS.items()]
    every = [*kernels, *registry.values(), *COMPOSED]
    families = list(dict.fromkeys(one.family for one in every))
    return sorted(every, key=lambda one: families.index(one.family))


def find_benchmark(name: str, registry: Mapping[str, Benchmark]) -> Benchmark:
    """The benchmark of that name; OSU's may be named without `osu_` where no kernel is called so.

    Raises:
        UsageError: there is none.
    """
    known = {benchmark.name: benchmark for benchmark in list_benchmarks(registry)}
    found = known.get(name) or known.get(f"osu_{name}")
    if found is None:
        raise UsageError(
            f"there is no benchmark '{name}'", did_you_mean(name, known, "fablint bench --list shows what there is")
        )
    return found
