"""The engine's row grammar, docs/reference/engine.md: one table, used to read plan lines and to write them.

A row is `KERNEL [options]`, split at white space. `--option value` and `--option=value` mean the same.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from fablint.errors import UsageError
from fablint.plan.values import (
    parse_count,
    parse_fraction,
    parse_indices,
    parse_natural,
    parse_seconds,
    parse_sizes,
)


@dataclass(frozen=True)
class Kernel:
    """What one pair does, as far as planning cares."""

    windowed: bool  # many messages in flight
    directions: int  # measured one after the other in a round
    empty: bool  # has a meaning for messages of 0 bytes


KERNELS = {
    "latency": Kernel(windowed=False, directions=2, empty=True),
    "bandwidth": Kernel(windowed=True, directions=2, empty=False),
    "bibandwidth": Kernel(windowed=True, directions=1, empty=False),
    "exchange": Kernel(windowed=False, directions=1, empty=True),
}


@dataclass(frozen=True)
class RowRequest:
    """One row of a plan with its defaults filled in. Field `a_b` is option `--a-b`.

    Sizes in bytes, budget in seconds, precision as a fraction; None where the option was not given.
    """

    kernel: str
    name: str | None = None
    pattern: str = "pair"
    matchings: int = 8
    rounds_file: str | None = None
    order: str = "parallel"
    repeats: int = 1
    seed: int = 1
    sizes: tuple[int, ...] = parse_sizes("1:4M")
    window: int | None = None
    warmup: int = 10
    samples: int | None = None
    budget: float | None = None
    precision: float | None = None
    batch: int | None = None
    transport: str = "mpi"
    memory: str = "host"
    validate: bool = False
    histogram: bool = False
    only_rounds: tuple[int, ...] | None = None


def one_of(*choices: str) -> Callable[[str], str]:
    """A parser that takes one of a few words."""

    def parse(text: str) -> str:
        if text not in choices:
            raise UsageError(f"'{text}' is unknown", f"choose {_alternatives(choices)}")
        return text

    return parse


def parse_name(text: str) -> str:
    """A row's name is a folder inside the run directory."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", text) or re.fullmatch(r"report|launch-\d+", text):
        raise UsageError(f"'{text}' is no name for a row", "use letters, digits, - and _, but not report or launch-N")
    return text


parse_kernel = one_of(*KERNELS)

# Option -> how its value is read. None: the option takes no value.
OPTIONS: dict[str, Callable[[str], Any] | None] = {
    "name": parse_name,
    "pattern": one_of("pair", "pairs", "all-pairs", "bisection", "random", "rounds"),
    "matchings": parse_count,
    "rounds-file": str,
    "order": one_of("parallel", "serial"),
    "repeats": parse_count,
    "seed": parse_natural,
    "sizes": parse_sizes,
    "window": parse_count,
    "warmup": parse_natural,
    "samples": parse_count,
    "budget": parse_seconds,
    "precision": parse_fraction,
    "batch": parse_count,
    "transport": one_of("mpi", "null", "corrupt"),
    "memory": one_of("host"),
    "validate": None,
    "histogram": None,
    "only-rounds": parse_indices,
}
assert [field.name.replace("_", "-") for field in fields(RowRequest)[1:]] == list(OPTIONS)


def parse_row(words: Sequence[str]) -> RowRequest:
    """Read one row from its words.

    Raises:
        UsageError: unknown kernel or option, a value that the option does not take, or options that contradict
            each other. The message does not say where; the caller knows.
    """
    kernels: list[str] = []
    values: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            kernels.append(word)
            continue
        option, value = _option(word, rest)
        if option in values:
            raise UsageError(f"option --{option} appears twice", "give it once")
        values[option] = value
    if len(kernels) != 1:
        found = " ".join(kernels)
        raise UsageError(
            f"more than one kernel: {found}" if kernels else "no kernel", "write KERNEL [options], one row per line"
        )
    row = RowRequest(_kernel(kernels[0]), **{option.replace("-", "_"): value for option, value in values.items()})
    _refuse_contradictions(row, given=values)
    return row


def _option(word: str, rest: Iterator[str]) -> tuple[str, Any]:
    """The option that `word` names and its value, which may be the next of `rest`."""
    option, equals, text = word.removeprefix("--").partition("=")
    if not word.startswith("--") or option not in OPTIONS:
        raise UsageError(f"unknown option {word.partition('=')[0]}", _did_you_mean(option, OPTIONS, "--"))
    parse = OPTIONS[option]
    if parse is None:
        if equals:
            raise UsageError(f"option --{option} takes no value", f"write --{option} alone")
        return option, True
    value = text if equals else next(rest, None)
    if value is None:
        raise UsageError(f"option --{option} has no value", f"write --{option} VALUE")
    try:
        return option, parse(value)
    except UsageError as error:
        raise UsageError(f"--{option}: {error.message}", error.hint) from None


def _kernel(text: str) -> str:
    if text not in KERNELS:
        raise UsageError(f"unknown kernel '{text}'", f"choose {_alternatives(KERNELS)}")
    return text


def _refuse_contradictions(row: RowRequest, given: Iterable[str]) -> None:
    if 0 in row.sizes and not KERNELS[row.kernel].empty:
        raise UsageError(f"--sizes: {row.kernel} has no meaning at size 0", "start at 1")
    if (row.pattern == "rounds") != (row.rounds_file is not None):
        raise UsageError("--rounds-file and --pattern rounds belong together", "give both or none")
    if row.window is not None and not KERNELS[row.kernel].windowed:
        raise UsageError(f"--window: {row.kernel} sends one message at a time", "leave --window out")
    if "matchings" in given and row.matchings != RowRequest.matchings and row.pattern != "random":
        raise UsageError(f"--matchings: pattern {row.pattern} draws no matchings", "use --pattern random")
    if row.validate and row.transport == "null":
        raise UsageError("--validate: transport null moves nothing that could be checked", "leave one of them out")
    if row.validate and row.batch not in (None, 1):
        raise UsageError("--validate checks every message by itself", "leave --batch out")


def _alternatives(choices: Iterable[str]) -> str:
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last


def _did_you_mean(word: str, choices: Iterable[str], prefix: str) -> str:
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.5)
    return (
        f"did you mean {prefix}{close[0]}"
        if close
        else f"choose {_alternatives(prefix + choice for choice in choices)}"
    )
