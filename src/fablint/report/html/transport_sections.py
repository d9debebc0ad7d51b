"""Transports or memories side by side, as the page shows them: a table, a plot, and the devices of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fablint.model import Row, Run
from fablint.report import summary
from fablint.report.conditions import part_name
from fablint.report.drawings.plots import Plot
from fablint.report.drawings.transport_curves import transport_curves
from fablint.report.html.charts import RowCharts
from fablint.report.tables.transports import cells, heading, rma_words
from fablint.report.transport_comparison import ComparedMedium, TransportComparison, transport_comparisons
from fablint.text import units

_UNKNOWN = "chosen by the library, which does not report it"


@dataclass(frozen=True)
class TransportSection:
    """One measurement over several media."""

    title: str
    plot: Plot | None
    lines: Sequence[Sequence[str]]  # the first is the head of the table
    media: tuple[tuple[str, str], ...]  # name and devices of each
    rma: str  # the RMA windows of each, where they differ
    rows: tuple[str, ...]  # names of the rows of all blocks, where there are several
    has_intervals: bool


def transport_sections(run: Run, rows: Sequence[Row]) -> list[TransportSection]:
    """Return a section for each measurement that several of the rows did over different media."""
    return [_section(run, comparison) for comparison in transport_comparisons(rows)]


def split_blocks(
    rows: Sequence[RowCharts], sections: Sequence[TransportSection]
) -> tuple[list[RowCharts], list[RowCharts]]:
    """Return the rows that are blocks of a comparison, which share one table, and those with a section of their own."""
    blocks = {name for section in sections for name in section.rows}
    return [row for row in rows if row.name in blocks], [row for row in rows if row.name not in blocks]


def _section(run: Run, comparison: TransportComparison) -> TransportSection:
    return TransportSection(
        heading(run, comparison),
        transport_curves(comparison),
        _with_units(cells(comparison)),
        tuple((one.medium.label, _devices(run, one)) for one in comparison.media),
        rma_words(comparison),
        tuple(_blocks(comparison)) if comparison.blocks > 1 else (),
        comparison.blocks > 1,
    )


def _blocks(comparison: TransportComparison) -> Iterator[str]:
    """Names of all blocks, as the page has them."""
    for item in comparison.media:
        for name in item.rows:
            yield part_name(name, comparison.condition)


def _with_units(lines: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    head, *body = lines
    return [head, *([units.size(int(size)), *rest] for size, *rest in body)]


def _devices(run: Run, medium: ComparedMedium) -> str:
    """Return what the library of a transport has chosen in all of its rows, each once."""
    rows_by_name = {row.name: row for row in run.rows}
    chosen = (summary.devices(rows_by_name[name]) for name in medium.rows if name in rows_by_name)
    return "; ".join(dict.fromkeys(filter(None, chosen))) or _UNKNOWN
