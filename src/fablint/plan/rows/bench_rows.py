"""The rows behind `fablint bench`: a benchmark of the registry with the user's options, or several of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fablint.errors import UsageError
from fablint.model import Plan, Slots
from fablint.plan.rows.benchmarks import COMPOSED, KERNEL_FAMILY, Benchmark, find_benchmark
from fablint.plan.rows.conflicts import meaningless
from fablint.plan.rows.grammar import overridden, parse_row, split_row, write_row
from fablint.plan.rows.kernels import KERNELS
from fablint.plan.rows.options import RowRequest
from fablint.plan.rows.plan_file import plan_row
from fablint.plan.rows.values import format_bytes, parse_sizes

WINDOWS = (1, 2, 4, 8, 16, 32, 64, 128)  # of osu_mbw_mr -V
MEMORY_LIMIT = 512 * 2**20  # bytes a rank that OSU gives a collective
_COUNT_MESSAGES = ("LinkTest", "net_sanitizer")  # families
_LINKTEST = {"both": "linktest_bidirectional", "one": "linktest_unidirectional", "turns": "linktest"}

Texts = dict[str, str | None]  # option of a row -> its value as written, None where it takes none


@dataclass(frozen=True)
class BenchRequest:
    """What `fablint bench` was asked for.

    `options` are options of the row; those named in `messages` count messages and not repetitions, of which one of a
    windowed kernel has many. `message_size` is OSU's `[MIN:]MAX`.
    """

    name: str
    ranks: int = 2
    options: Mapping[str, str | None] = field(default_factory=dict)
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

    Raises:
        UsageError: there is no such benchmark, or its row makes no sense with these options or ranks.
    """
    for option in request.options:
        if why := without_meaning(option, bench_rows(request, registry)):
            raise UsageError(f"--{option}: {why}", f"leave --{option} out")
    rows = []
    for name, kernel, texts in _rows(request, registry):
        line = write_row(kernel, {"name": name, **texts})
        row = parse_row(line.split())
        if row.pattern == "pair" and request.ranks > 2:
            raise UsageError(
                f"{name} measures 2 ranks, not {request.ranks}", "leave -n out, or see fablint bench --list"
            )
        rows.append(plan_row(line, row, request.ranks))
    return Plan(request.ranks, tuple(rows), request.slots)


def measured_as(request: BenchRequest, registry: Mapping[str, Benchmark]) -> str:
    """The kernel or benchmark of the registry whose table shows what was asked for."""
    found = find_benchmark(request.name, registry)
    return _parts(request, found)[0] if found in COMPOSED else found.name


def bench_rows(request: BenchRequest, registry: Mapping[str, Benchmark]) -> list[RowRequest]:
    """The rows that a request is made of, without its options: they decide which options have a meaning for it."""
    return [parse_row([part], registry) for part in _parts(request, find_benchmark(request.name, registry))]


def every_row(name: str, registry: Mapping[str, Benchmark]) -> list[RowRequest]:
    """The rows that a benchmark is made of, whatever the options."""
    requests = [BenchRequest(name, options={"servers": "1"}), *(BenchRequest(name, sends=sends) for sends in _LINKTEST)]
    rows = (row for request in requests for row in bench_rows(request, registry))
    return list(dict.fromkeys(rows))


def without_meaning(option: str, rows: Sequence[RowRequest]) -> str:
    """Why a row option has no meaning for any of the rows of a benchmark; empty where it has one."""
    reasons = [meaningless(option, row) for row in rows]
    return reasons[0] if all(reasons) else ""


def _parts(request: BenchRequest, found: Benchmark) -> list[str]:
    """The kernels and benchmarks of the registry that a benchmark consists of."""
    match found.name:
        case "net_sanitizer":
            return ["netsan_put", "netsan_get"] if "servers" in request.options else ["netsan_alltoall"]
        case "congestion":
            return ["congestion_latency", "congestion_bandwidth"]
        case "linktest":
            bisection = request.options.get("pattern") == "bisection" and request.sends == "both"
            return ["linktest_bisection" if bisection else _LINKTEST[request.sends]]
        case name:
            return [name]


