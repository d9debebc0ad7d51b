"""The rows behind `fablint bench`: a benchmark of the registry with the user's options, or several of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fablint.errors import UsageError
from fablint.model import Plan, RowSpec, Slots
from fablint.model.registry.option_values import format_bytes
from fablint.plan.rows.benchmarks import COMPOSED, KERNEL_FAMILY, Benchmark, find_benchmark
from fablint.plan.rows.plan_file import plan_row
from fablint.plan.rows.refusals import Values, why_inapplicable
from fablint.plan.rows.row_text import read_value, row_of
from fablint.plan.rows.side_by_side import blocks, media

WINDOWS = (1, 2, 4, 8, 16, 32, 64, 128)  # of osu_mbw_mr -V
MEMORY_LIMIT = 512 * 2**20  # bytes a rank that OSU gives a collective
_NCCL_PART = 16  # bytes
_COUNT_MESSAGES = ("LinkTest", "net_sanitizer")  # families
_LINKTEST = {"both": "linktest_bidirectional", "one": "linktest_unidirectional", "turns": "linktest"}


@dataclass(frozen=True)
class BenchRequest:
    """What `fablint bench` was asked for.

    `values` are those of options of the row, `transport` and `memory` as lists; those named in `messages` count
    messages and not repetitions, of which one of a windowed kernel has many. `message_size` is OSU's `[MIN:]MAX`.
    """

    name: str
    ranks: int = 2
    values: Values = field(default_factory=dict)
    messages: frozenset[str] = frozenset()
    message_size: str | None = None
    adaptive: bool = False
    vary_window: bool = False
    histogram: bool = False
    sends: str = "turns"  # LinkTest: `both` ends at once, `one` end only, in `turns`
    alltoall: bool = False
    slots: tuple[Slots, ...] = ()


def bench_plan(request: BenchRequest, registry: Mapping[str, Benchmark]) -> Plan:
    """The rows that measure what was asked for; each is named after its benchmark.

    Rows over several transports or memories are divided into blocks that alternate between them.

    Raises
    ------
    UsageError
        There is no such benchmark, or its row makes no sense with these options or ranks.
    """
    rows_of_its_own = bench_rows(request, registry)
    for option in request.values:
        if why := without_meaning(option, rows_of_its_own):
            raise UsageError(f"--{option}: {why}", f"leave --{option} out")
    _refuse_transports_without_messages(request, rows_of_its_own)
    of_media = [[*_rows(replace(request, values=values), registry)] for values in media(request.values)]
    rows = []
    for row in blocks(of_media) if len(of_media) > 1 else of_media[0]:
        if row.pattern == "pair" and request.ranks > 2:
            raise UsageError(
                f"{row.name} measures 2 ranks, not {request.ranks}", "leave -n out, or see fablint bench --list"
            )
        rows.append(plan_row(row, request.ranks))
    return Plan(request.ranks, tuple(rows), request.slots)


def measured_as(request: BenchRequest, registry: Mapping[str, Benchmark]) -> str:
    """The kernel or benchmark of the registry whose table shows what was asked for."""
    benchmark = find_benchmark(request.name, registry)
    return _parts(request, benchmark)[0] if benchmark in COMPOSED else benchmark.name


def bench_rows(request: BenchRequest, registry: Mapping[str, Benchmark]) -> list[RowSpec]:
    """The rows that a request is made of, without its options: they decide which options have a meaning for it."""
    return [row_of(part, {}, registry) for part in _parts(request, find_benchmark(request.name, registry))]


def every_row(name: str, registry: Mapping[str, Benchmark]) -> list[RowSpec]:
    """The rows that a benchmark is made of, whatever the options."""
    requests = [BenchRequest(name, values={"servers": 1}), *(BenchRequest(name, sends=sends) for sends in _LINKTEST)]
    rows = (row for request in requests for row in bench_rows(request, registry))
    return list(dict.fromkeys(rows))


def without_meaning(option: str, rows: Sequence[RowSpec]) -> str:
    """Return why a row option has no meaning for any of the rows of a benchmark; empty where it has one."""
    reasons = [why_inapplicable(option, row) for row in rows]
    return reasons[0] if all(reasons) else ""


def _parts(request: BenchRequest, benchmark: Benchmark) -> list[str]:
    """The kernels and benchmarks of the registry that a benchmark consists of."""
    match benchmark.name:
        case "net_sanitizer":
            return ["netsan_put", "netsan_get"] if "servers" in request.values else ["netsan_alltoall"]
        case "congestion":
            return ["congestion_latency", "congestion_bandwidth"]
        case "linktest":
            bisection = request.values.get("pattern") == "bisection" and request.sends == "both"
            return ["linktest_bisection" if bisection else _LINKTEST[request.sends]]
        case name:
            return [name]


def _rows(request: BenchRequest, registry: Mapping[str, Benchmark]) -> Iterator[RowSpec]:
    """The rows of a request, with their names."""
    _refuse_two_rules(request)
    benchmark = find_benchmark(request.name, registry)
    for part in _parts(request, benchmark):
        default_row = row_of(part, {}, registry)
        row = replace(
            _with_options(request, part, default_row, registry), name=part if benchmark in COMPOSED else benchmark.name
        )
        if benchmark.family == KERNEL_FAMILY and request.ranks > 2 and row.pattern == "pair":
            row = replace(row, pattern="pairs")
        if benchmark.family == "LinkTest":
            row = _buffers_of_linktest(request, row)
        if benchmark.family == "nccl-tests":
            row = _one_batch(request, _parts_of_ranks(request, row))
        if benchmark.family in _COUNT_MESSAGES:
            row = _same_messages(request, default_row, row)
        if request.vary_window:
            yield from (replace(row, name=f"{row.name}-window-{window}", window=window) for window in WINDOWS)
        else:
            yield row
        if benchmark.family == "nccl-tests" and "in-place" in row.kernel_info.options and not row.in_place:
            yield replace(row, name=f"{row.name}-in-place", in_place=True)
        if row.kernel_info.overlaps:
            yield replace(row, name=f"{row.name}-overall", compute="during")
            yield replace(row, name=f"{row.name}-computation", compute="alone", validate=False)
        if request.alltoall:
            yield _alltoall(request, row, registry)


def _with_options(request: BenchRequest, part: str, default_row: RowSpec, registry: Mapping[str, Benchmark]) -> RowSpec:
    """A benchmark's row with the user's options in the place of its own, as far as they apply to it."""
    values = {option: value for option, value in request.values.items() if not why_inapplicable(option, default_row)}
    if request.message_size is not None:
        values["sizes"] = read_value("sizes", osu_sizes(request.message_size, default_row))
    row = row_of(part, values, registry)
    if request.adaptive:  # ranks stop at different counts
        row = replace(row, iterations=None, barrier="start")
    return replace(row, histogram=row.histogram or request.histogram)


def _buffers_of_linktest(request: BenchRequest, row: RowSpec) -> RowSpec:
    """LinkTest's number of buffers is that of the messages in flight: each has one. By default there is one for all."""
    is_distinct = "window" in request.values and "buffers" not in request.values and row.kernel_info.is_windowed
    return replace(row, buffers="distinct") if is_distinct else row


