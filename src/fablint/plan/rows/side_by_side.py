"""The same rows over several transports or memories, in blocks that alternate between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import product

from fablint.errors import UsageError
from fablint.model import Medium, RowSpec
from fablint.model.registry import TRANSPORTS
from fablint.model.registry.option_values import Counts
from fablint.model.registry.row_limits import ROW_LIMITS
from fablint.plan.rows.refusals import Values
from fablint.plan.rows.row_text import row_of

COMPARED = ("transport", "memory")  # options of which a comparison has several values
BLOCKS = 5  # of each transport: the interval of a ratio is that of the ratios of so many blocks
SHORTEST_BLOCK_S = 0.1


def media(values: Values) -> list[Values]:
    """Return the values for each transport with each memory that `transport` and `memory` list: those of a single row.

    Options that only some transports have, such as `device`, are those of the listed transports that have them.

    Raises
    ------
    UsageError
        A transport or a memory is listed twice.
    """
    lists: dict[str, Sequence[str]] = {name: values[name] for name in COMPARED if name in values}
    for name, words in lists.items():
        if len({*words}) != len(words):
            raise UsageError(f"--{name} {','.join(words)} has an entry twice", "give each once")
    alternatives: list[Values] = []
    for chosen in product(*lists.values()):
        combined = {**values, **dict(zip(lists, chosen, strict=True))}
        foreign = _options_of_others(combined.get("transport"), lists.get("transport", ()))
        alternatives.append({name: value for name, value in combined.items() if name not in foreign})
    return alternatives


def parse_media(values: Values) -> tuple[Medium, ...]:
    """Return the media that `transport`, `memory`, `device` and the like name.

    Raises
    ------
    UsageError
        A transport or a memory is listed twice, or an option does not apply to any of the transports.
    """
    return tuple(row_of("latency", combined).medium for combined in media(values))


def over_media(rows: Iterable[RowSpec], each: Sequence[Medium]) -> tuple[RowSpec, ...]:
    """Return every row over each medium. The rows of several media that have names are named after their media."""
    result = (replace(row, **asdict(medium)) for row in rows for medium in each)
    return tuple(named_after_medium(row) if row.name and len(each) > 1 else row for row in result)


def _options_of_others(transport: str | None, listed: Sequence[str]) -> frozenset[str]:
    """Return the options that other listed transports have, and this one has not."""
    supported = TRANSPORTS[transport].options if transport else frozenset()
    return frozenset().union(*(TRANSPORTS[other].options for other in listed)) - supported


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
    memories = row.medium.memories if row.medium.memories != Medium().memories else ()
    words = [row.name or row.kernel, row.transport, *(memory.replace(":", "_") for memory in memories)]
    return replace(row, name="-".join(words))


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
