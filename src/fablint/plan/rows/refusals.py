"""Rows that make no sense are refused before a launch, by the rules of engine/registry/ and in the engine's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fablint.errors import UsageError
from fablint.model.registry import (
    ABSENCES,
    EXCLUSIONS,
    GPU_MEMORIES,
    KERNELS,
    OPTIONS,
    PATTERNS,
    REQUIREMENTS,
    SYNCS_OF_BOTH_ENDS,
    TRANSPORTS,
)
from fablint.model.row import Medium, RowSpec
from fablint.text.suggestions import alternatives

_FEWEST_AGGRESSORS = 2

Values = Mapping[str, Any]  # of options that are given, by name, typed as the fields of RowSpec


def why_inapplicable(option: str, row: RowSpec) -> str:
    """The reason why a value of the option other than its default does not apply to a row; empty where it applies."""
    why = OPTIONS[option].why_inapplicable(row.kernel_info, PATTERNS[row.pattern])
    return why[1] if why else ""


def refuse_row(row: RowSpec, values: Values) -> None:
    """Raise UsageError for a row that makes no sense, whatever the number of ranks.

    Parameters
    ----------
    row
        The row.
    values
        The options that are given.
    """
    kernel = row.kernel_info
    if not kernel.runs_on(row.pattern):
        choices = alternatives(pattern for pattern in PATTERNS if kernel.runs_on(pattern))
        raise UsageError(f"{row.kernel} cannot run on pattern {row.pattern}", f"choose {choices}")
    for name, option in OPTIONS.items():
        if name in values and (why := option.why_inapplicable(kernel, PATTERNS[row.pattern], values[name])):
            raise UsageError(f"--{name} does not apply to {why[0]}", why[1])
    _refuse_options_of_other_transports(row, values)
    _refuse_combinations(values)
    for size in row.sizes:
        if not kernel.accepts_size(size):
            raise UsageError(f"--sizes {size} does not apply to {row.kernel}", kernel.sizes_hint)
    _refuse_transport(row)
    if kernel.is_one_sided and kernel.bidirectional and row.sync not in SYNCS_OF_BOTH_ENDS:
        _refuse_sync_of_one_end(row)


def _refuse_sync_of_one_end(row: RowSpec) -> None:
    offered = [sync for sync in SYNCS_OF_BOTH_ENDS if sync in TRANSPORTS[row.transport].syncs]
    if not offered:
        required = f"{row.kernel} requires a transport with a --sync of both ends, which {row.transport} does not offer"
        raise UsageError(required, "choose another --transport")
    use = f"both ends must take part, use {alternatives(offered)}"
    raise UsageError(f"--sync {row.sync} does not apply to {row.kernel}", use)


def _refuse_options_of_other_transports(row: RowSpec, names: Iterable[str]) -> None:
    for name in names:
        accepting = [transport.name for transport in TRANSPORTS.values() if name in transport.options]
        if accepting and row.transport not in accepting:
            why = ABSENCES.get((name, row.transport))
            hint = f"{f'{why}, or ' if why else ''}use --transport {alternatives(accepting)}"
            raise UsageError(f"--{name} does not apply to transport {row.transport}", hint)


def _refuse_combinations(values: Values) -> None:
    for rule in EXCLUSIONS:
        (other,) = rule.others
        if is_given(values, rule.option, rule.value) and is_given(values, other, rule.other_value):
            written = f"{_written(rule.option, rule.value)} excludes {_written(other, rule.other_value)}"
            raise UsageError(written, rule.reason)
    for rule in REQUIREMENTS:
        is_met = any(is_given(values, other, rule.other_value) for other in rule.others)
        if is_given(values, rule.option, rule.value) and not is_met:
            choices = alternatives(_written(other, rule.other_value) for other in rule.others)
            raise UsageError(f"{_written(rule.option, rule.value)} requires {choices}", rule.reason)


def is_given(values: Values, option: str, value: str) -> bool:
    """Tell whether an option is given with that value. An empty value is any value, `!word` any other than the word."""
    if option not in values:
        return False
    text = OPTIONS[option].write(values[option])
    return text != value[1:] if value.startswith("!") else value in ("", text)


def _written(option: str, value: str) -> str:
    return f"--{option}" if value.startswith("!") or not value else f"--{option} {value}"


def _refuse_transport(row: RowSpec) -> None:
    transport = TRANSPORTS[row.transport]
    needs = {row.kernel: row.kernel_info.requires, "--barrier sample": ("collectives",) * (row.barrier == "sample")}
    for what, capabilities in needs.items():
        if missing := ", ".join(name for name in capabilities if name not in transport.offers):
            required = f"{what} requires a transport with {missing}, which {row.transport} does not offer"
            raise UsageError(required, "choose another --transport")
    for option, memory in (("--memory", row.memory), ("--peer-memory", row.peer_memory)):
        if memory and transport.memory in GPU_MEMORIES and memory not in transport.memories:
            choices = alternatives(f"{option} {offered}" for offered in transport.memories)
            raise UsageError(
                f"{option} {memory} does not apply to transport {row.transport}",
                f"it moves memory of GPUs only, use {choices}",
            )
    if row.kernel_info.is_one_sided:
        for option, value, offered in (("win", row.win, transport.wins), ("sync", row.sync, transport.syncs)):
            if value not in offered:
                refused = f"--{option} {value} does not apply to transport {row.transport}"
                raise UsageError(refused, f"choose one of {' '.join(offered)}")
    if row.validate and transport.moves_nothing:
        raise UsageError(f"--validate does not apply to transport {row.transport}", "it moves nothing")


def refuse_media_within_hosts(media: Iterable[Medium]) -> None:
    """Raise UsageError for a transport that connects ranks of one host only, where hosts are to be compared."""
    for transport in (medium.transport for medium in media if TRANSPORTS[medium.transport].is_within_host):
        raise UsageError(
            f"transport {transport} connects ranks of one host, and a check of several hosts measures between them",
            f"choose another --transport, or check one host: fablint check --local N --transport {transport}",
        )


def refuse_ranks(row: RowSpec, ranks: int) -> None:
    """Raise UsageError for a row that makes no sense with so many ranks."""
    if ranks < 2 and KERNELS[row.kernel].sends_messages:
        raise UsageError(f"pattern {row.pattern} needs at least 2 ranks, this run has {ranks}", "start more ranks")
    if row.pattern == "clients-servers" and row.servers >= ranks:
        raise UsageError(f"--servers {row.servers} leaves no client, this run has {ranks} ranks", "start more ranks")
    if row.pattern == "victim-aggressor":
        victims = victim_pairs(row, ranks)
        needed = 2 * victims + _FEWEST_AGGRESSORS
        if ranks < needed:
            pairs = "1 victim pair needs" if victims == 1 else f"{victims} victim pairs need"
            raise UsageError(f"{pairs} at least {needed} ranks, this run has {ranks}", "start more ranks")
    if row.barrier == "sample" and (ranks != 2 if row.pattern == "pair" else ranks % 2):
        number = "2" if row.pattern == "pair" else "an even number of"
        raise UsageError(f"--barrier sample: all {ranks} ranks need a partner", f"start {number} ranks")
    if row.sync == "fence" and ranks != 2:
        raise UsageError(
            f"--sync fence: a fence is for all ranks at once, this run has {ranks}", "start 2 ranks, or use pscw"
        )


def victim_pairs(row: RowSpec, ranks: int) -> int:
    """Number of victim pairs of a row of pattern `victim-aggressor`."""
    return row.victims or max(1, ranks // 10)
