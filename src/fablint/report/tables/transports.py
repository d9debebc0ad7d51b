"""Transports side by side: a column for each, and the ratio of each to the first with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from fablint.model import Row, Run
from fablint.model.figures.gpu_use import path_words, sharing_words
from fablint.report.tables.table import Rendered, TableKind
from fablint.report.transport_comparison import (
    ComparedMedium,
    Ratio,
    TransportComparison,
    are_compared,
    transport_comparisons,
)
from fablint.text import units


def _parts(_: Run, rows: Sequence[Row]) -> list[TransportComparison]:
    is_alone = are_compared(rows) and len({row.medium for row in rows}) == 1
    return transport_comparisons(rows, 1 if is_alone else 2)


# A section for each measurement that several rows did over different transports or memories.
transports = TableKind[TransportComparison](
    "transports",
    options=(),
    needs="rows that measured the same over several transports",
    measure="measure them with --transport mpi,tcp",
    parts=_parts,
    section=lambda run, comparison, _: _rendered(run, comparison),
)


def heading(run: Run, comparison: TransportComparison) -> str:
    """Return what was measured, over how many transports and pairs, of collectives ranks."""
    blocks = f", {units.plural(comparison.blocks, 'block')} each" if comparison.blocks > 1 else ""
    condition = f" ({comparison.condition})" if comparison.condition else ""
    memories = len({one.medium.memories for one in comparison.media})
    differing = len({one.medium.transport for one in comparison.media}) if memories > 1 else len(comparison.media)
    transports = units.plural(differing, "transport")
    with_memories = f" with {memories} memories" if memories > 1 else ""
    measured = "rank" if run.row(comparison.media[0].rows[0]).pattern == "world" else "directed pair"
    return (
        f"{comparison.kernel}{condition} over {transports}{with_memories}{blocks}, "
        f"{units.plural(comparison.pairs, measured)} on {units.plural(len(run.hosts), 'host')}"
    )


def rma_words(comparison: TransportComparison) -> str:
    """Return the creation and synchronisation of the RMA windows of each medium; empty where all have the same."""
    media = zip(comparison.media, comparison.rma, strict=False)
    each = "; ".join(f"{one.medium.label} {', '.join(filter(None, rma))}" for one, rma in media)
    return each and f"RMA windows differ: {each}"


def cells(comparison: TransportComparison) -> list[list[str]]:
    """Return the head of the table and a line for each size: figures of the transports, then ratios to the first."""
    first, *others = comparison.media
    head = ["Size", *(f"{one.medium.label} ({comparison.unit})" for one in comparison.media)]
    head += [f"{one.medium.label} / {first.medium.label}" for one in others]
    body = [
        [
            str(size),
            *(_cell(comparison.in_unit(one.figures[index])) for one in comparison.media),
            *(_ratio_cell(one.ratios[index]) for one in others),
        ]
        for index, size in enumerate(comparison.sizes)
    ]
    return [head, *body]


def _rendered(run: Run, comparison: TransportComparison) -> Rendered:
    ratios = f"; ratios to {comparison.media[0].medium.label}" if len(comparison.media) > 1 else ""
    interval = " with their 95 % interval over the blocks" if ratios and comparison.blocks > 1 else ""
    paths = [f"{label}: {path}" for label, path in _paths(run, comparison)]
    sharing = sharing_words(run) if paths else ""
    windows = [rma_words(comparison)]
    words = [f"fablint {heading(run, comparison)}", f"medians{ratios}{interval}", *windows, *paths, sharing]
    comments = [f"# {line}" for line in words if line]
    head, *body = cells(comparison)
    return Rendered((*comments, *units.columns([[f"# {head[0]}", *head[1:]], *body])), _facts(comparison))


def _paths(run: Run, comparison: TransportComparison) -> Iterator[tuple[str, str]]:
    """Label and path of the messages of each medium in GPU memory."""
    for item in comparison.media:
        if path := path_words(item.medium.gpu_memory, run.row(item.rows[0]).facts.carrier.gpu_path):
            yield item.medium.label, path


def _facts(comparison: TransportComparison) -> dict[str, Any]:
    return {
        "table": "transports",
        "kernel": comparison.kernel,
        **({"condition": comparison.condition} if comparison.condition else {}),
        "unit": comparison.unit,
        "pairs": comparison.pairs,
        "blocks": comparison.blocks,
        "sizes": list(comparison.sizes),
        "transports": [_medium_facts(comparison, one) for one in comparison.media],
    }


def _medium_facts(comparison: TransportComparison, compared_medium: ComparedMedium) -> dict[str, Any]:
    return {
        **asdict(compared_medium.medium),
        **{name: value for name, value in zip(("win", "sync"), compared_medium.rma, strict=True) if value},
        "rows": list(compared_medium.rows),
        "figures": [comparison.in_unit(figure) for figure in compared_medium.figures],
        "ratios": [asdict(ratio) if ratio else None for ratio in compared_medium.ratios],
    }


def _cell(value: float | None) -> str:
    return "-" if value is None else units.significant(value)


def _ratio_cell(ratio: Ratio | None) -> str:
    if ratio is None:
        return "-"
    interval = (ratio.low, ratio.high)
    words = ", ".join(units.significant(bound) for bound in interval if bound is not None)
    return f"{units.significant(ratio.value)} [{words}]" if words else units.significant(ratio.value)
