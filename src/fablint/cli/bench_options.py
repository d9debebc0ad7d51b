"""Options of `fablint bench`, and the benchmarks to which each of them applies.

They have the spelling of the programs from which the benchmarks come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.options import with_options
from fablint.cli.param_types import DataType, Duration, Percentiles, RowOption, Workers
from fablint.model.registry.linktest_modes import LINKTEST_MODES

if TYPE_CHECKING:
    from fablint.model import Medium, RowSpec
    from fablint.plan import Benchmark

# Returns why an option does not apply to a benchmark that is made of these rows; empty where it applies.
Reason = Callable[["Benchmark", "Sequence[RowSpec]"], str]


@dataclass(frozen=True)
class Setting:
    """An option of `bench`.

    `row` is the option of the row that it sets, to what `row_value` makes of the user's value. With `messages` the user
    counts messages and the row counts repetitions.
    """

    spellings: tuple[str, ...]
    help: str
    row: str = ""
    row_value: Callable[[Any], Any] = lambda value: value
    messages: bool = False
    why_not: Reason | None = None
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def spelling(self) -> str:
        """The long spelling."""
        return next(spelling for spelling in self.spellings if spelling.startswith("--"))

    @property
    def parameter(self) -> str:
        """Name of the option as an argument of the verb."""
        return self.spelling.removeprefix("--").replace("-", "_")

    def why_refused(self, benchmark: Benchmark, rows: Sequence[RowSpec]) -> str:
        """Return why the option does not apply to a benchmark; empty where it applies."""
        from fablint.plan import without_meaning

        if benchmark.name in ONLY_START and self.parameter not in _OF_STARTS:
            return "it only starts the ranks"
        why = self.why_not(benchmark, rows) if self.why_not else ""
        return why or (without_meaning(self.row, rows) if self.row else "")

    def decorate(self, verb: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function of a verb with the option added, as a decorator of click does."""
        return click.option(*self.spellings, self.parameter, help=self.help, **self.attributes)(verb)


def switch(spellings: str, words: str, row: str = "", text: str = "", why_not: Reason | None = None) -> Setting:
    """Return an option without a value; a row gets `text`, or True."""
    attributes = {"is_flag": True}
    return Setting((*spellings.split(),), words, row, lambda _: text or True, why_not=why_not, attributes=attributes)


def value(spellings: str, form: str, words: str, row: str = "", **more: Any) -> Setting:
    """Return an option with a value. `form` names the value, or lists the choices with `|` between them."""
    own = {key: more.pop(key) for key in ("row_value", "why_not") if key in more}
    if "|" in form:
        more |= {"type": click.Choice(form.split("|"))}
    else:
        more |= {"metavar": form, "type": more.get("type") or (RowOption(row) if row else None)}
    return Setting((*spellings.split(),), words, row, attributes=more, **own)


def count(spellings: str, words: str, row: str, least: int, why_not: Reason) -> Setting:
    """Return an option that counts messages; a row counts repetitions of small and of large messages."""
    attributes = {"metavar": "N", "type": click.IntRange(least)}
    return Setting(
        (*spellings.split(),), words, row, lambda number: (number, number), True, why_not=why_not, attributes=attributes
    )


def of(*families: str) -> Reason:
    """Return the rule that an option is for the benchmarks of these programs (`OSU`, `LinkTest`) only.

    The rule takes a benchmark and its rows, and returns why the option does not apply, or ''.
    """
    return lambda benchmark, _: "" if benchmark.family in families else f"it is for {_and(families)}"


def named(*names: str) -> Reason:
    """Return the rule that an option is for these benchmarks only: a function like that of `of`."""
    return lambda benchmark, _: "" if benchmark.name in names else f"it is for {_and(names)}"


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def both(first: Reason, second: Reason) -> Reason:
    """Restrict an option to the benchmarks that meet both conditions."""
    return lambda benchmark, rows: first(benchmark, rows) or second(benchmark, rows)


def not_the_world(benchmark: Benchmark, rows: Sequence[RowSpec]) -> str:
    """Restrict an option to rows in which ranks have partners."""
    return "" if any(row.pattern != "world" for row in rows) else f"in {benchmark.name} all ranks communicate at once"


def percentiles_shown(benchmark: Benchmark, _: Sequence[RowSpec]) -> str:
    """Return why a benchmark has no columns of percentiles; '' if it has them."""
    return "" if benchmark.family in ("fablint", "OSU") else f"the table of {benchmark.name} has none"


def counted(benchmark: Benchmark, rows: Sequence[RowSpec]) -> str:
    """Restrict an option to rows that stop after a number of repetitions."""
    is_counted = any(row.iterations for row in rows)
    return "" if is_counted else f"{benchmark.name} has no fixed counts and stops when the median is stable"


