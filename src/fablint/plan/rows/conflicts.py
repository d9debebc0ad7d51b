"""Options of a row that have no meaning, alone or together. What the engine refuses as well, said before it starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fablint.errors import UsageError
from fablint.plan.rows.kernels import PATTERNS, runs_on, takes
from fablint.plan.rows.options import RowRequest, given, takes_workers

_FEWEST_AGGRESSORS = 2


@dataclass(frozen=True)
class _Only:
    """Where an option has a meaning, and why not elsewhere; `{kernel}` and `{pattern}` are the row's."""

    where: Callable[[RowRequest], bool]
    otherwise: str
    instead: str = ""  # what would give it one; else it is to be left out


_WINDOWED = _Only(lambda row: row.does.windowed, "{kernel} sends one message at a time")
_VICTIMS = _Only(
    lambda row: row.pattern == "victim-aggressor", "pattern {pattern} has no victims", "use --pattern victim-aggressor"
)
_ONLY = {
    "order": _Only(lambda row: row.pattern != "world", "in pattern {pattern} all ranks meet at once"),
    "window": _WINDOWED,
    "buffers": _WINDOWED,
    "barrier": _Only(lambda row: row.pattern in ("pair", "pairs"), "pattern {pattern} meets in other pairs each round"),
    "workers": _Only(lambda row: takes_workers(row.kernel), "{kernel} has one worker at each end"),
    "win": _Only(lambda row: row.does.windows, "{kernel} uses no RMA window"),
    "sync": _Only(lambda row: row.does.uses == "one-sided", "{kernel} has no RMA synchronisation to choose"),
    "matchings": _Only(
        lambda row: row.pattern == "random", "pattern {pattern} draws no matchings", "use --pattern random"
    ),
    "servers": _Only(
        lambda row: row.pattern == "clients-servers",
        "pattern {pattern} has no servers",
        "use --pattern clients-servers",
    ),
    "server-flight": _Only(lambda row: row.does.uses == "requests", "{kernel} sends no requests"),
    "victims": _VICTIMS,
    "aggressor": _VICTIMS,
    "retest": _Only(lambda row: PATTERNS[row.pattern] == "pairs", "pattern {pattern} has no pairs"),
}


def meaningless(option: str, row: RowRequest) -> str:
    """Why `--option` has no meaning for a row; empty where it has one."""
    if option == "directions":
        return _one_direction(row)
    only = _ONLY.get(option)
    if only is None or only.where(row):
        return ""
    return only.otherwise.format(kernel=row.kernel, pattern=row.pattern)


def _one_direction(row: RowRequest) -> str:
    if row.does.mutual:
        return f"{row.kernel} sends both ways at once"
    return "" if PATTERNS[row.pattern] == "pairs" else f"pattern {row.pattern} has one direction by itself"


def refuse_contradictions(row: RowRequest) -> None:
    """Raise UsageError for what makes no sense whatever the number of ranks."""
    if not runs_on(row.kernel, row.pattern):
        raise UsageError(f"{row.kernel} cannot run on pattern {row.pattern}", _other_pattern(row))
    for option in given(row):
        if why := meaningless(option, row):
            only = _ONLY.get(option)
            raise UsageError(f"--{option}: {why}", (only and only.instead) or f"leave --{option} out")
    _refuse_sizes(row)
    if (row.rounds is not None) + (row.rounds_file is not None) != (row.pattern == "rounds"):
        raise UsageError("--pattern rounds and either --rounds or --rounds-file belong together", "give both or none")
    if row.pattern == "victim-aggressor" and row.order == "serial":
        raise UsageError("--order serial: victims are measured at once", "leave --order out")
    if row.iterations is not None and (row.samples is not None or row.precision is not None):
        also = "samples" if row.samples is not None else "precision"
        raise UsageError(f"--iterations and --{also} are two ways to stop", "leave one of them out")
    if row.kernel == "put_bibandwidth" and row.sync not in ("pscw", "fence"):
        raise UsageError(f"--sync {row.sync}: both ends of put_bibandwidth have to take part", "use pscw or fence")
    _refuse_validation(row)
    _refuse_unequal_barriers(row)


def _other_pattern(row: RowRequest) -> str:
    if row.does.uses == "collectives":
        return "collectives run on --pattern world"
    if row.pattern == "clients-servers":
        return "use rpc_put, rpc_get or bandwidth"
    return "only collectives run on it" if row.pattern == "world" else "only bandwidth runs on it"


def _refuse_sizes(row: RowRequest) -> None:
    hints = {"only 0": "its only size is 0", "only 8": "its only size is 8", "floats": "give multiples of 4"}
    for size in row.sizes:
        if not takes(row.kernel, size):
            hint = hints.get(row.does.takes, "start at 1")
            raise UsageError(f"--sizes: {row.kernel} has no meaning at size {size}", hint)


def _refuse_validation(row: RowRequest) -> None:
    if not row.validate:
        return
    if row.transport == "null":
        raise UsageError("--validate: transport null moves nothing that could be checked", "leave one of them out")
    if row.batch not in (None, 1):
        raise UsageError("--validate checks every message by itself", "leave --batch out")
    if row.buffers == "single":
        raise UsageError(
            "--validate: with --buffers single the messages of a window overwrite each other", "leave one of them out"
        )


def _refuse_unequal_barriers(row: RowRequest) -> None:
    """With a barrier before every sample every rank takes equally many samples of one repetition each."""
    if row.barrier == "start":
        return
    if row.order == "serial":
        raise UsageError("--barrier sample: --order serial measures one pair at a time", "leave one of them out")
    if row.iterations is None and row.samples is None:
        raise UsageError("--barrier sample: every rank takes as many samples", "give --iterations or --samples")
    for option in ("budget", "precision"):
        if getattr(row, option) is not None:
            raise UsageError("--barrier sample: no rank may stop before the others", f"leave --{option} out")
    if row.batch != 1:
        raise UsageError("--barrier sample: a sample is one repetition", "give --batch 1")


def refuse_ranks(row: RowRequest, ranks: int) -> None:
    """Raise UsageError for what makes no sense with so many ranks."""
    if ranks < 2:
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


def victim_pairs(row: RowRequest, ranks: int) -> int:
    """Victim pairs of a row of pattern `victim-aggressor`."""
    return row.victims or max(1, ranks // 10)