def _rows(request: BenchRequest, registry: Mapping[str, Benchmark]) -> Iterator[tuple[str, str, Texts]]:
    """Name, kernel and options of every row."""
    found = find_benchmark(request.name, registry)
    parts = _parts(request, found)
    for part in parts:
        kernel, own = split_row([part], registry)
        if found.family == KERNEL_FAMILY and request.ranks > 2 and KERNELS[kernel].pattern == "pair":
            own["pattern"] = "pairs"
        texts = _overridden(request, kernel, own)
        if found.family == "LinkTest":
            texts = _buffers_of_linktest(request, texts)
        if found.family in _COUNT_MESSAGES:
            texts = _same_messages(request, kernel, own, texts)
        name = part if found in COMPOSED else found.name
        if request.vary_window:
            yield from ((f"{name}-window-{window}", kernel, {**texts, "window": str(window)}) for window in WINDOWS)
        else:
            yield name, kernel, texts
        if request.alltoall:
            yield _alltoall(request, texts, registry)


def _overridden(request: BenchRequest, kernel: str, own: Texts) -> Texts:
    """The options of a benchmark's row with the user's in their place, as far as they have a meaning for it."""
    row = parse_row(write_row(kernel, own).split())
    wanted = {option: text for option, text in request.options.items() if not meaningless(option, row)}
    if request.message_size is not None:
        wanted["sizes"] = osu_sizes(request.message_size, row)
    _refuse_two_ways(request)
    texts = overridden(own, wanted)
    if request.adaptive:  # ranks stop at different counts
        texts = {option: text for option, text in texts.items() if option not in ("iterations", "barrier")}
    if request.histogram:
        texts["histogram"] = None
    return texts


def _buffers_of_linktest(request: BenchRequest, texts: Texts) -> Texts:
    """LinkTest's number of buffers is that of the messages in flight: each has one. By default there is one for all."""
    own = "window" in request.options and "buffers" in texts and "buffers" not in request.options
    return {**texts, "buffers": "distinct"} if own else texts


def _same_messages(request: BenchRequest, kernel: str, own: Texts, texts: Texts) -> Texts:
    """LinkTest and net_sanitizer count messages: a row that has another window has other repetitions."""
    before, after = parse_row(write_row(kernel, own).split()), parse_row(write_row(kernel, texts).split())
    window = after.window or 1
    counts = {}
    for option, repetitions in (("iterations", before.iterations), ("warmup", before.warmup)):
        if option in request.messages:
            counts[option] = _repetitions(int(texts[option] or 0), window)
        elif option in texts and option not in request.options and repetitions is not None:
            counts[option] = _repetitions(repetitions[0] * (before.window or 1), window)
    return {**texts, **counts}


def _repetitions(messages: int, window: int) -> str:
    """Repetitions that send at least so many messages."""
    return str(-(-messages // window))


def _refuse_two_ways(request: BenchRequest) -> None:
    ways = [option for option in ("iterations", "samples") if option in request.options]
    if request.adaptive and ways:
        raise UsageError(f"--adaptive and --{ways[0]} are two ways to stop", "leave one of them out")
    if request.vary_window and "window" in request.options:
        raise UsageError("--vary-window goes through the windows by itself", "leave --window out")


def osu_sizes(text: str, row: RowRequest) -> str:
    """What OSU's `-m [MIN:]MAX` means for a row, as a list of sizes. `MIN:` goes up to the row's largest size.

    >>> [osu_sizes(text, RowRequest("latency")) for text in ("1K", "1K:", "8:64", "8,64")]
    ['1:1K', '1K:4M', '8:64', '8,64']
    """
    if "," in text:
        return text
    first, colon, last = text.partition(":")
    if not colon:
        first, last = "", first
    low = parse_sizes(row.does.sizes)[0]
    return f"{first or format_bytes(low)}:{last or format_bytes(row.sizes[-1])}"


def _alltoall(
    request: BenchRequest, texts: Mapping[str, str | None], registry: Mapping[str, Benchmark]
) -> tuple[str, str, Texts]:
    """LinkTest's all-to-all beside the pairs: messages of the same size, as far as OSU's memory limit goes."""
    kernel, own = split_row(["linktest_alltoall"], registry)
    largest = 1 << (MEMORY_LIMIT // 2 // request.ranks).bit_length() - 1  # sent, and as much received
    sizes = dict.fromkeys(min(size, largest) for size in parse_sizes(str(texts["sizes"])))
    return "linktest_alltoall", kernel, {**own, "sizes": ",".join(map(format_bytes, sizes))}
