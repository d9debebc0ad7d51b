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
from fablint.plan.rows.refusals import Texts, is_given, refuse_row
from fablint.text.suggestions import alternatives, did_you_mean


def parse_row(words: Sequence[str], benchmarks: Mapping[str, Benchmark] | None = None) -> RowSpec:
    """Read one row.

    Parameters
    ----------
    words
        Kernel or benchmark, and options.
    benchmarks
        The registry, for rows that name a benchmark.

    Raises
    ------
    UsageError
        Unknown kernel or option, a malformed value, or options that do not apply or contradict each other. The message
        does not say where the row is.
    """
    row, texts = _read(words, benchmarks)
    refuse_row(row, texts)
    return row


def read_row(text: str) -> RowSpec:
    """Read a row of a run. Raises UsageError where it is malformed; combinations of options were accepted before."""
    return _read(text.split())[0]


def _read(words: Sequence[str], benchmarks: Mapping[str, Benchmark] | None = None) -> tuple[RowSpec, Texts]:
    kernel, texts = _split(words, benchmarks)
    fields = {OPTIONS[name].field: _value(name, text) for name, text in texts.items()}
    sizes_given = any(word.partition("=")[0] == "--sizes" for word in words)  # not by the row of a benchmark
    return RowSpec(kernel, **fields, sizes_given=sizes_given), texts


def _split(words: Sequence[str], benchmarks: Mapping[str, Benchmark] | None = None) -> tuple[str, Texts]:
    """Kernel and options of a row; a benchmark is replaced by its row."""
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
    (name,) = names
    if name in KERNELS:
        return name, texts
    benchmark = (benchmarks or {}).get(name)
    if benchmark is None:
        hint = did_you_mean(name, [*KERNELS, *(benchmarks or {})], "fablint bench --list shows what there is")
        raise UsageError(f"unknown kernel '{name}'", hint)
    kernel, own = _split(benchmark.row.split())
    replaced = {other for user, other, value in REPLACEMENTS if user in texts and is_given(own, other, value)}
    kept = {option: text for option, text in own.items() if option not in replaced}
    return kernel, {**kept, **texts}


def _option(word: str, rest: Iterator[str]) -> tuple[str, str]:
    """The option that `word` names and its value, which may be the next of `rest`."""
    option, equals, text = word.removeprefix("--").partition("=")
    if not word.startswith("--") or option not in OPTIONS:
        every = f"choose {alternatives(f'--{known}' for known in OPTIONS)}"
        raise UsageError(f"unknown option {word.partition('=')[0]}", did_you_mean(option, OPTIONS, every, "--"))
    if OPTIONS[option].kind == "flag":
        if equals:
            raise UsageError(f"option --{option} takes no value", f"write --{option} alone")
        return option, ""
    value = text if equals else next(rest, None)
    if value is None:
        raise UsageError(f"option --{option} has no value", f"write --{option} VALUE")
    return option, value


def _value(name: str, text: str) -> Any:
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
