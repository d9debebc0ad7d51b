"""The tables of kernels, patterns, row options, transports and RMA windows.

The files in engine/registry/ explain the fields. The engine includes the same files, so that a kernel or pattern is
entered once for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from fablint.model.registry.engine_tables import registry_table
from fablint.model.registry.option_values import KINDS, parse_sizes

Quantity = Literal["latency", "bandwidth"]
Payload = Literal["src", "dst", "both", "none"]  # sender of the payload of a cell (src, dst)
Applies = Literal["any", "listed", "unless_default"]
_DATATYPES = {
    "allreduce": "MPI_FLOAT",
    "reduce_scatter": "MPI_FLOAT",
    "accumulate": "MPI_UINT8_T",
    "get_accumulate": "MPI_UINT8_T",
    "cas": "MPI_UINT64_T",
    "fop": "MPI_UINT64_T",
}


@dataclass(frozen=True)
class KernelInfo:
    """What the ranks of one group do."""

    name: str
    quantity: Quantity
    payload: Payload
    bidirectional: bool  # all ranks do the same at once
    sizes: str  # message sizes that it accepts: from_0, from_1, only_0, only_8, floats
    default_sizes: tuple[int, ...]
    requires: tuple[str, ...]  # capabilities of the transport
    groups: frozenset[str]  # shapes of groups that it runs on
    options: frozenset[str]  # options that do not apply to every kernel
    win: str
    sync: str
    osu_title: str
    description: str

    @property
    def default_pattern(self) -> str:
        """Pattern of a row that names none."""
        return "pair" if "pairs" in self.groups else "world"

    @property
    def datatype(self) -> str:
        """MPI data type of the messages: a type of numbers where the kernel adds or compares them."""
        return _DATATYPES.get(self.name, "MPI_CHAR")

    @property
    def is_windowed(self) -> bool:
        """Does it keep a window of messages in flight?"""
        return "window" in self.options

    @property
    def is_collective(self) -> bool:
        """Whether all ranks of the run take part in each operation."""
        return "collectives" in self.requires

    @property
    def sends_messages(self) -> bool:
        """Do its ranks need a partner?"""
        return self.groups != {"world"} or self.is_collective

    @property
    def is_one_sided(self) -> bool:
        """Does it access the RMA window of a passive target?"""
        return "sync" in self.options

    @property
    def is_duplex(self) -> bool:
        """Do both ends of a pair send at the same time?"""
        return self.bidirectional and "pairs" in self.groups

    def accepts_size(self, size: int) -> bool:
        """Is there a measurement with messages of `size` bytes?"""
        match self.sizes:
            case "from_0":
                return True
            case "from_1":
                return size > 0
            case "only_0":
                return size == 0
            case "only_8":
                return size == 8
            case _:
                return size > 0 and size % 4 == 0

    @property
    def sizes_hint(self) -> str:
        """Sizes to choose instead of one that it does not accept."""
        hints = {"only_0": "leave --sizes out", "only_8": "8 is the only one", "floats": "choose multiples of 4"}
        return hints.get(self.sizes, "start at 1")

    def runs_on(self, pattern: str) -> bool:
        """Return whether the kernel runs on the groups of `pattern`."""
        return PATTERNS[pattern].shape in self.groups


@dataclass(frozen=True)
class PatternInfo:
    """Which ranks communicate with which."""

    name: str
    shape: str  # of its groups: pairs, stars, servers, world
    options: frozenset[str]  # options that do not apply to every pattern


@dataclass(frozen=True)
class OptionInfo:
    """An option of a row; `default` is None where it is absent, or depends on the kernel."""

    name: str
    kind: str
    choices: tuple[str, ...]  # words to choose from; empty where the value is not a choice
    default_text: str
    kernels: Applies
    patterns: Applies
    kernel_reason: str
    pattern_reason: str

    @property
    def field(self) -> str:
        """Name of the field of RowSpec."""
        return self.name.replace("-", "_")

    @property
    def default(self) -> Any:
        """Default value, typed; None for an option without default."""
        if self.kind == "flag":
            return False
        return self.read(self.default_text) if self.default_text else None

    def read(self, text: str) -> Any:
        """Read a value. Raises UsageError where it is malformed; a word that is not a choice passes."""
        return True if self.kind == "flag" else KINDS[self.kind][0](text)

    def write(self, value: Any) -> str:
        """The text that `read` reads as the value."""
        return KINDS[self.kind][1](value)

    def why_inapplicable(self, kernel: KernelInfo, pattern: PatternInfo, text: str = "") -> tuple[str, str] | None:
        """Why the option with that value does not apply: to what, and the reason. None where it applies."""
        is_default = bool(text) and text == self.default_text

        def is_accepted(rule: Applies, listed: bool) -> bool:
            return rule == "any" or listed or (rule == "unless_default" and is_default)

        if not is_accepted(self.kernels, self.name in kernel.options):
            return kernel.name, self.kernel_reason
        if not is_accepted(self.patterns, self.name in pattern.options):
            return f"pattern {pattern.name}", self.pattern_reason
        return None


@dataclass(frozen=True)
class TransportInfo:
    """What moves the bytes."""

    name: str
    offers: frozenset[str]
    options: frozenset[str]  # options that do not apply to every transport
    wins: tuple[str, ...]  # values of --win
    syncs: tuple[str, ...]  # values of --sync
    moves_bytes: bool
    is_within_host: bool  # it connects ranks of one host only
    memories: tuple[str, ...]  # of GPUs: those that it moves; the first is the default

    @property
    def memory(self) -> str:
        """Where the message buffers are by default."""
        return self.memories[0]


@dataclass(frozen=True)
class Combination:
    """Options that exclude each other, or one that requires one of the others."""

    option: str
    value: str  # "": any; !word: any other than the word
    others: tuple[str, ...]
    other_value: str
    reason: str


def _set(text: str) -> tuple[str, ...]:
    """The elements of `a | b`; none of `nothing`."""
    return tuple(word.strip() for word in text.split("|") if word.strip() != "nothing")


def _kernel(fields: tuple[str, ...]) -> KernelInfo:
    name, quantity, payload, traffic, sizes, default_sizes, requires, groups, options, win, sync, title, what = fields
    return KernelInfo(
        name,
        cast(Quantity, quantity),
        cast(Payload, payload),
        traffic == "bidirectional",
        sizes,
        parse_sizes(default_sizes),
        _set(requires),
        frozenset(_set(groups)),
        frozenset(options.split()),
        win,
        sync,
        title,
        what,
    )


def _option(fields: tuple[str, ...]) -> OptionInfo:
    name, kind, values, _, default, kernels, patterns, kernel_reason, pattern_reason, *_ = fields
    choices = tuple(values.split()) or tuple(_CHOICES.get(kind, ()))
    rules = cast(Applies, kernels), cast(Applies, patterns)
    return OptionInfo(name, kind, choices, default, *rules, kernel_reason, pattern_reason)


def _combinations(macro: str) -> tuple[Combination, ...]:
    table = registry_table("options.inc", macro, 5)
    return tuple(Combination(option, value, tuple(others.split()), *rest) for option, value, others, *rest in table)


KERNELS: Mapping[str, KernelInfo] = {
    fields[0]: _kernel(fields) for fields in registry_table("kernels.inc", "KERNEL", 13)
}
PATTERNS: Mapping[str, PatternInfo] = {
    name: PatternInfo(name, shape, frozenset(options.split()))
    for _, name, shape, _, _, _, options, _ in registry_table("patterns.inc", "PATTERN", 8)
}
TRANSPORTS: Mapping[str, TransportInfo] = {
    name: TransportInfo(
        name,
        frozenset(_set(offers)),
        frozenset(options.split()),
        tuple(wins.split()),
        tuple(syncs.split()),
        moves == "moves",
        reach == "host",
        tuple(memories.split()),
    )
    for _, name, offers, options, wins, syncs, moves, reach, memories, _ in registry_table(
        "transports.inc", "TRANSPORT", 10
    )
}
# What follows the name of a memory after a colon, as in host-numa:1, by name; "" where nothing does.
MEMORIES: Mapping[str, str] = {
    name: parameter for _, name, parameter, _, _ in registry_table("transports.inc", "MEMORY", 5)
}
GPU_MEMORIES = tuple(
    name for _, name, _, place, _ in registry_table("transports.inc", "MEMORY", 5) if place in ("cuda", "hip")
)
# Names that OSU's tables print, by name; a synchronisation by both ends is in SYNCS_OF_BOTH_ENDS.
WINS: Mapping[str, str] = {name: osu for name, osu, _ in registry_table("windows.inc", "WIN", 3)}
SYNCS: Mapping[str, str] = {name: osu for name, _, osu, _ in registry_table("windows.inc", "SYNC", 4)}
SYNCS_OF_BOTH_ENDS = tuple(name for name, ends, *_ in registry_table("windows.inc", "SYNC", 4) if ends == "both")
_CHOICES: Mapping[str, Any] = {
    "pattern": PATTERNS,
    "transport": TRANSPORTS,
    "memory": MEMORIES,
    "win": WINS,
    "sync": SYNCS,
}
OPTIONS: Mapping[str, OptionInfo] = {
    fields[0]: _option(fields) for fields in registry_table("options.inc", "OPTION", 11)
}
EXCLUSIONS = _combinations("EXCLUDES")
REQUIREMENTS = _combinations("REQUIRES")
# Why a transport does not have an option, by both names, where the transports that have it are no replacement.
ABSENCES: Mapping[tuple[str, str], str] = {
    (option, transport): reason for option, transport, reason in registry_table("options.inc", "ABSENT", 3)
}
# (option of the user, option of a benchmark's row that it replaces in addition to that of the same name, its value)
REPLACEMENTS = registry_table("options.inc", "REPLACES", 3)


def directions_counted(kernel: str) -> int:
    """Number of directions whose bytes a bandwidth counts: 2 where both run at once, as in OSU's tables."""
    known = KERNELS.get(kernel)
    return 2 if known and known.quantity == "bandwidth" and known.payload == "both" else 1


def is_duplex(kernel: str) -> bool:
    """Do both ends of a pair send at the same time? False for a kernel that the tables do not name."""
    return kernel in KERNELS and KERNELS[kernel].is_duplex
