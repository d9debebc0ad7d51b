"""The options of a row, docs/reference/engine.md: one table, used to read plan lines and to write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any

from fablint.errors import UsageError
from fablint.plan.rows.kernels import KERNELS, PATTERNS, Kernel
from fablint.plan.rows.values import (
    Counts,
    alternatives,
    parse_count,
    parse_counts,
    parse_fraction,
    parse_indices,
    parse_name,
    parse_natural,
    parse_naturals,
    parse_seconds,
    parse_sizes,
    parse_workers,
)

WINS = ("create", "allocate", "dynamic")
SYNCS = ("lock", "flush", "flush_local", "lock_all", "pscw", "fence")


@dataclass(frozen=True)
class RowRequest:
    """One row of a plan with its defaults filled in. Field `a_b` is option `--a-b`.

    Sizes in bytes, budget in seconds, precision as a fraction; None where the option was not given, or has no meaning
    for the kernel.
    """

    kernel: str
    name: str | None = None
    pattern: str = "pair"
    matchings: int = 8
    rounds_file: str | None = None
    rounds: str | None = None
    order: str = "parallel"
    repeats: int = 1
    seed: int = 1
    sizes: tuple[int, ...] = parse_sizes("1:4M")
    window: int | None = None
    warmup: Counts = (10, 10)
    iterations: Counts | None = None
    samples: int | None = None
    budget: float | None = None
    precision: float | None = None
    batch: int | None = None
    directions: str = "both"
    buffers: str = "distinct"
    barrier: str = "start"
    mean: str = "samples"
    workers: tuple[int, int] | None = None
    win: str | None = None
    sync: str | None = None
    servers: int = 1
    server_flight: int = 128
    victims: int | None = None
    aggressor: str = "incast"
    retest: int = 0
    transport: str = "mpi"
    memory: str = "host"
    validate: bool = False
    histogram: bool = False
    only_rounds: tuple[int, ...] | None = None

    @property
    def does(self) -> Kernel:
        return KERNELS[self.kernel]

    @property
    def directions_measured(self) -> int:
        """Measurements of a pair at one size: a mutual kernel sees both directions at once, a star has but one."""
        one_way = self.does.mutual or self.directions == "forward" or PATTERNS[self.pattern] != "pairs"
        return 1 if one_way else 2


def one_of(*choices: str) -> Callable[[str], str]:
    """A parser that takes one of a few words."""

    def parse(text: str) -> str:
        if text not in choices:
            raise UsageError(f"'{text}' is unknown", f"choose {alternatives(choices)}")
        return text

    return parse


# Option -> how its value is read. None: the option takes no value.
OPTIONS: dict[str, Callable[[str], Any] | None] = {
    "name": parse_name,
    "pattern": one_of(*PATTERNS),
    "matchings": parse_count,
    "rounds-file": str,
    "rounds": str,
    "order": one_of("parallel", "serial"),
    "repeats": parse_count,
    "seed": parse_natural,
    "sizes": parse_sizes,
    "window": parse_count,
    "warmup": parse_naturals,
    "iterations": parse_counts,
    "samples": parse_count,
    "budget": parse_seconds,
    "precision": parse_fraction,
    "batch": parse_count,
    "directions": one_of("both", "forward"),
    "buffers": one_of("distinct", "single"),
    "barrier": one_of("start", "sample"),
    "mean": one_of("samples", "loop"),
    "workers": parse_workers,
    "win": one_of(*WINS),
    "sync": one_of(*SYNCS),
    "servers": parse_count,
    "server-flight": parse_count,
    "victims": parse_count,
    "aggressor": one_of("incast", "all-to-all"),
    "retest": parse_natural,
    "transport": one_of("mpi", "null", "corrupt"),
    "memory": one_of("host"),
    "validate": None,
    "histogram": None,
    "only-rounds": parse_indices,
}
DEFAULTS: dict[str, Any] = {field.name.replace("_", "-"): field.default for field in fields(RowRequest)[1:]}
assert list(DEFAULTS) == list(OPTIONS)


def row_request(kernel: str, values: dict[str, Any]) -> RowRequest:
    """A row from what was given; the rest is the kernel's own choice."""
    does = KERNELS[kernel]
    own: dict[str, Any] = {"pattern": does.pattern, "sizes": parse_sizes(does.sizes)}
    if does.windows:
        own["win"] = "create" if kernel in ("get_accumulate", "cas") else "allocate"
    if does.uses == "one-sided":
        own["sync"] = {"put_bibandwidth": "pscw", "get_accumulate": "lock"}.get(kernel, "flush")
    if takes_workers(kernel):
        own["workers"] = (1, 2)
    return RowRequest(kernel, **{option.replace("-", "_"): value for option, value in {**own, **values}.items()})


def takes_workers(kernel: str) -> bool:
    return kernel in ("latency_mt", "latency_mp")


def given(row: RowRequest) -> Iterable[str]:
    """The options whose value is not that of a row that says nothing."""
    return [option for option in OPTIONS if getattr(row, option.replace("-", "_")) != DEFAULTS[option]]