def paired(benchmark: Benchmark, rows: Sequence[RowSpec]) -> str:
    """Restrict an option to rows of the pairs i and i + n/2, and to kernels: these are so with more than two ranks."""
    patterns = {row.pattern for row in rows}
    is_paired = "pairs" in patterns or (benchmark.family == "fablint" and "pair" in patterns)
    return "" if is_paired else f"{benchmark.name} does not pair rank i with i + n/2"


def of_bytes(benchmark: Benchmark, rows: Sequence[RowSpec]) -> str:
    """Restrict an option to benchmarks of OSU whose messages are plain bytes."""
    numbers = next((row.kernel_info.datatype for row in rows if row.kernel_info.datatype != "MPI_CHAR"), "")
    return of("OSU")(benchmark, rows) or (f"its numbers are {numbers}" if numbers else "")


def collective(benchmark: Benchmark, rows: Sequence[RowSpec]) -> str:
    """Restrict an option to collectives."""
    return "" if any(row.kernel_info.is_collective for row in rows) else f"{benchmark.name} is not a collective"


_OF_STARTS = ("ranks", "hosts", "ppn", "version")
ONLY_START = ("osu_init", "osu_hello")  # benchmarks that measure nothing after the start of the ranks

_COUNT = click.IntRange(1)
_LINKTEST, _NETSAN, _GPCNET = of("LinkTest"), of("net_sanitizer"), of("GPCNeT")
_PLAIN, _SERVED = named("linktest"), named("net_sanitizer", "netsan_put", "netsan_get")
_PARTNERS = both(_LINKTEST, not_the_world)

