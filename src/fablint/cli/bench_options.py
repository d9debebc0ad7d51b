"""Options of `fablint bench`, and the benchmarks to which each of them applies.

They have the spelling of the programs from which the benchmarks come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.options import with_options
from fablint.cli.param_types import Buffers, DataType, Duration, MessageCount, Percentiles, RowOption, Workers
from fablint.model.registry.linktest_modes import LINKTEST_MODES

if TYPE_CHECKING:
    from fablint.model import Medium, RowSpec
    from fablint.plan import Benchmark

# Returns why an option does not apply to a benchmark that is made of these rows; empty where it applies.
Reason = Callable[["Benchmark", "Sequence[RowSpec]"], str]


@dataclass(frozen=True)
class Setting:
    """An option of `bench`.

    `row` is the option of the row that it sets: to the value that the user gives, or, for a switch, to `text` or True.
    """

    spellings: str
    form: str  # the name of the value, or choices with `|` between them; empty: a switch
    help: str
    row: str = ""
    why_not: Reason | None = None
    type: click.ParamType[Any] | None = None  # of the value; None: that of the option of the row, or a text
    text: str = ""
    without_value: str | None = None  # what the option without a value means

    @property
    def spelling(self) -> str:
        """The long spelling."""
        return next(spelling for spelling in self.spellings.split() if spelling.startswith("--"))

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
        more: dict[str, Any] = {"is_flag": True}
        if "|" in self.form:
            more = {"type": self.type or click.Choice(self.form.split("|"))}
        elif self.form:
            more = {"type": self.type or (RowOption(self.row) if self.row else None), "metavar": self.form}
        if self.without_value:
            more |= {"is_flag": False, "flag_value": self.without_value}
        return click.option(*self.spellings.split(), self.parameter, help=self.help, **more)(verb)


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


def percentiles_shown(benchmark: Benchmark, rows: Sequence[RowSpec]) -> str:
    """Return why a benchmark has no columns of percentiles; '' if it has them."""
    has_none = benchmark.family not in ("fablint", "OSU") or any(row.kernel_info.overlaps for row in rows)
    return f"the table of {benchmark.name} has none" if has_none else ""


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
        Setting("-n --ranks", "N", "Number of ranks [2, or as many as --hosts has].", type=_COUNT),
        Setting("-w --hosts", "LIST", "Hosts to use, in this order: n[001-064]."),
        Setting("--ppn", "N", "Ranks on each of the hosts [1].", type=_COUNT),
        Setting("--sizes", "LIST", "Message sizes: 8, 1K:4M (doubling), 8,1K,1M.", "sizes"),
        Setting(
            "-m --message-size",
            "[MIN:]MAX",
            "As in OSU: all sizes from MIN to MAX; -m 4K measures 1 B to 4 KiB.",
            "sizes",
            type=click.STRING,
        ),
        Setting("-i --iterations", "N[,M]", "Exactly N repetitions per size; M above 8 KiB.", "iterations"),
        Setting("--warmup", "N[,M]", "Untimed repetitions before.", "warmup"),
        Setting("--samples", "N", "Exactly N samples per size.", "samples"),
        Setting("--adaptive", "", "No fixed counts: stop when the median is stable.", why_not=counted),
        Setting("--budget", "TIME", "Longest time of a round, such as 20s.", "budget", type=Duration()),
        Setting("-c --validate --validation", "", "Check every byte.", "validate"),
        Setting(
            "-z --percentiles --tail-lat",
            "LIST",
            "Percentiles of the time as columns [-z alone: 50,90,99; kernels have 50,99].",
            why_not=percentiles_shown,
            type=Percentiles(),
            without_value="50,90,99",
        ),
        Setting("--counters", "", "Read the NICs' counters before and after each row."),
        Setting("--ranks-per-nic", "K", "Spread the ranks of a host over its NICs, K to each.", type=_COUNT),
        Setting(
            "--transport",
            "LIST",
            "mpi, tcp, ucx, ofi, verbs, nccl, or copies between GPUs: cuda-p2p, hip-p2p; several are compared [mpi].",
            "transport",
        ),
        Setting("--device", "NAME", "NIC of tcp (interface or network), ucx, ofi or verbs.", "device"),
        Setting("--streams", "N", "Connections of a pair, over tcp or verbs [1].", "streams"),
        Setting("--ofi-provider", "NAME", "Provider of libfabric, over ofi.", "ofi-provider"),
        Setting("--gid-index", "N", "GID of the port, over verbs [an own address].", "gid-index"),
        Setting("--service-level", "0..15", "InfiniBand service level, over verbs [0].", "service-level"),
        Setting("--mtu", "BYTES", "Path MTU, over verbs [that of the port].", "mtu"),
        Setting(
            "--memory",
            "M",
            "Buffers in host, host-huge, host-numa:N, cuda, hip [of GPUs: theirs; else host].",
            "memory",
        ),
    ),
    "Options of some benchmarks": (
        Setting("-W --window --window-size", "N", "Messages in flight.", "window"),
        Setting("-V --vary-window", "", "Windows of 1 to 128 messages in one table.", why_not=named("osu_mbw_mr")),
        Setting(
            "-b --buffers --buffer-num",
            "single|multiple|distinct",
            "Buffers of a window [OSU: single].",
            "buffers",
            type=Buffers(),
        ),
        Setting("--peer-memory", "M", "Buffers of the upper half of the ranks [as --memory].", "peer-memory"),
        Setting("-p --pairs --num-pairs", "N", "Measure N pairs: 2 N ranks.", why_not=paired, type=_COUNT),
        Setting(
            "-t --workers", "[S:]R", "Threads or processes that send and receive [1:2].", "workers", type=Workers()
        ),
        Setting("--win", "HOW", "Creation of the RMA window: create, allocate, dynamic.", "win"),
        Setting("-s --sync --sync-option", "HOW", "lock, flush, flush_local, lock_all, pscw or fence.", "sync"),
        Setting("--tests", "N", "Calls of MPI_Test during the computation beside a collective [0].", "tests"),
        Setting("--copy", "COPY", "Of GPUs: to-device [default], to-host, within-device.", "copy"),
        Setting("--all-columns", "", "Also minimum, maximum and iterations.", why_not=collective),
        Setting("-l --in-place", "", "Results of a collective replace the data that it sends.", "in-place"),
        Setting("--verbose", "", "One line for every connection or pair.", why_not=of("net_sanitizer", "HPE")),
    ),
    "OSU options": (
        Setting("-v --version", "", "Print the release of OSU whose protocol and format NAME has.", why_not=of("OSU")),
        Setting("-T --type", "TYPE", "Data type of the messages: mpi_char.", why_not=of_bytes, type=DataType()),
    ),
    "LinkTest options": (
        Setting("--mode", "|".join(LINKTEST_MODES), "LinkTest's name of a transport.", "transport", _LINKTEST),
        Setting("--num-warmup-messages", "N", "Not timed.", "warmup", _LINKTEST, MessageCount(0)),
        Setting("--num-messages", "N", "To each partner.", "iterations", _LINKTEST, MessageCount(1)),
        Setting("--size-messages", "BYTES", "Their size.", "sizes", _LINKTEST),
        Setting("--bidirectional --bidirection", "", "Both ends send at once.", why_not=_PLAIN),
        Setting("--unidirectional", "", "One end sends.", why_not=_PLAIN),
        Setting(
            "--bisection",
            "",
            "Pair the lower half of the ranks with the upper half.",
            "pattern",
            _PLAIN,
            text="bisection",
        ),
        Setting("--all-to-all", "", "Measure MPI_Alltoall as well.", why_not=_PARTNERS),
        Setting("--serial-tests", "", "One pair at a time.", "order", _LINKTEST, text="serial"),
        Setting("--randomize", "", "Random order that changes from call to call.", why_not=_PARTNERS),
        Setting("--num-slowest", "K", "Measure the K slowest pairs again [10].", "retest", _LINKTEST),
        Setting("--min-iterations", "K", "Measure all pairs K times.", "repeats", _LINKTEST),
        Setting("--num-multi-buf", "N", "Number of buffers, and of messages in flight.", "window", _LINKTEST),
    ),
    "net_sanitizer options": (
        Setting("--nservers", "N", "The first N ranks serve, the others are clients.", "servers", _SERVED),
        Setting("--niters", "N", "Requests to a server.", "iterations", _NETSAN, MessageCount(1)),
        Setting("--nflight", "N", "Requests in flight.", "window", _NETSAN),
        Setting("--bsize", "BYTES", "Operation of a request.", "sizes", _NETSAN),
        Setting("--sequential", "", "One connection at a time.", "order", _NETSAN, text="serial"),
        Setting("--servers", "LIST", "Hosts of servers: server[2-3].", why_not=_SERVED),
        Setting("--clients", "LIST", "Hosts of clients: client[1-3,10], client{1,5}.", why_not=_NETSAN),
        Setting("--servers-nranks", "N", "Ranks on each server [1].", why_not=_SERVED, type=_COUNT),
        Setting("--clients-nranks", "N", "Ranks on each client [1].", why_not=_NETSAN, type=_COUNT),
    ),
    "GPCNeT options": (
        Setting("--victims", "K", "Pairs to measure [a tenth of the ranks].", "victims", _GPCNET),
        Setting("--aggressor", "incast|all-to-all", "Traffic of the other ranks [incast].", "aggressor", _GPCNET),
    ),
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
