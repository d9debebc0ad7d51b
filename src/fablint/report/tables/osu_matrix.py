"""The tables of `osu_mbw_mr -V`: sizes x windows, once as MB/s and once as messages/s."""

from __future__ import annotations

from collections.abc import Sequence

from fablint.model import Row
from fablint.report.tables import osu_names
from fablint.report.tables.table import Rendered, fixed, medium_words, right
from fablint.report.tables.traffic import window

_SIZE, _FIELD = 7, 12


def varies(row: Row) -> bool:
    """Tell whether this row can be a column of the matrix: one way, and the same window at all sizes."""
    return osu_names.message_rate(row) and len({window(row, at) for at in range(len(row.sizes))}) == 1


def matrix(rows: Sequence[Row], rates: Sequence[Sequence[float | None]], pairs: int, rule: str) -> Rendered:
    """One column per row, in the order of the windows; `rates` in MB/s by row and size."""
    order = sorted(range(len(rows)), key=lambda at: window(rows[at], 0))
    windows, first = [window(rows[at], 0) for at in order], rows[order[0]]
    columns = [rates[at] for at in order]
    sizes = first.sizes
    messages = [[None if r is None else r * 1e6 / s for r, s in zip(c, sizes, strict=True)] for c in columns]
    comments = [f"format of OSU {osu_names.VERSION}; {rule}", *medium_words(first)]
    lines = [
        *osu_names.head(first, pairs, "varied", comments)[:-1],
        "",
        "# Uni-directional Bandwidth (MB/sec)",
        "# Datatype: MPI_CHAR.",
        *_grid(windows, sizes, columns),
        "",
        "# Message Rate Profile",
        *_grid(windows, sizes, messages),
    ]
    facts = {
        "table": "osu",
        "rows": [rows[at].name for at in order],
        "kernel": first.kernel,
        "pattern": first.pattern,
        "title": osu_names.title(first).removeprefix("# "),
        "unit": "MB/s",
        "groups": pairs,
        "windows": windows,
        "sizes": [
            {"size": size, "figures": list(figures), "messages_per_s": list(rate)}
            for size, figures, rate in zip(sizes, zip(*columns, strict=True), zip(*messages, strict=True), strict=True)
        ],
    }
    return Rendered(tuple(lines), facts)


def _grid(windows: Sequence[int], sizes: Sequence[int], columns: Sequence[Sequence[float | None]]) -> list[str]:
    head = "#".ljust(_SIZE) + "".join(right(str(count), _FIELD) for count in windows)
    body = [
        str(size).ljust(_SIZE) + "".join(right(fixed(column[at]), _FIELD) for column in columns)
        for at, size in enumerate(sizes)
    ]
    return [head, *body]
