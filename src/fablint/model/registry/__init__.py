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
    is_of_parts: bool  # its size is that of one rank's part of the largest buffer
    is_divided: bool  # its size is that of all parts, of which each rank receives its own
    is_rooted: bool  # rank 0 has the data at the beginning or at the end
    datatype: str  # MPI data type of the messages
    nccl_test: str  # test of nccl-tests that measures it; empty where there is none
    osu_title: str
    description: str

    @property
    def default_pattern(self) -> str:
        """Pattern of a row that names none."""
        return "pair" if "pairs" in self.groups else "world"

    @property
    def is_windowed(self) -> bool:
        """True if it keeps a window of messages in flight."""
        return "window" in self.options

    @property
    def is_collective(self) -> bool:
        """True if all ranks of the run take part in each operation."""
        return "collectives" in self.requires

    @property
    def sends_messages(self) -> bool:
        """True if its ranks need a partner."""
        return self.groups != {"world"} or self.is_collective

    @property
    def overlaps(self) -> bool:
        """Tell whether it is a collective that a computation may overlap."""
        return "compute" in self.options

    @property
    def is_one_sided(self) -> bool:
        """True if it accesses the RMA window of a passive target."""
        return "sync" in self.options

    @property
    def adds_floats(self) -> bool:
        """True if the result of all ranks is a sum of floats."""
        return self.datatype == "MPI_FLOAT"

    @property
    def is_duplex(self) -> bool:
        """True if both ends of a pair send at the same time."""
        return self.bidirectional and "pairs" in self.groups

    def bus_share(self, ranks: int) -> float:
        """Bus bandwidth of a collective over its algorithm bandwidth, as nccl-tests defines both.

        It is the share of the size that crosses the link of a rank: 1 of what a root sends or receives as a whole,
        2 (n - 1) / n of a sum for all ranks, else (n - 1) / n.
        """
        share = (ranks - 1) / ranks
        if self.is_rooted and not self.is_of_parts:
            return 1.0
        is_whole = self.adds_floats and not self.is_of_parts and not self.is_divided
        return 2 * share if is_whole else share

    def accepts_size(self, size: int) -> bool:
        """Tell whether there is a measurement with messages of `size` bytes."""
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

    def why_inapplicable(self, kernel: KernelInfo, pattern: PatternInfo, value: Any = None) -> tuple[str, str] | None:
        """Return why the option with that value does not apply: to what, and the reason. None where it applies."""
        is_default = value is not None and value == self.default

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
    moves_nothing: bool  # no payload arrives
    damages_payloads: bool
    is_within_host: bool  # it connects ranks of one host only
    needs_mpi: bool  # the MPI library moves its bytes
    memories: tuple[str, ...]  # of GPUs: those that it moves; the first is the default

    @property
    def memory(self) -> str:
        """Return where the message buffers are by default."""
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
    """The elements of `a | b`."""
    return tuple(word.strip() for word in text.split("|") if word.strip())


def _words(fields: Mapping[str, str], name: str) -> tuple[str, ...]:
    """The words of a field, which blanks separate; none where the entry does not have the field."""
    return tuple(fields.get(name, "").split())


def _kernel(fields: Mapping[str, str]) -> KernelInfo:
    return KernelInfo(
        fields["name"],
        cast(Quantity, fields["quantity"]),
        cast(Payload, fields["payload"]),
        fields.get("bidirectional") == "true",
        fields["sizes"],
        parse_sizes(fields["default_sizes"]),
        _set(fields.get("required", "")),
        frozenset(_set(fields["groups"])),
        frozenset(_words(fields, "options")),
        fields.get("win", ""),
        fields.get("sync", ""),
        fields.get("is_of_parts") == "true",
        fields.get("is_divided") == "true",
        fields.get("is_rooted") == "true",
        fields.get("datatype", "MPI_CHAR"),
        fields.get("nccl_test", ""),
        fields["osu_title"],
        fields["description"],
    )


def _transport(fields: Mapping[str, str]) -> TransportInfo:
    return TransportInfo(
        fields["name"],
        frozenset(_set(fields.get("offers", ""))),
        frozenset(_words(fields, "options")),
        _words(fields, "wins"),
        _words(fields, "syncs"),
        fields.get("moves_nothing") == "true",
        fields.get("damages_payloads") == "true",
        fields.get("is_within_host") == "true",
        fields.get("needs_mpi") == "true",
        _words(fields, "memories"),
    )


