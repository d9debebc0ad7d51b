"""A row: one measurement of a plan, with typed values of its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from fablint.model.registry import GPU_MEMORIES, KERNELS, OPTIONS, PATTERNS, TRANSPORTS, KernelInfo
from fablint.model.registry.option_values import Counts

_DEFAULTS: Mapping[str, Any] = {option.field: option.default for option in OPTIONS.values()}


def _default_of_window(of_kernel: str, offered: tuple[str, ...]) -> str | None:
    """The kernel's default where the transport has it, otherwise the transport's; None for kernels without window."""
    return (of_kernel if of_kernel in offered or not offered else offered[0]) if of_kernel else None


@dataclass(frozen=True)
class Medium:
    """How the bytes of a row travel, and where they are: what differs between rows that compare transports."""

    transport: str = _DEFAULTS["transport"]
    memory: str = TRANSPORTS[_DEFAULTS["transport"]].memory
    peer_memory: str | None = None  # of the second half of the ranks; None: the same
    device: str | None = None
    ofi_provider: str | None = None
    streams: int = _DEFAULTS["streams"]
    gid_index: int | None = None
    service_level: str = _DEFAULTS["service_level"]
    mtu: str | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Medium:
        """Return the medium of a row of a run, or of a RowSpec, from fields with these names."""
        return cls(
            **{field.name: values[field.name] for field in fields(cls) if values.get(field.name) not in (None, "")}
        )

    @property
    def memories(self) -> tuple[str, ...]:
        """Return the memory of all ranks, or those of the first and of the second half of the ranks."""
        return tuple(dict.fromkeys(filter(None, (self.memory, self.peer_memory))))

    @property
    def gpu_memory(self) -> str:
        """Return the memory of GPUs that its messages use; empty for memory of the hosts alone."""
        return next((memory for memory in self.memories if memory in GPU_MEMORIES), "")

    @property
    def label(self) -> str:
        """`tcp`, `ofi cxi`, `ucx cuda mlx5_0:1`: the transport, and what is not the default."""
        memory = "/".join(self.memories) if self.memories != (Medium.memory,) else ""
        streams = f"{self.streams} streams" if self.streams != _DEFAULTS["streams"] else ""
        gid = f"GID {self.gid_index}" if self.gid_index is not None else ""
        level = f"SL {self.service_level}" if self.service_level != _DEFAULTS["service_level"] else ""
        mtu = f"MTU {self.mtu}" if self.mtu else ""
        return " ".join(
            filter(None, (self.transport, memory, self.ofi_provider, self.device, streams, gid, level, mtu))
        )


@dataclass(frozen=True)
class RowSpec:
    """One measurement of a plan. Field `a_b` is option `--a-b` of engine/registry/options.inc, which has the defaults.

    Sizes are in bytes, the budget in seconds; the precision is a fraction. None: the option is absent, or the kernel
    has no such option. Pattern, sizes, win and sync are those of the kernel, and the memory is that of the
    transport, unless they are given; win and sync are the transport's where it lacks those of the kernel.
    """

    kernel: str
    name: str | None = None
    purpose: str = _DEFAULTS["purpose"]
    pattern: str = ""
    matchings: int = _DEFAULTS["matchings"]
    rounds_file: str | None = None
    rounds: str | None = None
    servers: int = _DEFAULTS["servers"]
    victims: int | None = None
    aggressor: str = _DEFAULTS["aggressor"]
    order: str = _DEFAULTS["order"]
    repeats: int = _DEFAULTS["repeats"]
    seed: int = _DEFAULTS["seed"]
    sizes: tuple[int, ...] = ()
    window: int | None = None
    buffers: str = _DEFAULTS["buffers"]
    barrier: str = _DEFAULTS["barrier"]
    mean: str = _DEFAULTS["mean"]
    directions: str = _DEFAULTS["directions"]
    in_place: bool = False
    workers: tuple[int, int] = _DEFAULTS["workers"]
    win: str | None = None
    sync: str | None = None
    server_flight: int = _DEFAULTS["server_flight"]
    copy: str = _DEFAULTS["copy"]
    compute: str = _DEFAULTS["compute"]
    tests: int = _DEFAULTS["tests"]
    retest: int = _DEFAULTS["retest"]
    warmup: Counts = _DEFAULTS["warmup"]
    budget: float | None = None
    iterations: Counts | None = None
    samples: int | None = None
    precision: float | None = None
    batch: int | None = None
    transport: str = _DEFAULTS["transport"]
    device: str | None = None
    streams: int = _DEFAULTS["streams"]
    ofi_provider: str | None = None
    gid_index: int | None = None
    service_level: str = _DEFAULTS["service_level"]
    mtu: str | None = None
    reconnect: bool = False
    memory: str = ""
    peer_memory: str | None = None
    validate: bool = False
    histogram: bool = False
    only_rounds: tuple[int, ...] | None = None
    # Sizes that the user gave are refused where they exceed the memory; the kernel's own are dropped there.
    sizes_given: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        kernel, transport = self.kernel_info, TRANSPORTS[self.transport]
        defaults = {
            "pattern": kernel.default_pattern,
            "sizes": kernel.default_sizes,
            "win": _default_of_window(kernel.win, transport.wins),
            "sync": _default_of_window(kernel.sync, transport.syncs) if kernel.is_one_sided else None,
            "memory": transport.memory,
        }
        for name, value in defaults.items():
            if not getattr(self, name):
                object.__setattr__(self, name, value)
        if self.only_rounds is not None:
            object.__setattr__(self, "only_rounds", tuple(sorted(self.only_rounds)))

    @property
    def kernel_info(self) -> KernelInfo:
        """The kernel's entry in the registry."""
        return KERNELS[self.kernel]

    @property
    def medium(self) -> Medium:
        """Return how its bytes travel, and where they are."""
        return Medium.of(vars(self))

    @property
    def needs_threads(self) -> bool:
        """True if MPI must be initialised for several threads."""
        return "thread_lanes" in self.kernel_info.requires

    @property
    def is_of_pairs(self) -> bool:
        """True if the groups of its pattern are pairs."""
        return PATTERNS[self.pattern].shape == "pairs"

    @property
    def directions_measured(self) -> int:
        """Number of measurements of a pair at one size: one where both directions run at once or one is fixed."""
        is_single = self.kernel_info.bidirectional or self.directions == "single" or not self.is_of_pairs
        return 1 if is_single else 2

    @property
    def text(self) -> str:
        """The line of a plan file: the kernel, and the options that differ from its defaults."""
        plain = RowSpec(self.kernel)
        words = [self.kernel]
        for option in OPTIONS.values():
            value = getattr(self, option.field)
            if value != getattr(plain, option.field) or (option.name == "sizes" and self.sizes_given):
                words += [f"--{option.name}", option.write(value)]
        return " ".join(filter(None, words))
