"""OSU's table of non-blocking collectives: the call during a computation, the computation, the call alone, the overlap.

OSU times the parts of one call; here each figure is that of a row: with the call and the computation, with one of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fablint.model import Row, Run
from fablint.report.tables import osu_names
from fablint.report.tables.cells import Cells, cells, central, ranks
from fablint.report.tables.table import Rendered, TableKind, fixed, right
from fablint.report.tables.traffic import collective_ranks
from fablint.text import units

_SIZE, _FIELD, _FIRST = 10, 18, 13  # widths of OSU's columns; the first one of a table without sizes
_SUM = "# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait"
_NAMES = {
    "overall": "Overall(us)",
    "compute": "Compute(us)",
    "pure": "Pure Comm.(us)",
    "min": "Min Comm.(us)",
    "max": "Max Comm.(us)",
    "overlap": "Overlap(%)",
    "validation": "Validation",
}
_PARTS = {"none": "pure", "during": "overall", "alone": "compute"}  # --compute of the row that has the figure


def is_shown(row: Row) -> bool:
    """Return whether the row is one of a non-blocking collective."""
    return bool(row.facts.sampling.compute) and row.pattern == "world"


def _parts(_: Run, rows: Sequence[Row]) -> list[dict[str, Row]]:
    """Rows of the same collective together: without, during and instead of a computation."""
    groups: dict[tuple[str, str, int | None], dict[str, Row]] = {}
    for row in filter(is_shown, rows):
        key = row.kernel, row.facts.carrier.memory, row.facts.sampling.tests
        groups.setdefault(key, {}).setdefault(_PARTS[row.facts.sampling.compute], row)
    return list(groups.values())


# A section for each collective. Option: all columns.
overlap = TableKind[dict[str, Row]](
    "overlap",
    options=("full",),
    needs="a row of a non-blocking collective",
    measure="measure one: bench osu_ibcast",
    parts=_parts,
    section=lambda run, group, options: _table(run, group, options.full),
)


def _table(run: Run, group: dict[str, Row], full: bool) -> Rendered:
    row = next(iter(group.values()))
    keys = ["overall", "compute", "pure", *(["min", "max"] if full else []), "overlap"]
    keys += ["validation"] if row.facts.sampling.validate else []
    sizes = sorted({size for each in group.values() for size in each.sizes})
    lines = {size: _figures(group, size) for size in sizes}
    has_sizes = row.payload != "none"
    comments = [
        f"format of OSU {osu_names.VERSION}; means over {units.plural(collective_ranks(run, row), 'rank')}",
        "a computation waits for the clock, as long as the call of its rank alone; each column is a row of its own",
    ]
    head = osu_names.head(row, 0, "", comments)
    text = [*head[:-1], _SUM, "", head[-1]] if has_sizes else [*head, _SUM, ""]
    names = [_NAMES[key] for key in keys]
    first, *others = (["# Size", *names]) if has_sizes else [f"# {names[0]}", *names[1:]]
    text.append((first.ljust(_SIZE) if has_sizes else first) + "".join(right(name, _FIELD) for name in others))
    for size, figures in lines.items():
        words = [_words(figures.get(key)) for key in keys]
        begin, rest = (str(size).ljust(_SIZE), words) if has_sizes else (right(words[0], _FIRST), words[1:])
        text.append(begin + "".join(right(word, _FIELD) for word in rest))
    facts = {
        "table": "overlap",
        "kernel": row.kernel,
        "rows": {part: each.name for part, each in group.items()},
        "ranks": collective_ranks(run, row),
        "sizes": [{"size": size, **figures} for size, figures in lines.items()],
    }
    return Rendered(tuple(text), facts)


def _words(figure: float | str | None) -> str:
    return figure if isinstance(figure, str) else fixed(figure, 0)


def _figures(group: dict[str, Row], size: int) -> dict[str, Any]:
    """Microseconds by column, and the share of the call that the computation hid; None where a row lacks it."""
    result: dict[str, Any] = dict.fromkeys(_PARTS.values())
    for part, row in group.items():
        if (merged := _merged(row, size)) is not None:
            times = merged.times[central(row)]
            result[part] = float(times.mean()) * 1e6
            if part == "pure":
                result |= {"min": float(times.min()) * 1e6, "max": float(times.max()) * 1e6}
    overall, compute, pure = (result[part] for part in ("overall", "compute", "pure"))
    if None not in (overall, compute, pure) and pure > 0:
        result["overlap"] = max(0.0, 100 - 100 * (overall - compute) / pure)
    damaged = any(entry.size == size for row in group.values() for entry in row.facts.result.corrupt)
    return result | {"validation": "Fail" if damaged else "Pass"}


def _merged(row: Row, size: int) -> Cells | None:
    """One cell per rank; None where the size was not measured."""
    if size not in row.sizes:
        return None
    merged = cells(row, row.sizes.index(size), [central(row)]).by_pair(ranks(row))
    return merged if len(merged) else None