def _option(fields: Mapping[str, str]) -> OptionInfo:
    return OptionInfo(
        fields["name"],
        fields["kind"],
        _words(fields, "values") or tuple(_CHOICES.get(fields["kind"], ())),
        fields.get("default_text", ""),
        cast(Applies, fields.get("kernels", "any")),
        cast(Applies, fields.get("patterns", "any")),
        fields.get("kernel_reason", ""),
        fields.get("pattern_reason", ""),
    )


def _combinations(macro: str) -> tuple[Combination, ...]:
    return tuple(
        Combination(
            fields["option"],
            fields.get("value", ""),
            _words(fields, "others"),
            fields.get("other_value", ""),
            fields["reason"],
        )
        for fields in registry_table("options.inc", macro)
    )


_KERNELS = registry_table("kernels.inc", "KERNEL", "name")
_PATTERNS = registry_table("patterns.inc", "PATTERN", "identifier")
_TRANSPORTS = registry_table("transports.inc", "TRANSPORT", "identifier")
_MEMORIES = registry_table("transports.inc", "MEMORY", "identifier")
_WINS = registry_table("windows.inc", "WIN", "name osu_name description")
_SYNCS = registry_table("windows.inc", "SYNC", "name ends osu_name description")

KERNELS: Mapping[str, KernelInfo] = {fields["name"]: _kernel(fields) for fields in _KERNELS}
PATTERNS: Mapping[str, PatternInfo] = {
    fields["name"]: PatternInfo(fields["name"], fields["shape"], frozenset(_words(fields, "options")))
    for fields in _PATTERNS
}
TRANSPORTS: Mapping[str, TransportInfo] = {fields["name"]: _transport(fields) for fields in _TRANSPORTS}
# What follows the name of a memory after a colon, as in host-numa:1, by name; "" where nothing does.
MEMORIES: Mapping[str, str] = {fields["name"]: fields.get("parameter", "") for fields in _MEMORIES}
GPU_MEMORIES = tuple(fields["name"] for fields in _MEMORIES if "gpu" in fields)
# Names that OSU's tables print, by name; a synchronisation by both ends is in SYNCS_OF_BOTH_ENDS.
WINS: Mapping[str, str] = {fields["name"]: fields["osu_name"] for fields in _WINS}
SYNCS: Mapping[str, str] = {fields["name"]: fields["osu_name"] for fields in _SYNCS}
SYNCS_OF_BOTH_ENDS = tuple(fields["name"] for fields in _SYNCS if fields["ends"] == "both")
_CHOICES: Mapping[str, Any] = {
    "pattern": PATTERNS,
    "transport": TRANSPORTS,
    "memory": MEMORIES,
    "win": WINS,
    "sync": SYNCS,
}
OPTIONS: Mapping[str, OptionInfo] = {
    fields["name"]: _option(fields) for fields in registry_table("options.inc", "OPTION", "name kind member")
}
EXCLUSIONS = _combinations("EXCLUDES")
REQUIREMENTS = _combinations("REQUIRES")
# Why a transport does not have an option, by both names, where the transports that have it are no replacement.
ABSENCES: Mapping[tuple[str, str], str] = {
    (fields["option"], fields["transport"]): fields["reason"]
    for fields in registry_table("options.inc", "ABSENT", "option transport reason")
}
# (option of the user, option of a benchmark's row that it replaces in addition to that of the same name, its value)
REPLACEMENTS = [
    (fields["given"], fields["replaced"], fields["value"])
    for fields in registry_table("options.inc", "REPLACES", "given replaced value")
]


def directions_counted(kernel: str) -> int:
    """Number of directions whose bytes a bandwidth counts: 2 where both run at once, as in OSU's tables."""
    info = KERNELS.get(kernel)
    return 2 if info and info.quantity == "bandwidth" and info.payload == "both" else 1


def moves_nothing(transport: object) -> bool:
    """Tell whether the transport of that name moves no byte. False for a name that the table lacks."""
    return transport in TRANSPORTS and TRANSPORTS[str(transport)].moves_nothing


def is_duplex(kernel: str) -> bool:
    """Tell whether both ends of a pair send at the same time. False for a kernel that the tables do not name."""
    return kernel in KERNELS and KERNELS[kernel].is_duplex
