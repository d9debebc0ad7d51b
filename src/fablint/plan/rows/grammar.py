"""The engine's row grammar, docs/reference/engine.md.

A row is `KERNEL [options]`, split at white space. `--option value` and `--option=value` mean the same. In the place of
a kernel may stand the name of a benchmark: then its own row comes first, and the options override it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fablint.errors import UsageError
from fablint.plan.rows.benchmarks import Benchmark
from fablint.plan.rows.conflicts import refuse_contradictions
from fablint.plan.rows.kernels import KERNELS
from fablint.plan.rows.options import OPTIONS, RowRequest, row_request
from fablint.plan.rows.values import alternatives, did_you_mean


def parse_row(words: Sequence[str], benchmarks: Mapping[str, Benchmark] | None = None) -> RowRequest:
    """Read one row from its words.

    Args:
        words: kernel or benchmark, and options.
        benchmarks: the registry, for rows that name a benchmark.

    Raises:
        UsageError: unknown kernel or option, a value that the option does not take, or options that contradict
            each other. The message does not say where; the caller knows.
    """
    kernel, texts = split_row(words, benchmarks)
    values = {option: _value(option, text) for option, text in texts.items()}
    row = row_request(kernel, values)
    refuse_contradictions(row)
    return row


def split_row(
    words: Sequence[str], benchmarks: Mapping[str, Benchmark] | None = None
) -> tuple[str, dict[str, str | None]]:
    """Kernel and options of a row, their values as they are written (None: the option takes none).

    A benchmark is replaced by its row. Raises UsageError as `parse_row`, but looks at no value.
    """
    names: list[str] = []
    texts: dict[str, str | None] = {}
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
        found = " ".join(names)
        raise UsageError(
            f"more than one kernel: {found}" if names else "no kernel", "write KERNEL [options], one row per line"
        )
    (name,) = names
    if name in KERNELS:
        return name, texts
    benchmark = (benchmarks or {}).get(name)
    if benchmark is None:
        hint = did_you_mean(name, [*KERNELS, *(benchmarks or {})], "fablint bench --list shows what there is")
        raise UsageError(f"unknown kernel '{name}'", hint)
    kernel, own = split_row(benchmark.row.split())
    return kernel, overridden(own, texts)


def overridden(own: Mapping[str, str | None], given: Mapping[str, str | None]) -> dict[str, str | None]:
    """The options of a benchmark's row with the given ones in their place, and without those that these exclude.

    Another rule of when to stop takes the place of the count; with a precision ranks stop at different counts, so that
    no barrier can precede every sample. A check of every message needs a buffer for each.
    """
    excluded = set()
    if given.keys() & {"samples", "precision"}:
        excluded.add("iterations")
    if "precision" in given:
        excluded.add("barrier")
    if "validate" in given:
        excluded.add("buffers")
    return {**{option: text for option, text in own.items() if option not in excluded}, **given}


def write_row(kernel: str, texts: Mapping[str, str | None]) -> str:
    """The plan line that `split_row` reads as the same."""
    words = (f"--{option}" if text is None else f"--{option} {text}" for option, text in texts.items())
    return " ".join([kernel, *words])


def _option(word: str, rest: Iterator[str]) -> tuple[str, str | None]:
    """The option that `word` names and its value, which may be the next of `rest`."""
    option, equals, text = word.removeprefix("--").partition("=")
    if not word.startswith("--") or option not in OPTIONS:
        every = f"choose {alternatives(f'--{known}' for known in OPTIONS)}"
        raise UsageError(f"unknown option {word.partition('=')[0]}", did_you_mean(option, OPTIONS, every, "--"))
    if OPTIONS[option] is None:
        if equals:
            raise UsageError(f"option --{option} takes no value", f"write --{option} alone")
        return option, None
    value = text if equals else next(rest, None)
    if value is None:
        raise UsageError(f"option --{option} has no value", f"write --{option} VALUE")
    return option, value


def _value(option: str, text: str | None) -> Any:
    parse = OPTIONS[option]
    if parse is None or text is None:
        return True
    try:
        return parse(text)
    except UsageError as error:
        raise UsageError(f"--{option}: {error.message}", error.hint) from None