SECTIONS = {
    "Options": (
        value("-n --ranks", "N", "Number of ranks [2, or as many as --hosts has].", type=_COUNT),
        value("--hosts", "LIST", "Hosts to use, in this order: n[001-064]."),
        value("--ppn", "N", "Ranks on each of the hosts [1].", type=_COUNT),
        value("--sizes", "LIST", "Message sizes: 8, 1K:4M (doubling), 8,1K,1M.", "sizes"),
        value(
            "-m --message-size",
            "[MIN:]MAX",
            "As in OSU: all sizes from MIN to MAX; -m 4K measures 1 B to 4 KiB.",
            "sizes",
            type=str,
        ),
        value("-i --iterations", "N[,M]", "Exactly N repetitions per size; M above 8 KiB.", "iterations"),
        value("-x --warmup", "N[,M]", "Untimed repetitions before.", "warmup"),
        value("--samples", "N", "Exactly N samples per size.", "samples"),
        switch("--adaptive", "No fixed counts: stop when the median is stable.", why_not=counted),
        value("--budget", "TIME", "Longest time of a round, such as 20s.", "budget", type=Duration()),
        switch("-c --validate --validation", "Check every byte.", "validate"),
        value(
            "-z --percentiles --tail-lat",
            "LIST",
            "Percentiles of the time as columns [-z alone: 50,90,99; kernels have 50,99].",
            why_not=percentiles_shown,
            type=Percentiles(),
            is_flag=False,
            flag_value="50,90,99",
        ),
        switch("--counters", "Read the NICs' counters before and after each row."),
        value("--ranks-per-nic", "K", "Spread the ranks of a host over its NICs, K to each.", type=_COUNT),
        value(
            "--transport",
            "LIST",
            "mpi, tcp, ucx, ofi, verbs, nccl, or copies between GPUs: cuda-p2p, hip-p2p; several are compared [mpi].",
            "transport",
        ),
        value("--device", "NAME", "NIC of tcp (interface or network), ucx, ofi or verbs.", "device"),
        value("--streams", "N", "Connections of a pair, over tcp or verbs [1].", "streams"),
        value("--ofi-provider", "NAME", "Provider of libfabric, over ofi.", "ofi-provider"),
        value("--gid-index", "N", "GID of the port, over verbs [an own address].", "gid-index"),
        value("--service-level", "0..15", "InfiniBand service level, over verbs [0].", "service-level"),
        value("--mtu", "BYTES", "Path MTU, over verbs [that of the port].", "mtu"),
        value(
            "--memory",
            "M",
            "Buffers in host, host-huge, host-numa:N, cuda, hip [of GPUs: theirs; else host].",
            "memory",
        ),
    ),
    "Options of some benchmarks": (
        value("-W --window --window-size", "N", "Messages in flight.", "window"),
        switch("-V --vary-window", "Windows of 1 to 128 messages in one table.", why_not=named("osu_mbw_mr")),
        value(
            "-b --buffers --buffer-num",
            "single|multiple|distinct",
            "Buffers of a window [OSU: single].",
            "buffers",
            row_value=lambda kind: "distinct" if kind == "multiple" else kind,
        ),
        value("-p --pairs --num-pairs", "N", "Measure N pairs: 2 N ranks.", type=_COUNT, why_not=paired),
        value("-t --workers", "[S:]R", "Threads or processes that send and receive [1:2].", "workers", type=Workers()),
        value("-w --win --win-options", "HOW", "Creation of the RMA window: create, allocate, dynamic.", "win"),
        value("-s --sync --sync-option", "HOW", "lock, flush, flush_local, lock_all, pscw or fence.", "sync"),
        value("--copy", "COPY", "Of GPUs: to-device [default], to-host, within-device.", "copy"),
        switch("-f --full", "Also minimum, maximum and iterations.", why_not=collective),
        switch("--in-place", "Results of a collective replace the data that it sends.", "in-place"),
        switch("--verbose", "One line for every connection or pair.", why_not=of("net_sanitizer", "HPE")),
    ),
    "OSU options": (
        switch("-v --version", "Print the release of OSU whose protocol and format NAME has.", why_not=of("OSU")),
        value("-T --type", "TYPE", "Data type of the messages: mpi_char.", type=DataType(), why_not=of_bytes),
    ),
    "LinkTest options": (
        value("--mode", "|".join(LINKTEST_MODES), "LinkTest's name of a transport.", "transport", why_not=_LINKTEST),
        count("--num-warmup-messages", "Not timed.", "warmup", 0, _LINKTEST),
        count("--num-messages", "To each partner.", "iterations", 1, _LINKTEST),
        value("--size-messages", "BYTES", "Their size.", "sizes", why_not=_LINKTEST),
        switch("--bidirectional --bidirection", "Both ends send at once.", why_not=_PLAIN),
        switch("--unidirectional", "One end sends.", why_not=_PLAIN),
        switch("--bisection", "Pair the lower half of the ranks with the upper half.", "pattern", "bisection", _PLAIN),
        switch("--all-to-all", "Measure MPI_Alltoall as well.", why_not=_PARTNERS),
        switch("--serial-tests", "One pair at a time.", "order", "serial", _LINKTEST),
        switch("--randomize", "Random order that changes from call to call.", why_not=_PARTNERS),
        value("--num-slowest", "K", "Measure the K slowest pairs again [10].", "retest", why_not=_LINKTEST),
        value("--min-iterations", "K", "Measure all pairs K times.", "repeats", why_not=_LINKTEST),
        value("--num-multi-buf", "N", "Number of buffers, and of messages in flight.", "window", why_not=_LINKTEST),
    ),
    "net_sanitizer options": (
        value("--nservers", "N", "The first N ranks serve, the others are clients.", "servers", why_not=_SERVED),
        count("--niters", "Requests to a server.", "iterations", 1, _NETSAN),
        value("--nflight", "N", "Requests in flight.", "window", why_not=_NETSAN),
        value("--bsize", "BYTES", "Operation of a request.", "sizes", why_not=_NETSAN),
        switch("--sequential", "One connection at a time.", "order", "serial", _NETSAN),
        value("--servers", "LIST", "Hosts of servers: server[2-3].", why_not=_SERVED),
        value("--clients", "LIST", "Hosts of clients: client[1-3,10], client{1,5}.", why_not=_NETSAN),
        value("--servers-nranks", "N", "Ranks on each server [1].", type=_COUNT, why_not=_SERVED),
        value("--clients-nranks", "N", "Ranks on each client [1].", type=_COUNT, why_not=_NETSAN),
    ),
    "GPCNeT options": (
        value("--victims", "K", "Pairs to measure [a tenth of the ranks].", "victims", why_not=_GPCNET),
        value("--aggressor", "incast|all-to-all", "Traffic of the other ranks [incast].", "aggressor", why_not=_GPCNET),
    ),
}
# Options of OSU without an equivalent, which `bench` does not have: what does the same, or why nothing does.
OF_OSU_ONLY = {
    "-u --validation-warmup": "-c checks every repetition, and none of them is repeated for it",
    "-I --mpi-session --session": "the engine starts MPI with MPI_Init, as OSU does by default: omit it",
    "-G --graph": "-o RUN keeps the figures, and fablint report RUN draws them",
    "-D --ddt": "messages are contiguous bytes: omit it",
    "-P --papi": "--counters reads the counters of the NICs; for those of the CPU run the launcher under perf",
}
SETTINGS = {setting.parameter: setting for section in SECTIONS.values() for setting in section}


MEDIA = ("transport", "device", "streams", "ofi_provider", "memory")  # how the bytes travel
media_options = with_options(*(SETTINGS[parameter].decorate for parameter in MEDIA))


def medium_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the options of a row that say how the bytes travel."""
    return {SETTINGS[name].row: values[name] for name in MEDIA if values[name] is not None}


def given_media(values: Mapping[str, Any]) -> tuple[Medium, ...]:
    """Return the media that the options of a verb name. Raises UsageError."""
    from fablint.plan.rows.side_by_side import parse_media

    return parse_media(medium_values(values))


def engine_options(*, counters: bool, ranks_per_nic: int | None) -> list[str]:
    """Return the words of the engine's command line for port counters and for the ranks that share a NIC."""
    options = ["--counters"] if counters else []
    return options if ranks_per_nic is None else [*options, "--ranks-per-nic", str(ranks_per_nic)]
