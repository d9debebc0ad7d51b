"""The grammar of a row, docs/reference/engine.md. `RowSpec.text` writes what `parse_row` reads.

A row is `KERNEL [options]`, split at white space. `--option value` and `--option=value` mean the same. In the place of
a kernel may stand the name of a benchmark: then its own row comes first, and the options override it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fablint.errors import UsageError
from fablint.model.registry import KERNELS, MEMORIES, OPTIONS, REPLACEMENTS
from fablint.model.row import RowSpec
from fablint.plan.rows.benchmarks import Benchmark
from fablint.plan.rows.refusals import Values, is_given, refuse_row
from fablint.text.suggestions import alternatives, did_you_mean


def parse_row(
    words: Sequence[str], benchmarks: Mapping[str, Benchmark] | None = None, more: Values | None = None
) -> RowSpec:
    """Read one row.

    Parameters
    ----------
    words
        Kernel or benchmark, and options.
    benchmarks
        The registry, for rows that name a benchmark.
    more
        Values of further options.

    Raises
    ------
    UsageError
        Unknown kernel or option, a malformed value, or options that do not apply or contradict each other. The message
        does not say where the row is.
    """
    name, values = _read(words)
    if twice := next((option for option in more or () if option in values), None):
        raise UsageError(f"option --{twice} appears twice", "give it once")
    return row_of(name, {**values, **(more or {})}, benchmarks)


def row_of(name: str, values: Values, benchmarks: Mapping[str, Benchmark] | None = None) -> RowSpec:
    """Return the row of a kernel or a benchmark, with values of options in the place of its own.

    Raises UsageError where there is no such kernel, or options do not apply or contradict each other.
    """
    kernel, defaults = (name, {}) if name in KERNELS else _row_of_benchmark(name, benchmarks or {})
    replaced = {other for user, other, value in REPLACEMENTS if user in values and is_given(defaults, other, value)}
    given = {**{option: value for option, value in defaults.items() if option not in replaced}, **values}
    row = _row(kernel, given, sizes_given="sizes" in values)  # not by the row of a benchmark
    refuse_row(row, given)
    return row


def read_row(text: str) -> RowSpec:
    """Read a row of a run. Raises UsageError where it is malformed; combinations of options were accepted before."""
    kernel, values = _read(text.split())
    if kernel not in KERNELS:
        kernel, _ = _row_of_benchmark(kernel, {})
    return _row(kernel, values, sizes_given="sizes" in values)


def _row(kernel: str, values: Values, *, sizes_given: bool) -> RowSpec:
    fields = {OPTIONS[name].field: value for name, value in values.items()}
    return RowSpec(kernel, **fields, sizes_given=sizes_given)


def _row_of_benchmark(name: str, benchmarks: Mapping[str, Benchmark]) -> tuple[str, Values]:
    """Return kernel and options of the row of a benchmark. Raises UsageError where there is none."""
    if name not in benchmarks:
        hint = did_you_mean(name, [*KERNELS, *benchmarks], "fablint bench --list shows all")
        raise UsageError(f"unknown kernel '{name}'", hint)
    return _read(benchmarks[name].row.split())


def _read(words: Sequence[str]) -> tuple[str, Values]:
    """Return the kernel or benchmark that words name, and the values of the options among them."""
    names: list[str] = []
    texts: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            names.append(word)
            continue
        option, text = _option(word, rest)
        if option in texts:
            raise UsageError(f"option --{option} appears twice", "give it once")
        texts[option] = text
    if len(names) != 1:
        what = f"more than one kernel: {' '.join(names)}" if names else "no kernel"
        raise UsageError(what, "write KERNEL [options], one row per line")
    return names[0], {option: read_value(option, text) for option, text in texts.items()}


def _option(word: str, rest: Iterator[str]) -> tuple[str, str]:
    """The option that `word` names and its value, which may be the next of `rest`."""
    option, equals, text = word.removeprefix("--").partition("=")
    if not word.startswith("--") or option not in OPTIONS:
        choice = f"choose {alternatives(f'--{name}' for name in OPTIONS)}"
        raise UsageError(f"unknown option {word.partition('=')[0]}", did_you_mean(option, OPTIONS, choice, "--"))
    if OPTIONS[option].kind == "flag":
        if equals:
            raise UsageError(f"option --{option} takes no value", f"write --{option} alone")
        return option, ""
    value = text if equals else next(rest, None)
    if value is None:
        raise UsageError(f"option --{option} has no value", f"write --{option} VALUE")
    return option, value


def read_value(name: str, text: str) -> Any:
    """Return the value of an option of a row. Raises UsageError where the text is malformed or unknown."""
    option = OPTIONS[name]
    word, colon, _ = text.partition(":") if option.kind == "memory" else (text, "", "")
    if option.choices and word not in option.choices:
        raise UsageError(f"--{name}: '{text}' is unknown", f"choose {alternatives(option.choices)}")
    if option.kind == "memory" and bool(colon) != bool(MEMORIES[word]):
        usage = f"{word}:{MEMORIES[word]}" if MEMORIES[word] else word
        raise UsageError(f"--{name}: '{text}' is not complete or has a parameter too many", f"write {usage}")
    try:
        return option.read(text)
    except UsageError as error:
        raise UsageError(f"--{name}: {error.message}", error.hint) from None