def _parts_of_ranks(request: BenchRequest, row: RowSpec) -> RowSpec:
    """nccl-tests counts the bytes of all ranks together, and gives each a multiple of 16 bytes."""
    if not row.kernel_info.is_of_parts:
        return row
    parts = (size // request.ranks // _NCCL_PART * _NCCL_PART for size in row.sizes)
    if not (sizes := tuple(dict.fromkeys(part for part in parts if part))):
        least = f"{_NCCL_PART * request.ranks} bytes, {_NCCL_PART} for each rank"
        raise UsageError(f"{row.kernel} of {request.ranks} ranks needs at least {least}", "choose larger --sizes")
    return replace(row, sizes=sizes)


def _one_batch(request: BenchRequest, row: RowSpec) -> RowSpec:
    """nccl-tests times all its calls together: one batch, unless results are checked or sizes have other counts."""
    count, large = row.iterations or (0, 0)
    is_one = "iterations" in request.values and (row.batch or 1) > 1 and count == large
    return replace(row, batch=count) if is_one else row


def _same_messages(request: BenchRequest, default_row: RowSpec, row: RowSpec) -> RowSpec:
    """LinkTest and net_sanitizer count messages: a row with another window has other repetitions."""
    counts: dict[str, Any] = {}
    for option in ("iterations", "warmup"):
        now, before = getattr(row, option), getattr(default_row, option)
        counts_messages = option in request.messages
        if now is not None and (counts_messages or option not in request.values):
            messages = now[0] if counts_messages else before[0] * (default_row.window or 1)
            counts[option] = (-(-messages // (row.window or 1)),) * 2  # at least so many messages
    return replace(row, **counts)


def _refuse_two_rules(request: BenchRequest) -> None:
    rules = [option for option in ("iterations", "samples") if option in request.values]
    if request.adaptive and rules:
        raise UsageError(f"--adaptive excludes --{rules[0]}", "give one rule for when to stop")
    if request.vary_window and "window" in request.values:
        raise UsageError("--vary-window goes through the windows by itself", "leave --window out")


def _refuse_transports_without_messages(request: BenchRequest, rows: Sequence[RowSpec]) -> None:
    transports = request.values.get("transport", ())
    if len(transports) > 1 and not any(row.kernel_info.sends_messages for row in rows):
        raise UsageError(
            f"{request.name} sends no message: --transport {','.join(transports)} compares nothing",
            "leave --transport out",
        )


def osu_sizes(text: str, row: RowSpec) -> str:
    """Return what OSU's `-m [MIN:]MAX` means for a row, as a list of sizes. `MIN:` goes up to the row's largest size.

    >>> [osu_sizes(text, RowSpec("latency")) for text in ("1K", "1K:", "8:64", "8,64")]
    ['1:1K', '1K:4M', '8:64', '8,64']
    """
    if "," in text:
        return text
    first, colon, last = text.partition(":")
    if not colon:
        first, last = "", first
    low = row.kernel_info.default_sizes[0]
    return f"{first or format_bytes(low)}:{last or format_bytes(row.sizes[-1])}"


def _alltoall(request: BenchRequest, row: RowSpec, registry: Mapping[str, Benchmark]) -> RowSpec:
    """LinkTest's all-to-all beside the pairs: messages of the same size, as far as OSU's memory limit goes."""
    largest = 1 << (MEMORY_LIMIT // 2 // request.ranks).bit_length() - 1  # sent, and as much received
    sizes = tuple(dict.fromkeys(min(size, largest) for size in row.sizes))
    carrier = {name: value for name, value in request.values.items() if name in ("transport", "memory")}
    return replace(row_of("linktest_alltoall", carrier, registry), name="linktest_alltoall", sizes=sizes)
