"""The same rows over several transports or memories, in blocks that alternate between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import product

from fablint.errors import UsageError
from fablint.model import Medium, RowSpec
from fablint.model.registry import TRANSPORTS
from fablint.model.registry.option_values import Counts
from fablint.model.registry.row_limits import ROW_LIMITS
from fablint.plan.rows.row_text import parse_row

BLOCKS = 5  # of each transport: the interval of a ratio is that of the ratios of so many blocks
SHORTEST_BLOCK_S = 0.1

Options = Mapping[str, str | None]  # of a row, as text


def media(options: Options) -> list[Options]:
    """Return the options of each transport with each memory that `--transport` and `--memory` list.

    Options that only some transports have, such as `--device`, are those of the listed transports that have them.

    Raises
    ------
    UsageError
        A transport or a memory is listed twice.
    """
    lists = {name: _listed(name, options) for name in ("transport", "memory") if options.get(name)}
    if all(len(words) == 1 for words in lists.values()):
        return [options]
    alternatives: list[Options] = []
    for words in product(*lists.values()):
        own = {**options, **dict(zip(lists, words, strict=True))}
        foreign = _options_of_others(own.get("transport"), lists.get("transport", ()))
        alternatives.append({name: text for name, text in own.items() if name not in foreign})
    return alternatives


def parse_media(options: Options) -> tuple[Medium, ...]:
    """Return the media that `--transport`, `--memory`, `--device` and the like name.

    Raises
    ------
    UsageError
        A transport or a memory is unknown or listed twice, or an option does not apply to any of the transports.
    """
    return tuple(parse_row(["latency", *option_words(own)]).medium for own in media(options))


def option_words(options: Options) -> list[str]:
    """Return options as words of a row."""
    return [f"--{name}" if text is None else f"--{name}={text}" for name, text in options.items()]


def over_media(rows: Iterable[RowSpec], each: Sequence[Medium]) -> tuple[RowSpec, ...]:
    """Return every row over each medium. The rows of several media that have names are named after their media."""
    found = (replace(row, **asdict(medium)) for row in rows for medium in each)
    return tuple(named_after_medium(row) if row.name and len(each) > 1 else row for row in found)


def _listed(name: str, options: Options) -> list[str]:
    words = (options[name] or "").split(",")
    if len({*words}) != len(words):
        raise UsageError(f"--{name} {options[name]} has an entry twice", "give each once")
    return words


def _options_of_others(transport: str | None, listed: Sequence[str]) -> frozenset[str]:
    """Return the options that other listed transports have, and this one has not."""
    own = TRANSPORTS[transport].options if transport and transport in TRANSPORTS else frozenset()
    others = (TRANSPORTS[other].options for other in listed if other in TRANSPORTS)
    return frozenset().union(*others) - own


def blocks(rows: Sequence[Sequence[RowSpec]], count: int = BLOCKS) -> Iterator[RowSpec]:
    """Divide rows into blocks that alternate between media.

    Parameters
    ----------
    rows
        For each medium the same rows, named.
    count
        Blocks of each row. A row that stops after fewer repetitions has fewer.

    Returns
    -------
    Iterator[RowSpec]
        The blocks of the first row over every medium, then those of the second row. Every second time the media are
        in reverse order, so that a steady drift slows all of them equally.
    """
    for same_row in zip(*rows, strict=True):
        number = min(count, *(_most_blocks(row) for row in same_row))
        for block in range(number):
            for row in same_row if block % 2 == 0 else same_row[::-1]:
                yield replace(_block(row, number), name=f"{named_after_medium(row).name}-{block + 1}")


def named_after_medium(row: RowSpec) -> RowSpec:
    """Return the row with its transport, and its memory if that is not the host's, appended to its name."""
    memory = [row.memory.replace(":", "_")] if row.memory != Medium().memory else []
    return replace(row, name="-".join([row.name or row.kernel, row.transport, *memory]))


def _most_blocks(row: RowSpec) -> int:
    counts = row.iterations or (BLOCKS, BLOCKS)
    return min(row.samples or BLOCKS, *counts)


def _block(row: RowSpec, number: int) -> RowSpec:
    """Return one of `number` blocks of a row: its share of the repetitions and of the time."""
    if row.iterations is None and row.samples is None and row.budget is None and row.precision is None:
        row = replace(row, budget=ROW_LIMITS.default_budget_s, precision=ROW_LIMITS.default_precision)
    return replace(
        row,
        iterations=_share(row.iterations, number),
        samples=row.samples and -(-row.samples // number),
        budget=row.budget and max(row.budget / number, min(row.budget, SHORTEST_BLOCK_S)),
    )


def _share(counts: Counts | None, number: int) -> Counts | None:
    return counts and (-(-counts[0] // number), -(-counts[1] // number))
