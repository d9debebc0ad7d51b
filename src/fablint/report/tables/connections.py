"""Variance between connections and within them: how much two starts of the same measurement differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fablint.model import Row, Run
from fablint.report import run_facts
from fablint.report.connection_variance import (
    ConnectionVariance,
    Deviation,
    MeanSquares,
    connection_variances,
)
from fablint.report.tables.table import Rendered, TableKind
from fablint.text import units

HEAD = ("between", "within", "two starts")


# A section for each row that opened its connections anew.
connections = TableKind[list[ConnectionVariance]](
    "connections",
    options=(),
    needs="rows that opened their connections anew, for two connections or more",
    measure="measure them with --transport tcp --reconnect --repeats 8",
    parts=lambda _, rows: [sizes for row in rows if (sizes := connection_variances(row))],
    section=lambda run, sizes, _: _rendered(run, sizes),
)


def cells(mean_squares: MeanSquares) -> tuple[str, str, str]:
    """Return the standard deviations between and within connections, and what two starts differ by."""
    return (
        _spread(mean_squares.between_connections),
        _spread(mean_squares.within_connections),
        units.share_text(math.expm1(mean_squares.noise_floor)),
    )


def connection_words(row: Row) -> str:
    """Return what two starts of a row differ by at its most informative size; empty where that is not known."""
    size = run_facts.informative_size(row)
    variance = next((one for one in connection_variances(row) if one.size == size), None)
    if variance is None:
        return ""
    between, within, two_starts = cells(variance.of_pair)
    return (
        f"{units.plural(variance.connections, 'set')} of connections: at {units.size(size)} standard deviation between"
        f" {between}, within {within}; two starts of a pair differ by less than {two_starts} in 95 %, means of"
        f" {units.plural(variance.pairs, 'directed pair')} by less than {cells(variance.of_mean)[2]}"
    )


def _spread(deviation: Deviation) -> str:
    return f"{_percent(deviation.value)} % [{_percent(deviation.low)}, {_percent(deviation.high)}]"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}" if share < 0.1 else f"{100 * share:.0f}"


def _rendered(run: Run, sizes: Sequence[ConnectionVariance]) -> Rendered:
    row, most = sizes[0].row, max(one.pairs for one in sizes)
    comments = (
        f"# fablint {row.kernel} over {units.plural(sizes[0].connections, 'set')} of {row.medium.label} connections, "
        f"{sizes[0].of_pair.passes} passes each, {units.plural(most, 'directed pair')} on "
        f"{units.plural(len(run.hosts), 'host')}",
        "# standard deviations of the logarithm, with 95 % intervals; two starts differ by less than the last figure in"
        " 95 %",
    )
    head = ["# Size", *(f"{name} (pair)" for name in HEAD), *(f"{name} (mean)" for name in HEAD)]
    body = [[str(one.size), *cells(one.of_pair), *cells(one.of_mean)] for one in sizes]
    return Rendered((*comments, *units.columns([head, *body])), _facts(sizes))


def _facts(sizes: Sequence[ConnectionVariance]) -> dict[str, Any]:
    return {
        "table": "connections",
        "row": sizes[0].row.name,
        "kernel": sizes[0].row.kernel,
        **asdict(sizes[0].row.medium),
        "sizes": [variance_facts(one) for one in sizes],
    }


def connection_facts(rows: Sequence[Row]) -> dict[str, list[dict[str, Any]]]:
    """Return the figures of each size of the rows that opened their connections anew, by the row's name."""
    facts_by_row = {row.name: [variance_facts(one) for one in connection_variances(row)] for row in rows}
    return {name: sizes for name, sizes in facts_by_row.items() if sizes}


def variance_facts(connection_variance: ConnectionVariance) -> dict[str, Any]:
    """Return the figures of one size: standard deviations of log times, and differences of them."""
    return {
        "size": connection_variance.size,
        "pairs": connection_variance.pairs,
        "connections": connection_variance.connections,
        "passes": connection_variance.of_pair.passes,
        "pair": _component_facts(connection_variance.of_pair),
        "mean": _component_facts(connection_variance.of_mean),
    }


def _component_facts(mean_squares: MeanSquares) -> dict[str, Any]:
    return {
        "between": asdict(mean_squares.between_connections),
        "within": asdict(mean_squares.within_connections),
        "two_starts": mean_squares.noise_floor,
    }
